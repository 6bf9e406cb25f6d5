"""Ratios of the longest work of many compute units to the mean (`maxima.py` has the tables); `waiting.c` finds the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..occupancy.lookup import Number, distinct, fingerprint
from .maxima import DEVIATIONS, LANES, NORMAL, NORMAL_MAXIMA, TAILS, Maxima

GROWN = np.array([1.0, 2.0, 4.0, 8.0])
"""Consecutive parts that are looked at where units may be ahead of each other."""
NEWTON = 6
"""Steps; each at least halves what is left."""


@attrs.frozen(eq=False)
class WorkBoxes:
    """What n designs do between two points at which units wait."""

    boxes: Sequence[Sequence[Array]]
    """Per operand, (n,) words of a unit's box, or its words per tensor rank where the shape matters."""
    limits: Sequence[Array]
    """The same of the whole tensor."""
    growth: Sequence[Array]
    """Per operand, (n,) 1 + the tensor rank that the next part is another piece of; 0: the next part uses this one again."""
    least: Sequence[Array]
    """Per operand, (n,) words of that rank that several parts have each at least, since the next one is so far away."""
    lanes: Sequence[PerDesign]
    """Per operand, how many different boxes the waiting units have."""
    pairs: Mapping[tuple[int, int], PerDesign]
    """Per pair of operands, in how many places of those loops that move both."""
    units: PerDesign
    points: PerDesign
    depth: Array
    """(n,) parts that a unit has room for."""
    turns: PerDesign
    """Parts in the run."""


def deviation_of(units: PerDesign) -> PerDesign:
    """The deviation of the maximum of so many normal numbers, two at least, over what it exceeds their mean by."""
    return np.interp(np.log2(np.maximum(units, 1.0)), np.log2(LANES), DEVIATIONS)


def normal_maximum(units: PerDesign) -> tuple[PerDesign, PerDesign]:
    """Mean and standard deviation of the maximum of so many normal numbers of mean 0 and deviation 1."""
    at = np.log2(np.maximum(units, 1.0))
    mean, deviation = (np.interp(at, np.log2(LANES), part) for part in NORMAL_MAXIMA)
    return mean, deviation


def pace(most: Array, there: Array, depth: Array, units: PerDesign) -> Array:
    """(n,) cycles per part of units that may be `depth` - 1 parts ahead of the slowest, over those of the mean unit.

    `most`, (G, n), is the expected maximum of the work of GROWN consecutive parts over the mean, where these are `there`.
    Solves E max over j of (X_j - (j + depth - 1) tau) = 0 for tau, X_j as independent normal numbers.
    """
    chain = GROWN[:, None] + depth - 1
    least = np.where(there, most * GROWN[:, None] / chain, 1.0).max(axis=0)
    relative = deviation_of(units)
    mean, deviation = most * GROWN[:, None], relative * (most - 1.0) * GROWN[:, None]
    some = np.flatnonzero((there.sum(axis=0) > 1) & (deviation[0] > 0.0))
    tau = least[some]
    mean, deviation, chain, there = (np.take(x, some, axis=1) for x in (mean, deviation, chain, there))
    for _ in range(NEWTON):
        m, s, slope = mean[0] - chain[0] * tau, deviation[0], chain[0].astype(np.float64)
        for j in range(1, len(GROWN)):  # Clark, The greatest of a finite set of random variables, 1961
            other, spread = mean[j] - chain[j] * tau, np.hypot(s, deviation[j])
            apart = (m - other) / spread
            first = np.interp(apart, *NORMAL)
            second, bell = 1.0 - first, np.exp(-0.5 * apart**2) / math.sqrt(2.0 * math.pi)
            joint = m * first + other * second + spread * bell
            square = (m**2 + s**2) * first + (other**2 + deviation[j] ** 2) * second + (m + other) * spread * bell
            s = np.where(there[j], np.sqrt(np.maximum(square - joint**2, 1e-18)), s)
            m, slope = np.where(there[j], joint, m), np.where(there[j], slope * first + chain[j] * second, slope)
        tau = np.clip(tau + m / slope, least[some], most[0, some])
    least[some] = np.maximum(least[some], tau)
    return least


