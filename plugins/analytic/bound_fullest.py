"""Minimum metadata of the fullest tile over all rank hierarchies: a part of the lower bound (`bound_words`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap import Fiber
from sparsemap.pieces.boundary import units_of
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.sparsity import name_bits

from .bound_formats import RankSteps, cheapest, content, told_by_ranks
from .bound_words import SHARE, LeastWords
from .occupancy import AskedFormat

if TYPE_CHECKING:
    from .prepared import ModelTables


def fits(least: LeastWords, level: int, extents: Array, words: Mapping[int, float], room: float) -> bool:
    """Whether tiles with extents (D,), of `words` per tensor, fit into `room` words of a level."""
    chip, lay = least.chip, least.layout
    needed, open_ = 0.0, list[tuple[float, float, int, float]]()
    for t, tile in words.items():
        held, width = float(least.held(t, level, np.full(1, tile))[0]), float(least.width[t, level])
        copies, tile = float(least.copies[t, level]), tile * width
        needed += copies * held
        if held < tile and least.coded and chip.shared_capacity[level] and not lay.occupancies[t].by_shape:
            open_.append((copies * (tile - held), copies, t, held))
    left = sum(more for more, *_ in open_)
    for more, copies, t, held in sorted(open_, reverse=True):
        if needed > room or needed + left <= room:
            break
        width = float(least.width[t, level])
        most = min(words[t], float(lay.occupancies[t].largest((int(words[t]),)))) * width
        bits = most_bits(least.known, t, extents) * SHARE
        needed += copies * (min(words[t] * width, max(held, most + bits / float(chip.word_bits[level]))) - held)
        left -= more
    return needed <= room


def most_bits(known: ModelTables, t: int, extents: Array) -> float:
    """Metadata bits of the fullest tile with extents (D,), in the cheapest hierarchy of ranks; 0 if unknown."""

    def make() -> float:
        steps = RankSteps.of(known.layout, t, extents)
        if steps is None:
            return 0.0
        inside, _, done = cheapest(known, FullestBits.of(known, t, steps), steps)
        return float(min(done[-1], inside[:, -1].min()))

    return known.tables[t].remember((most_bits, *content(known, t, extents)), make) if told_by_ranks(known, t) else 0.0


@attrs.frozen(eq=False)
class FullestBits:
    """Like `MeanBits`, for a tile at its largest occupancy, without tables over all occupancies."""

    formats: tuple[AskedFormat, ...]
    length: Array
    offset_bits: Array
    slots: Array
    filled: Array
    """(3, n) probabilities of a non-empty part below one position, of a non-empty fiber, and of a non-empty part below
    anywhere in the tensor."""

    @classmethod
    def of(cls, known: ModelTables, t: int, steps: RankSteps) -> FullestBits:
        occupancy, tile = known.layout.occupancies[t], (int(steps.box.max()),)
        most = np.array([min(float(tile[0]), float(occupancy.largest(tile)))])
        sizes, which = np.unique(np.stack([steps.below, steps.box])[:, steps.first], return_inverse=True)
        within, smaller = np.zeros(len(sizes)), np.flatnonzero(sizes < tile[0])
        if count := len(smaller):
            subs, one = sizes[smaller].astype(np.int64)[:, None], np.ones(count, dtype=np.int64)
            asked = known.tables[t].asked.within_many
            within[smaller] = asked(subs, np.full((count, 1), tile[0]), most.repeat(count), one)
        below, box = 1.0 - within[which.reshape(2, -1)]
        filled = np.stack([below, box, 1.0 - known.tables[t].empty([steps.below[steps.first]])])
        parts = (steps.length, name_bits(steps.positions + 1.0), steps.fibers)
        length, offset_bits, slots = (part[steps.first] for part in parts)
        return cls(known.formats.asked, length, offset_bits, slots, filled)

    def bits(self, asked: Sequence[tuple[int, bool]]) -> list[tuple[Array, Array, Array]]:
        return [self._bits(*one) for one in asked]

    def _bits(self, asked: int, filled: bool) -> tuple[Array, Array, Array]:
        below, box, usual = self.filled
        fibers = self.slots * (box if filled else 1.0)
        bits = name_bits(self.length), self.offset_bits
        form, outer = self.formats[asked]
        held = self.length * below
        units = units_of(form, Fiber(fibers, self.length, held, *bits, self.slots, self.length, usual), outer)
        one, there = np.ones(len(fibers)), self.slots * held if form.compressed else fibers * self.length
        offsets = (fibers + there) * self.offset_bits
        return units.metadata * units.metadata_bits * one, units.payload * units.payload_bits * one, offsets
