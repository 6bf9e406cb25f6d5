"""Minimum costs of accesses next to the compute units, by size of a child's tile: a part of the lower bound.

The number of accesses depends on the way to share the innermost fan-out. Without tiles, the cheapest way counts
(`bound`); but no loop over the units exceeds the tile's extent. A child reading a compressed tile of n words also reads
its part of the metadata, at least the entropy (`bound_words`), or the zeros. A tensor leading a filter there has all
metadata read (`filter-metadata`), except for words held back by outer filters, which look at all of a leader's tile in
the child. All costs are relative to the costs already charged for a way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.inner.arrays import exp2s, log2, log2s
from sparsemap.pieces.contracts.base import Array

from .inner import functions

if TYPE_CHECKING:
    from .bound_filters import LeastAccesses
    from .bound_words import LeastWords

STEPS = 2.0
"""Tile sizes per power of two in tables of metadata."""
MOST_WAYS = 1 << 12
"""Limit of ways to share the fan-out checked for dominance."""
MOST_WIDTHS = 1 << 16
"""Limit of combinations of loop bounds over the units, in powers of two."""


@attrs.frozen(eq=False)
class LeastUnits:
    """pJ to add to the charged costs of every way, at the level next to the compute units."""

    widths: Array
    """Table by log2 of the largest extents of a child's tile, rounded down, along every dimension."""
    operands: tuple[int, ...]
    told: Array
    """Table by log2 of each operand's words in a child's tile, `STEPS` per factor of two: pJ of metadata and of the
    cheapest way; () if unknown."""
    told_alone: Array
    """The same for metadata alone."""

    @classmethod
    def of(
        cls, words: LeastWords, accesses: LeastAccesses, splits: Array, reads: Array, kept: Array, more: Array
    ) -> LeastUnits:
        """Tables for `splits` (D, n) of the fan-out, with `reads` (T', n) of the operands, the minimum share `kept`
        (T', n) of these reads, and the excess cost `more` (n,) in pJ of each way over the charged cost."""
        sizes = [int(log2(n)) + 1 for n in splits.max(axis=1)]
        widths: Array = np.zeros((1,) * len(sizes))
        if math.prod(sizes) <= MOST_WIDTHS:
            widths = np.full(sizes, np.inf)
            np.minimum.at(widths, tuple(log2s(splits).astype(np.intp)), more)
            for axis in range(len(sizes)):
                widths = np.minimum.accumulate(widths, axis)
        operands, known = tuple(words.layout.operands), words.known.options.filter_metadata
        if len(operands) != 2 or not (words.coded and known and words.layout.stored.all()):
            return cls(widths, (), np.zeros(()), np.zeros(()))
        told = (
            _told(words, accesses, _least(np.concatenate([m[None], reads, reads * kept]))) for m in (more, 0.0 * more)
        )
        return cls(widths, operands, *told)


def _told(words: LeastWords, accesses: LeastAccesses, rows: Array) -> Array:
    """Table from `rows`: excess cost of each way, reads of both operands, and the reads left by filters."""
    lay, level = words.layout, words.layout.S - 1
    cluster = lay.problem.levels[level].memory.cluster
    price = float(words.chip.energy_pj["metadata_read"][level]) / float(words.chip.metadata_width[level]) / cluster
    told, there = list[Array](), list[Array]()
    for t in lay.operands:
        sizes = np.arange(1 + int(STEPS * log2(words.volumes[t]))) / STEPS
        bits = words.told_bits(t, exp2s(sizes)) * words.density[t]
        zeros = (1.0 - words.density[t]) * float(words.chip.energy_pj["read"][level] * words.width[t, level]) / cluster
        strided = any(c > 1 for rank in lay.ranks[t] for _, c in rank)  # parts of a tile may have even fewer words
        told.append(np.minimum(bits * price, zeros) * (0.0 if strided else 1.0))
        there.append(accesses.there_in_steps(t, 0.0 * sizes if strided else sizes))
    found: Array = np.full((len(told[0]), len(told[1])), np.inf)
    for targets, leaders in accesses.choices(level):
        pj = rows[0][:, None, None]
        for i, t in enumerate(lay.operands):
            if t in targets and t not in leaders:
                pj = pj + np.multiply.outer(rows[3 + i], told[i][None, :] if i else told[i][:, None])
            else:
                left = _left(accesses, t, lay.operands[1 - i], there[1 - i])
                pj = pj + np.multiply.outer(rows[1 + i], np.outer(left, told[1]) if i else np.outer(told[0], left))
        found = np.minimum(found, pj.min(axis=0))
    return found * (1.0 - 1e-6)


def _left(accesses: LeastAccesses, t: int, other: int, there: Array) -> Array:
    """Share of a tensor's words left by filters outside the innermost level, by size of the other operand's tile."""
    kept: Array = np.ones(len(there))
    for action in accesses.filters(t, accesses.layout.S - 2):
        share: Array = np.ones_like(kept)
        for c in action.leaders:
            share = share * (there if c == other else accesses.densities[c])
        kept = np.minimum(kept, share)
    return kept


def _least(rows: Array) -> Array:
    """Undominated columns of rows (m, n), without duplicates; all distinct columns if too many to check."""
    rows, found = np.maximum(rows, 0.0), np.empty(rows.shape[1], dtype=np.uint8)
    if rows.shape[1] > MOST_WAYS:
        return np.unique(rows, axis=1)
    functions.beaten(rows, found)
    return rows[:, found == 0]
