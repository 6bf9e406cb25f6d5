"""Expected maxima of the work of many compute units, from the distributions of what their tiles hold.

Everything is computed once per distinct tile, and once per distinct combination of tiles and numbers of units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap import Occupancy
from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..occupancy.lookup import Number, Table, distinct, fingerprint
from ..occupancy.shared import SHARED

if TYPE_CHECKING:
    from ..layout import Layout
    from ..prepared import ModelTables

LANES = 2.0 ** np.arange(-2, 31)
"""Numbers of units for which the maximum of a tile is tabulated, the smallest a quarter."""
TAILS = 2.0 ** -np.arange(0.0, 21.0)
"""Shares of the units for which thresholds of a tile are."""
MERGED = 256
"""Values of a distribution that are told apart, at most: steps of a tenth of a standard deviation."""
SHAPES = 128
"""Shapes whose distributions are kept: tiles of one shape come with many numbers of words at which skips look."""
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


@attrs.frozen(eq=False)
class Shares:
    """The probabilities of values in ascending order, neighbours as one where they are many: what does not depend on the
    values themselves."""

    p: Array
    starts: Array
    """First values of what counts as one; empty: each counts for itself."""
    share: Array
    """(C,) of what counts as one."""
    reaches: Array
    """(C,) share that has this value at least .."""
    logs: Array
    """.. and log(1 - reaches)."""

    @classmethod
    def of(cls, p: Array) -> Shares:
        starts = np.arange(0, len(p), -(-len(p) // MERGED)) if len(p) > MERGED else np.zeros(0, dtype=np.int64)
        share = np.add.reduceat(p, starts) if starts.size else p
        reaches = np.minimum(np.cumsum(share[::-1])[::-1], 1.0)
        with np.errstate(divide="ignore"):
            return cls(p, starts, share, reaches, np.log1p(-reaches))

    def merged(self, values: Array) -> Array:
        """(C,) means of the values that count as one."""
        if not self.starts.size:
            return values
        there = self.share > 0.0
        mean = np.add.reduceat(self.p * values, self.starts) / np.where(there, self.share, 1.0)
        found = np.where(there, mean, values[self.starts])
        return np.maximum.accumulate(found)  # rounding may put the mean of equal values below the one before

    def weights(self, lanes: Array) -> Array:
        """(len(lanes), C): times the differences of the values, the expected maxima of so many of them."""
        return -np.expm1(lanes[:, None] * self.logs)


class Rowed:
    """A table that says in which row of `figures`, (rows, width), something is."""

    def __init__(self, width: int) -> None:
        self.table = Table(Number, most=1 << 62)
        self.figures = np.zeros((0, width))

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.table.size + self.figures.size

    def rows(self, first: Array, others: Array) -> Rows:
        """Rows (n,) of what these numbers say, (n,) and (k, n)."""
        raise NotImplementedError

    def find(self, keys: Array, make: Callable[[Rows], Sequence[Array]]) -> Rows:
        """(n,) rows of these keys; `make`: the figures of those that are missing, one after the other."""

        def fill(rows: Rows) -> Number:
            self.figures = np.concatenate([self.figures, np.stack(make(rows))])
            return Number(np.zeros(len(rows)))

        return self.table.rows(keys, fill)


class WorkTiles(Rowed):
    """Thresholds and maxima of the tiles of one operand."""

    def __init__(self, occupancy: Occupancy, lanes: Array) -> None:
        """`lanes`: for how many units maxima are tabulated."""
        super().__init__(len(lanes) + 2 + 2 * len(TAILS))
        self.occupancy, self.lanes = occupancy, lanes
        self._known: dict[tuple[int, ...], tuple[Array, Shares, Array]] = {}

    @property
    def size(self) -> int:
        known = sum(weights.size for *_, weights in list(self._known.values()))
        return known + super().size

    @property
    def maxima(self) -> Array:
        return self.figures[:, : len(self.lanes)]

    @property
    def moments(self) -> Array:
        """Mean of the square, and the chance that there is anything."""
        return self.figures[:, len(self.lanes) : len(self.lanes) + 2]

    @property
    def values(self) -> Array:
        """That a share TAILS of the tiles reaches at least .."""
        return self.figures[:, -2 * len(TAILS) : -len(TAILS)]

    @property
    def shares(self) -> Array:
        """.. and the shares that do."""
        return self.figures[:, -len(TAILS) :]

    def rows(self, looks: Array, widths: Array) -> Rows:
        """Rows for tiles by the words (n,) at which a skip looks, and by their shapes (ranks, n)."""

        def make(rows: Rows) -> list[Array]:
            shapes = widths[:, rows].T.astype(np.int64).tolist()
            return [self._row(int(look), tuple(shape)) for look, shape in zip(looks[rows], shapes, strict=True)]

        return self.find(fingerprint([looks, *widths]), make)

    def _row(self, looks: int, shape: tuple[int, ...]) -> Array:
        """Maxima of `lanes` units, moments, values and shares."""
        k, shares, weights = self._shape(shape)
        words = float(max(math.prod(shape), looks))
        if looks == 1:
            values = np.where(k > 0.0, 1.0 - (1.0 - np.minimum(k / words, 1.0)), 0.0)
        else:
            values = 1.0 - (1.0 - np.minimum(np.maximum(looks, k) / words, 1.0)) ** np.minimum(looks, k)
        if (values[1:] < values[:-1]).any():
            order = np.argsort(values, kind="stable")
            values, shares = values[order], Shares.of(shares.p[order])
            weights = shares.weights(self.lanes)
        y = shares.merged(values)
        at = np.searchsorted(-shares.reaches, -TAILS * (1.0 - 1e-9), side="right") - 1
        at = np.maximum(at, 0)
        first = np.searchsorted(y, y[at], side="left")  # all that have this value reach it
        moments = shares.p @ values**2, shares.p[values > 0.0].sum()
        return np.concatenate([weights @ np.diff(y, prepend=0.0), moments, y[at], shares.reaches[first]])

    def _shape(self, shape: tuple[int, ...]) -> tuple[Array, Shares, Array]:
        """Occupancies of a tile, their shares, and the weights of these."""
        if shape not in self._known:
            if len(self._known) >= SHAPES:
                self._known.clear()
            k, p = (np.asarray(part, dtype=np.float64) for part in self.occupancy.distribution(shape))
            shares = Shares.of(p / p.sum())
            self._known[shape] = k, shares, shares.weights(self.lanes)
        return self._known[shape]


class MetPlaces(Rowed):
    """Maxima of how many of some places hold something in all operands, where these meet by chance."""

    def __init__(self, lanes: Array) -> None:
        super().__init__(len(lanes))
        self.lanes = lanes

    def rows(self, places: Array, chance: Array) -> Rows:
        """Rows for so many places (n,) with this chance (1, n) each; keys are of their bits."""

        def make(rows: Rows) -> list[Array]:
            return [self._row(*one) for one in zip(places[rows].tolist(), chance[0, rows].tolist(), strict=True)]

        return self.find(fingerprint([part.view(np.int64) for part in (places, chance[0])]), make)

    def _row(self, places: float, chance: float) -> Array:
        k, p = binomial(places, chance)
        shares = Shares.of(p)
        return shares.weights(self.lanes) @ np.diff(shares.merged(k / places), prepend=0.0)


WINDOW = 1 << 16
"""The most numbers of successes that `binomial` lists."""


def binomial(trials: float, chance: float) -> tuple[Array, Array]:
    """Successes and their probabilities, where they are not negligible; of very many, some at equal steps, as normal
    numbers have them."""
    mean, spread = trials * chance, math.sqrt(trials * chance * (1.0 - chance))
    low, high = max(0.0, math.floor(mean - 9 * spread - 9)), min(trials, math.ceil(mean + 12 * spread + 30))
    if high - low > WINDOW:
        k = np.linspace(low, high, WINDOW)
        logs = -0.5 * ((k - mean) / spread) ** 2
    else:
        k = np.arange(low, high + 1.0)
        ratio = np.log((trials - k[:-1]) / (k[:-1] + 1.0)) + math.log(chance) - math.log1p(-chance)
        logs = np.concatenate([[0.0], np.cumsum(ratio)])
    p = np.exp(logs - logs.max())
    return k, p / p.sum()


_AT = np.linspace(-9.0, 9.0, 6001)
NORMAL = np.array([_AT, 0.5 * np.array([1.0 + math.erf(x / math.sqrt(2.0)) for x in _AT])])
"""Numbers (2, 6001), and the chance that a normal one is below."""


def _normal_maxima() -> Array:
    """Of the maximum of LANES normal numbers, one at least: (2, len(LANES)) mean and standard deviation."""
    middle, found = 0.5 * (_AT[1:] + _AT[:-1]), []
    for count in np.maximum(LANES, 1.0):
        p = np.diff(NORMAL[1] ** count)
        mean = (p * middle).sum()
        found.append((mean, math.sqrt((p * middle**2).sum() - mean**2)))
    return np.array(found).T


NORMAL_MAXIMA = _normal_maxima()
_TWO = int(np.searchsorted(LANES, 2.0))
DEVIATIONS = np.divide(*NORMAL_MAXIMA[::-1, np.maximum(np.arange(len(LANES)), _TWO)])


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
    tau, mean, deviation, chain, there = (
        least[some],
        *(np.take(x, some, axis=1) for x in (mean, deviation, chain, there)),
    )
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


def lanes_for(units: float) -> int:
    """How many of LANES it takes where no more `units` than these wait for each other."""
    return 4 * math.ceil((math.log2(units) + 4.0) / 4.0)


class Maxima:
    """Ratios of the longest work to the mean."""

    def __init__(self, occupancies: Sequence[Occupancy], lanes: int) -> None:
        """Of the operands, for the first `lanes` of LANES."""
        self.lanes = LANES[:lanes]
        self.tiles = [WorkTiles(occupancy, self.lanes) for occupancy in occupancies]
        self.meetings = MetPlaces(self.lanes)
        self.table = Table(Number)
        self.lock = Lock()

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.table.size + self.meetings.size + sum(tiles.size for tiles in self.tiles)

    def ratios(self, work: WorkBoxes, looks: Array) -> Array:
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
            return Number(self._ratios(work, looks, some[rows]))

        with self.lock:
            found[some] = self.table.find(fingerprint(columns), fill).value
        return found

    def deviations(self, operand: int, widths: Array) -> Array:
        """(n,) of the nonzeros of tiles of these shapes (ranks, n), over their mean: of two of them the fuller one tells it."""
        tiles = self.tiles[operand]
        with self.lock:
            rows = tiles.rows(np.ones(widths.shape[1]), widths)
            mean, fuller = (tiles.maxima[rows, np.searchsorted(LANES, lanes)] for lanes in (1.0, 2.0))
        return math.sqrt(math.pi) * (fuller - mean) / np.where(mean > 0.0, mean, 1.0)

    def _ratios(self, work: WorkBoxes, looks: Array, rows: Rows) -> Array:
        thins, depth = np.isfinite(looks[:, rows]), work.depth[rows]
        kinds = thins * np.where(np.array(work.lanes)[:, rows] > 1.0, 2, 1)  # 1: all units have the same of an operand
        there = (work.turns[rows] >= GROWN[:, None]) & ((depth > 1) | (GROWN[:, None] == 1))
        most, units = np.ones(there.shape), np.ones(len(rows))
        for pattern in distinct(kinds, axis=1).T:
            operands = np.flatnonzero(pattern).tolist()  # designs in which the same operands thin the work
            which, mine = np.nonzero(there & (kinds == pattern[:, None]).all(axis=0))
            apart = np.flatnonzero(pattern == 2).tolist()
            most[which, mine] = self._maximum(work, looks, rows[mine], operands, apart, GROWN[which])
            lanes = work.units if len(operands) > 1 else work.lanes[operands[0]]
            units[mine] = lanes[rows[mine]]
        most = np.minimum.accumulate(most, axis=0)  # two parts take no longer together than each by itself
        return pace(most, there, depth, units)

    def _maximum(
        self, work: WorkBoxes, looks: Array, rows: Rows, operands: list[int], apart: list[int], grown: Array
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
            tiles[i] = self.tiles[i].rows(looks[i, rows], widths)
            volumes[i] = np.maximum(widths.prod(axis=0), looks[i, rows])
        means = {i: self.tiles[i].maxima[tiles[i], np.searchsorted(LANES, 1.0)] for i in operands}
        mean = math.prod(means.values(), start=np.ones(len(rows)))
        most = mean
        shared = math.prod((means[i] for i in operands if i not in apart), start=np.ones(len(rows)))
        for last in apart:
            firsts = [i for i in apart if i != last]
            most = np.maximum(most, shared * self._in_order(work, rows, firsts, last, tiles))
        if len(operands) > 1:
            loose = {i: self.loose(i, tiles[i], means[i], volumes[i]) for i in operands}
            most = mean + self._with_meetings(work, looks, rows, operands, grown, most - mean, means, volumes, loose)
        return np.maximum(most / np.where(mean > 0.0, mean, 1.0), 1.0)

    def loose(self, operand: int, tiles: Rows, mean: Array, volume: Array) -> Array:
        """(n,) 1 - E[y^2] / E[y] of the share y of nonzeros, over what one in `volume` positions leaves of it: 1 - E[y] if
        they are uniform, 0 where a tile is full or empty."""
        square = self.tiles[operand].moments[tiles, 0]
        open_ = 1.0 - square / np.where(mean > 0.0, mean, 1.0)
        return np.clip(open_ / np.where(volume > 1.0, 1.0 - 1.0 / volume, 1.0), 0.0, 1.0)

    def _in_order(
        self, work: WorkBoxes, rows: Rows, firsts: Sequence[int], last: int, tiles: Mapping[int, Rows]
    ) -> Array:
        """The most of the last operand among units that have at least a threshold of each other one, the best of these."""
        product, reached = np.ones((len(rows), 1)), work.lanes[last][rows][:, None]
        for place, i in enumerate(firsts):
            values, shares = self.tiles[i].values[tiles[i]], self.tiles[i].shares[tiles[i]]
            apart = work.lanes[i][rows] / work.pairs[min(i, last), max(i, last)][rows]
            there = 1.0 - (1.0 - np.minimum(shares, 1.0)) ** apart[:, None]
            product = (product[:, :, None] * values[:, None, :]).reshape(len(rows), -1)
            reached = (reached[:, :, None] * there[:, None, :]).reshape(len(rows), -1)
            if 0 < place < len(firsts) - 1:
                from .tails import best_of_tails

                product, reached = best_of_tails(product, reached)
        return (product * _at(self.tiles[last].maxima, tiles[last], reached)).max(axis=1)

    def _with_meetings(
        self, work: WorkBoxes, looks: Array, rows: Rows, operands: list[int], grown: Array, excess: Array,
        means: Mapping[int, Array], volumes: Mapping[int, Array], loose: Mapping[int, Array],
    ) -> Array:  # fmt: skip
        """`excess`, (n,), with what varies because nonzero positions meet by chance; `loose`: how far the number of nonzeros
        leaves their positions open."""
        chance = math.prod(means.values(), start=np.ones(len(rows)))
        points = work.points[rows] * grown
        apart = 1.0 - np.minimum(points / math.prod(volumes.values(), start=np.ones(len(rows))), 1.0)
        single = (looks[operands][:, rows] == 1.0).all(axis=0)
        some = np.flatnonzero(single & (apart > 0.0) & (chance > 0.0) & (chance < 1.0))
        if not some.size:
            return excess
        met = self.meetings.rows(points[some], chance[None, some])
        deviation = _at(self.meetings.figures, met, work.units[rows[some]][:, None])[:, 0] - chance[some]
        share = math.prod((loose[i][some] for i in operands), start=1.0) / (1.0 - chance[some]) * apart[some]
        found = excess.copy()
        spread = np.maximum(np.hypot(excess[some], np.sqrt(share) * deviation), 1e-300)
        fuller = 1.0 + excess[some] / chance[some] * excess[some] / spread
        found[some] = np.sqrt(excess[some] ** 2 + share * fuller * deviation**2)
        return found


def _at(maxima: Array, rows: Rows, units: Array) -> Array:
    """Maxima of (n, G) units, on the line between those of LANES; fewer units than the first have their share of it."""
    most = maxima.shape[1] - 1.000001  # there are more units in designs only that are invalid
    place = np.clip(np.log2(np.maximum(units, LANES[0])) - math.log2(LANES[0]), 0.0, most)
    low = place.astype(np.int64)
    part = place - low
    found = maxima[rows[:, None], low] * (1.0 - part) + maxima[rows[:, None], low + 1] * part
    return found * np.minimum(units / LANES[0], 1.0)


def maxima_of(known: ModelTables, units: float) -> Maxima:
    """The tables of the operands, for no more than so many units."""
    lay, lanes = known.layout, lanes_for(units)
    occupancies = tuple(lay.occupancies[t] for t in lay.operands)
    return lay.problem.remember((Maxima, lanes), lambda: SHARED.get(Maxima, occupancies, lanes))


def limits_of(known: ModelTables, t: int) -> Array:
    """Words of the whole tensor as `WorkBoxes.boxes` has them."""
    lay = known.layout
    whole = np.array(box(lay.ranks[t], lay.sizes) or (1.0,))
    return whole if known.tables[t].by_shape else whole.prod(keepdims=True)


def rank_of(lay: Layout, t: int) -> Array:
    """(D,) the tensor rank that a dimension moves; 0 if none, or where shapes do not matter."""
    found = np.zeros(lay.D, dtype=np.int64)
    if lay.occupancies[t].by_shape:
        for r, rank in enumerate(lay.ranks[t]):
            for d, _ in rank:
                found[d] = r
    return found
