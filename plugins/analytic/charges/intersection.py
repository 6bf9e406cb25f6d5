"""`intersection`: a skipping unit compares metadata, and passes so many positions in a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..actions import SKIP
from ..layout import by_level
from ..nest import DesignChoices, Nest
from ..prepared import ModelTables
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
    lay, chip, steps = known.layout, choices.chip, nest.turns
    positions, width = steps, np.full(nest.batch, np.inf)
    waits: dict[int, Array] = {}  # by place: for empty tiles
    compared: dict[int, PerDesign] = {}
    if any(one.entries.any() for one in (*known.places.actions, known.places.compute) if one is not None):
        from .entries import compared_entries, comparing

        compared = compared_entries(nest, choices, removal, chip.lookahead)
    for some in removal.effects:
        t, s, rows = some.action.target, some.level, some.rows
        limit = width_of(
            chip.lookahead[some.action.place.storage or 0], some.action.width, some.action.gene, choices, rows
        )
        narrow = np.isfinite(limit)  # design by design: others in the batch must not matter
        if some.kind != SKIP or t == lay.output or not narrow.any():
            continue
        some, rows, limit = some.take(narrow), rows[narrow], limit[narrow]
        left, child, listed = left_of(removal, t, s, rows), lay.child(t, s), np.ones(len(rows))
        if some.action.gene in compared:
            listed = compared[some.action.gene][rows]
            limit = np.where(some.action.entries[choices.genes[some.action.gene][rows]], 1.0, limit)
        if child is None:
            positions = positions.copy()
            positions[rows] = np.minimum(positions[rows], steps[rows] * left * listed)
            width[rows] = np.minimum(width[rows], limit)
            continue
        tiles = traffic.brought[t, child, rows] / nest.tile_words[t, child, rows] * left
        taken = tiles * np.minimum(1.0, (1.0 - some.still) / np.where(left > 0.0, left, 1.0))
        here = waits.setdefault(some.action.gene, np.zeros(nest.batch))
        here[rows] = np.maximum(here[rows], passed(np.maximum(tiles * listed, taken), taken, limit) - taken)
    unit = known.places.compute
    if unit is not None:
        skips = unit.kind[choices.genes[unit.gene]] == SKIP
        reached = counts.computes.left / nest.units_of(nest.instances_used[lay.S])
        limit = np.where(skips, width_of(chip.lookahead[-1], unit.width, unit.gene, choices, slice(None)), np.inf)
        waits[-1] = np.where(skips, passed(positions, reached, width) - reached, 0.0)
        lists = skips & unit.entries[choices.genes[unit.gene]]
        if lists.any():
            inside, there = choices.inside(lay), counts.computes.there
            chances = [np.where(lists & inside[t], own, np.nan) for t, own in zip(lay.operands, there, strict=True)]
            reached = reached * comparing(nest, lay.S - 1, lay.operands, np.array(chances), limit)
            limit = np.where(lists, 1.0, limit)
        positions, width = np.where(skips, reached, positions), np.where(skips, limit, width)
    cycles = passed(positions, busy, width) + sum(waits[place] for place in sorted(waits))
    return np.minimum(np.ceil(cycles * (1.0 - 1e-12)), steps)


def left_of(removal: Removal, t: int, s: int, rows: Rows) -> Array:
    """(n,) share of the accesses of a tensor at a level that skips further out leave."""
    left = np.ones(len(rows))
    for outer in range(s):  # of several the innermost counts
        acts = removal.kind[t, outer, rows] == SKIP
        left = np.where(acts, 1.0 - removal.share[t, outer, rows], left)
    return left


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


def width_of(stated: Array, own: Array, gene: int, choices: DesignChoices, rows: Rows | slice) -> Array:
    """(n,) positions a cycle: what the hardware states and what the mechanism of each design has, the smaller of the two."""
    return np.minimum(stated if np.ndim(stated) == 0 else stated[rows], own[choices.genes[gene][rows]])


def compared_pj(known: ModelTables, choices: DesignChoices, counts: Counts) -> PerDesign:
    """(B,) an addition for every metadata access of a leader of a skip, and for every compute that a skipping unit sees."""
    from ..cost import total
    from ..counts import led

    chip, added = choices.chip, np.zeros(choices.genes.shape[-1])
    if "read" in counts.bits:
        looked = led(known, choices, SKIP)
        accesses = np.ceil(counts.bits["read"] / by_level(chip.metadata_width))
        added = total(accesses * looked * counts.active * by_level(chip.add_pj["metadata"]))
    unit = known.places.compute
    if unit is not None:
        skips = unit.kind[choices.genes[unit.gene]] == SKIP
        seen = counts.computes.actual + counts.computes.skipped  # at least one operand is there
        added = added + skips * seen * chip.add_pj["word"][-1]
    return added
