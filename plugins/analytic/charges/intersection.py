"""`intersection`: a skipping unit compares metadata, and passes so many positions in a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..actions import SKIP
from ..layout import by_level, limited
from ..nest import Nest
from ..prepared import DesignChoices, ModelTables
from ..removal import Removal
from ..traffic import Traffic

if TYPE_CHECKING:
    from ..counts import Counts


def looked_at(
    known: ModelTables,
    nest: Nest,
    choices: DesignChoices,
    traffic: Traffic,
    removal: Removal,
    counts: Counts,
    busy: PerDesign,
) -> PerDesign:
    """(B,) cycles of the units, which are `busy` (B,) in some of their positions and pass the others by skips of finite width.

    `removal`: the filters that save time. Skips that choose words for the units, and those of the units, pass single
    positions; those further out tiles, whose empty ones take cycles as well. Of one that compares `entries` these are its
    positions.
    """
    lay, chip, steps = known.layout, choices.chip, nest.steps[-1]
    positions, width = steps, np.full(nest.batch, np.inf)
    waits: dict[int, Array] = {}  # by place: for empty tiles
    compared = _compared(nest, choices, removal, chip.lookahead)
    for some in removal.effects:
        t, s, rows = some.action.target, some.level, some.rows
        limit = _width(
            chip.lookahead[some.action.place.storage or 0], some.action.width, some.action.gene, choices, rows
        )
        if some.kind != SKIP or t == lay.output or not limited(limit):
            continue
        left, child, listed = _left(removal, t, s, rows), lay.child(t, s), np.ones(len(rows))
        if some.action.gene in compared:
            listed = compared[some.action.gene][rows]
            limit = np.where(some.action.entries[choices.genes[some.action.gene][rows]], 1.0, limit)
        if child is None:
            positions = positions.copy()
            positions[rows] = np.minimum(positions[rows], steps[rows] * left * listed)
            width[rows] = np.minimum(width[rows], limit)
            continue
        tiles = traffic.brought[t, child, rows] / nest.tile_words[t, child, rows] * left
        taken = tiles * np.minimum(1.0, (1.0 - some.share) / np.where(left > 0.0, left, 1.0))
        here = waits.setdefault(some.action.gene, np.zeros(nest.batch))
        here[rows] = np.maximum(here[rows], passed(np.maximum(tiles * listed, taken), taken, limit) - taken)
    unit = known.places.compute
    if unit is not None:
        skips = unit.kind[choices.genes[unit.gene]] == SKIP
        reached = counts.columns.time(counts.computes.left) / nest.instances_used[lay.S]
        limit = np.where(skips, _width(chip.lookahead[-1], unit.width, unit.gene, choices, slice(None)), np.inf)
        waits[-1] = np.where(skips, passed(positions, reached, width) - reached, 0.0)
        lists = skips & unit.entries[choices.genes[unit.gene]]
        if lists.any():
            inside, there = choices.inside(lay), counts.computes.there
            chances = [
                np.where(lists & inside[t], counts.columns.time(own), np.nan)
                for t, own in zip(lay.operands, there, strict=True)
            ]
            reached = reached * comparing(nest, lay.S - 1, lay.operands, np.array(chances), limit)
            limit = np.where(lists, 1.0, limit)
        positions, width = np.where(skips, reached, positions), np.where(skips, limit, width)
    cycles = passed(positions, busy, width) + sum(waits[place] for place in sorted(waits))
    return np.minimum(np.ceil(cycles * (1.0 - 1e-12)), steps)


def _left(removal: Removal, t: int, s: int, rows: Rows) -> Array:
    """(n,) share of the accesses of a tensor at a level that skips further out leave."""
    left = np.ones(len(rows))
    for outer in range(s):  # of several the innermost counts
        acts = removal.kind[t, outer, rows] == SKIP
        left = np.where(acts, 1.0 - removal.share[t, outer, rows], left)
    return left


def _compared(nest: Nest, choices: DesignChoices, removal: Removal, lookahead: Array) -> dict[int, PerDesign]:
    """By place, the cycles for each of its positions of skips that compare entries."""
    chances: dict[int, dict[int, Array]] = {}
    widths: dict[int, Array] = {}
    for some in removal.effects:
        t, gene = some.action.target, some.action.gene
        lists = some.action.entries[choices.genes[gene][some.rows]]
        if some.kind == SKIP and t != nest.layout.output and lists.any():
            rows = some.rows[lists]
            left = _left(removal, t, some.level, rows)
            width = _width(lookahead[some.action.place.storage or 0], some.action.width, gene, choices, rows)
            widths.setdefault(gene, np.ones(nest.batch))[rows] = width
            for leader, empty in zip(some.action.leaders, some.empty, strict=True):
                own = chances.setdefault(gene, {}).setdefault(leader, np.full(nest.batch, np.nan))
                own[rows] = np.minimum(1.0, (1.0 - empty[lists]) / np.where(left > 0.0, left, 1.0))
    places = nest.layout.problem.places
    return {
        gene: comparing(nest, places[gene].storage or 0, tuple(own), np.array(list(own.values())), widths[gene])
        for gene, own in chances.items()
    }


def comparing(nest: Nest, level: int, tensors: Sequence[int], chances: Array, width: Array) -> PerDesign:
    """(B,) cycles for each position of a level, of a unit that goes through the lists of entries of these tensors: one for
    a pair, one for every `width` (B,) entries of one list that have no partner. `chances` (tensors, B) of an entry at a
    position, NaN: none is compared.

    Lists are of the runs of innermost loops that move all tensors, L positions; loops further in are a position together.
    A unit stops where a list has an entry and none has ended. With r positions left that is not so where all lists go on
    without an entry here: sum over r of prod (1 - x^r) - prod x (1 - x^(r-1)), x the chance of none.
    """
    lay, found = nest.layout, np.ones(nest.batch)
    there = np.isfinite(chances)
    dims, bounds = nest.loops([lay.temporal[s] for s in range(level, -1, -1)], np.arange(nest.batch))
    for pattern in np.unique(there, axis=1).T:
        rows, some = np.flatnonzero((there == pattern[:, None]).all(axis=0)), np.flatnonzero(pattern)
        if not some.size:
            continue
        bound, moves = bounds[:, rows], lay.relevant[np.array(tensors)[some]][:, dims[:, rows]]
        every, one = moves.all(axis=0), bound == 1.0
        inside = np.logical_and.accumulate(~every | one)
        runs = inside | np.logical_and.accumulate(inside | every | one)
        length = np.where(runs & ~inside, bound, 1.0).prod(axis=0)
        together = np.where(inside[None] & moves, bound, 1.0).prod(axis=1)
        chance = np.minimum(chances[np.ix_(some, rows)], 1.0 - 1e-15)
        none = np.log1p(-chance) * together  # of no entry
        met = np.exp(np.log(-np.expm1(none) + 1e-300).sum(axis=0))
        total = np.zeros(len(rows))
        for chosen in product((False, True), repeat=len(some)):
            mask = np.array(chosen)
            out, others = none[mask].sum(axis=0), none[~mask].sum(axis=0)
            ended = -np.expm1(out)
            turns = np.where(ended > 0.0, -np.expm1(length * out) / np.where(ended > 0.0, ended, 1.0), length)
            total += (-1.0) ** mask.sum() * turns * np.exp(out) * -np.expm1(others)
        alone = -np.expm1(none) * np.exp(none.sum(axis=0) - none)  # an entry in one list only, of any stop
        stop = -np.expm1(none.sum(axis=0))
        missed = np.maximum(total - length * met, 0.0)
        own = alone * (missed / np.maximum(stop - met, 1e-300))  # such stops, of each list
        again = alone / np.maximum(
            stop, 1e-300
        )  # the next stop is of the same list, but for that of the first one of all
        again = again - again**2 * (-np.expm1(none * length)).prod(axis=0) / np.maximum(own, 1e-300)
        again = np.clip(np.where(own > 0.0, again, 0.0), 0.0, 1.0 - 1e-12)
        cycles = missed - (own * (1.0 - (1.0 - again) / (1.0 - again ** width[rows]))).sum(axis=0)
        positions = length * np.where(inside, bound, 1.0).prod(axis=0)
        found[rows] = np.clip(chance.prod(axis=0) + cycles / positions, 0.0, 1.0)
    return found


def passed(positions: Array, taken: Array, width: Array) -> Array:
    """Cycles in which a unit passes so many positions, of which it takes some in a cycle each, and every `width` of the
    empty ones between two of them in another one.

    With a share x taken, each with the same chance: positions * x / (1 - (1 - x)^width), 1/width of them at least.
    """
    finite = np.isfinite(width) & (positions > 0.0)
    x = np.minimum(1.0, np.where(finite, taken / np.where(finite, positions, 1.0), 1.0))
    w = np.where(finite, width, 1.0)
    seen = np.where(x * w < 1e-6, x * w, 1.0 - (1.0 - x) ** w)  # the difference would be noise
    each = np.where(x > 0.0, x / np.where(seen > 0.0, seen, 1.0), 1.0 / w)
    return np.where(finite, np.maximum(taken, positions * each), taken)


def _width(stated: Array, own: Array, gene: int, choices: DesignChoices, rows: Rows | slice) -> Array:
    """(n,) positions a cycle: what the hardware states and what the mechanism of each design has, the smaller of the two."""
    return np.minimum(stated if np.ndim(stated) == 0 else stated[rows], own[choices.genes[gene][rows]])


def compared_pj(known: ModelTables, choices: DesignChoices, counts: Counts) -> PerDesign:
    """(B,) an addition for every metadata access of a leader of a skip, and for every compute that a skipping unit sees."""
    from ..cost import total
    from ..counts import led

    chip, own, added = choices.chip, counts.columns.energy, np.zeros(choices.genes.shape[-1])
    if "read" in counts.bits:
        looked = led(known, choices, SKIP)
        accesses = np.ceil(own(counts.bits["read"]) / by_level(chip.metadata_width))
        added = total(accesses * looked * counts.active * by_level(chip.add_pj["metadata"]))
    unit = known.places.compute
    if unit is not None:
        skips = unit.kind[choices.genes[unit.gene]] == SKIP
        seen = own(counts.computes.actual) + own(counts.computes.skipped)  # at least one operand is there
        added = added + skips * seen * chip.add_pj["word"][-1]
    return added