def ratios_of(maxima: Maxima, work: WorkBoxes, looks: Array) -> Array:
    """(n,) cycles of the run over the cycles of the mean unit; `looks` (operands, n) as in `finest_looks`."""
    thins = np.isfinite(looks) & (np.array(work.lanes) > 1.0)
    some = np.flatnonzero(thins.any(axis=0))
    found = np.ones(len(work.units))
    if not some.size:
        return found
    columns = [work.depth[some], np.minimum(work.turns[some], 1 << 20)]
    columns += [work.units[some], work.points[some]]
    for i, ranks in enumerate(work.boxes):
        there = np.isfinite(looks[i, some])
        columns += [
            np.where(there, looks[i, some], 0.0),
            np.where(there, work.growth[i][some], 0),
            work.least[i][some],
        ]
        columns += [np.where(there, work.lanes[i][some], 1.0)]
        columns += [np.where(there, widths[some], 1.0) for widths in ranks]
    columns += [pair[some] for pair in work.pairs.values()]

    def fill(rows: Rows) -> Number:
        return Number(_ratios(maxima, work, looks, some[rows]))

    with maxima.lock:
        found[some] = maxima.table.find(fingerprint(columns), fill).value
    return found


def deviations(maxima: Maxima, operand: int, widths: Array) -> Array:
    """(n,) of the nonzeros of tiles of these shapes (ranks, n), over their mean: of two of them the fuller one tells it."""
    tiles = maxima.tiles[operand]
    with maxima.lock:
        rows = tiles.rows(np.ones(widths.shape[1]), widths)
        mean, fuller = (tiles.maxima[rows, np.searchsorted(LANES, lanes)] for lanes in (1.0, 2.0))
    return math.sqrt(math.pi) * (fuller - mean) / np.where(mean > 0.0, mean, 1.0)


def _ratios(maxima: Maxima, work: WorkBoxes, looks: Array, rows: Rows) -> Array:
    thins, depth = np.isfinite(looks[:, rows]), work.depth[rows]
    kinds = thins * np.where(np.array(work.lanes)[:, rows] > 1.0, 2, 1)  # 1: all units have the same of an operand
    there = (work.turns[rows] >= GROWN[:, None]) & ((depth > 1) | (GROWN[:, None] == 1))
    most, units = np.ones(there.shape), np.ones(len(rows))
    for pattern in distinct(kinds, axis=1).T:
        operands = np.flatnonzero(pattern).tolist()  # designs in which the same operands thin the work
        which, mine = np.nonzero(there & (kinds == pattern[:, None]).all(axis=0))
        apart = np.flatnonzero(pattern == 2).tolist()
        most[which, mine] = _maximum(maxima, work, looks, rows[mine], operands, apart, GROWN[which])
        lanes = work.units if len(operands) > 1 else work.lanes[operands[0]]
        units[mine] = lanes[rows[mine]]
    most = np.minimum.accumulate(most, axis=0)  # two parts take no longer together than each by itself
    return pace(most, there, depth, units)


def _maximum(
    maxima: Maxima, work: WorkBoxes, looks: Array, rows: Rows, operands: list[int], apart: list[int], grown: Array
) -> Array:
    """The longest work of so many consecutive parts over the mean; units have different parts of the operands `apart`."""
    tiles, volumes = {}, {}
    for i in operands:
        widths = np.stack([width[rows] for width in work.boxes[i]])
        growth = work.growth[i][rows].astype(np.int64)
        rank = np.maximum(growth - 1, 0)[None]
        own = np.take_along_axis(widths, rank, axis=0)
        more = np.where((growth > 0) & (grown > 1.0), np.maximum(own, work.least[i][rows]) * grown, own)
        np.put_along_axis(widths, rank, more, axis=0)
        widths = np.minimum(widths, work.limits[i][:, None])
        tiles[i] = maxima.tiles[i].rows(looks[i, rows], widths)
        volumes[i] = np.maximum(widths.prod(axis=0), looks[i, rows])
    means = {i: maxima.tiles[i].maxima[tiles[i], np.searchsorted(LANES, 1.0)] for i in operands}
    mean = math.prod(means.values(), start=np.ones(len(rows)))
    most = mean
    shared = math.prod((means[i] for i in operands if i not in apart), start=np.ones(len(rows)))
    for last in apart:
        firsts = [i for i in apart if i != last]
        most = np.maximum(most, shared * _in_order(maxima, work, rows, firsts, last, tiles))
    if len(operands) > 1:
        open_ = {i: loose(maxima, i, tiles[i], means[i], volumes[i]) for i in operands}
        most = mean + _with_meetings(maxima, work, looks, rows, operands, grown, most - mean, means, volumes, open_)
    return np.maximum(most / np.where(mean > 0.0, mean, 1.0), 1.0)


def loose(maxima: Maxima, operand: int, tiles: Rows, mean: Array, volume: Array) -> Array:
    """(n,) 1 - E[y^2] / E[y] of the share y of nonzeros, over what one in `volume` positions leaves of it: 1 - E[y] if
    they are uniform, 0 where a tile is full or empty."""
    square = maxima.tiles[operand].moments[tiles, 0]
    open_ = 1.0 - square / np.where(mean > 0.0, mean, 1.0)
    return np.clip(open_ / np.where(volume > 1.0, 1.0 - 1.0 / volume, 1.0), 0.0, 1.0)


def _in_order(
    maxima: Maxima, work: WorkBoxes, rows: Rows, firsts: Sequence[int], last: int, tiles: Mapping[int, Rows]
) -> Array:
    """The most of the last operand among units that have at least a threshold of each other one, the best of these."""
    product, reached = np.ones((len(rows), 1)), work.lanes[last][rows][:, None]
    for place, i in enumerate(firsts):
        values, shares = maxima.tiles[i].values[tiles[i]], maxima.tiles[i].shares[tiles[i]]
        apart = work.lanes[i][rows] / work.pairs[min(i, last), max(i, last)][rows]
        there = 1.0 - (1.0 - np.minimum(shares, 1.0)) ** apart[:, None]
        product = (product[:, :, None] * values[:, None, :]).reshape(len(rows), -1)
        reached = (reached[:, :, None] * there[:, None, :]).reshape(len(rows), -1)
        if 0 < place < len(firsts) - 1:
            product, reached = _best_of_tails(product, reached)
    return (product * _at(maxima.tiles[last].maxima, tiles[last], reached)).max(axis=1)


def _with_meetings(
    maxima: Maxima, work: WorkBoxes, looks: Array, rows: Rows, operands: list[int], grown: Array, excess: Array,
    means: Mapping[int, Array], volumes: Mapping[int, Array], open_: Mapping[int, Array],
) -> Array:  # fmt: skip
    """`excess`, (n,), with what varies because nonzero positions meet by chance; `open_`: how far the number of nonzeros
    leaves their positions open."""
    chance = math.prod(means.values(), start=np.ones(len(rows)))
    points = work.points[rows] * grown
    apart = 1.0 - np.minimum(points / math.prod(volumes.values(), start=np.ones(len(rows))), 1.0)
    single = (looks[operands][:, rows] == 1.0).all(axis=0)
    some = np.flatnonzero(single & (apart > 0.0) & (chance > 0.0) & (chance < 1.0))
    if not some.size:
        return excess
    met = maxima.meetings.rows(points[some], chance[None, some])
    deviation = _at(maxima.meetings.figures, met, work.units[rows[some]][:, None])[:, 0] - chance[some]
    share = math.prod((open_[i][some] for i in operands), start=1.0) / (1.0 - chance[some]) * apart[some]
    found = excess.copy()
    spread = np.maximum(np.hypot(excess[some], np.sqrt(share) * deviation), 1e-300)
    fuller = 1.0 + excess[some] / chance[some] * excess[some] / spread
    found[some] = np.sqrt(excess[some] ** 2 + share * fuller * deviation**2)
    return found


def _best_of_tails(product: Array, reached: Array) -> tuple[Array, Array]:
    """Of thresholds (n, A * TAILS) that about as many units reach, the one of the largest product: with several operands their
    combinations would otherwise be all products of thresholds."""
    count = product.shape[1] // len(TAILS)
    together = np.add.outer(np.arange(count), np.arange(len(TAILS))).ravel()
    best = [
        rows[product[:, rows].argmax(axis=1)] for rows in map(np.flatnonzero, together == np.unique(together)[:, None])
    ]
    at = np.stack(best, axis=1)
    return np.take_along_axis(product, at, axis=1), np.take_along_axis(reached, at, axis=1)


def _at(maxima: Array, rows: Rows, units: Array) -> Array:
    """Maxima of (n, G) units, on the line between those of LANES; fewer units than the first have their share of it."""
    most = maxima.shape[1] - 1.000001  # there are more units in designs only that are invalid
    place = np.clip(np.log2(np.maximum(units, LANES[0])) - math.log2(LANES[0]), 0.0, most)
    low = place.astype(np.int64)
    part = place - low
    found = maxima[rows[:, None], low] * (1.0 - part) + maxima[rows[:, None], low + 1] * part
    return found * np.minimum(units / LANES[0], 1.0)
