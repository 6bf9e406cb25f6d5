"""What words cost at least when they move or stay, whether they are compressed or not: a part of the lower bound (`bound`).

A compressed tensor tells where its nonzeros are. With `run-lengths` metadata are the bits of a code that can be read, so
of a tile with r of N words at places that are all equally likely they are no fewer on average than a one-to-one code
takes: H - log2(1 + H) - log2(e) of its entropy H. A tile of n words has n / N of the tensor's at least (together they
have no less), up to one bit that tells whether there is anything in it, which the level outside may know. Of a whole tensor
the cheapest hierarchy of ranks is known as well (`bound_formats`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.inner.arrays import log2, log2s
from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array

from .bound_formats import LeastRanks
from .prices import PRICES, length_mm, tree_sides

if TYPE_CHECKING:
    from .prepared import ModelTables

ONE_BIT = 1.0
"""Of the entropy of a tile: whether it holds anything, which the level outside may know."""
SHARE = 1.0 - 1e-6
"""What is left of a sum of doubles for the noise of its order."""


class LeastWords:
    """By tensor and level, the least room, time and energy of words."""

    def __init__(self, known: ModelTables, ranks: bool = True) -> None:
        """`ranks`: whether the cheapest hierarchy of a tensor's ranks is looked for."""
        self.known, self.layout, self.chip = known, known.layout, known.layout.problem.chip
        self.coded = known.options.run_lengths and not known.formats.pads
        """Whether metadata are what can be read, and nothing is stored but nonzeros and them."""
        self.copies = np.ones((known.layout.T, known.layout.S)) if known.copies is None else known.copies
        self.density = [min(1.0, occupancy.density) for occupancy in known.layout.occupancies]
        shapes = [tensor.shape(self.layout.problem.sizes) for tensor in self.layout.tensors]
        self.volumes = [float(np.prod([float(n) for n in shape])) for shape in shapes]
        self.once = [words * float(n) for words, n in zip(self.volumes, self.layout.visited[0], strict=True)]
        """Those that move, of an output, once."""
        self.network = known.options.network
        """Whether words pay for wires."""
        self.sides = tree_sides(self.chip)
        self.drains = known.options.drains
        """Whether what leaves a level for its parent is read there."""
        self.ranks = [LeastRanks.of(known, t) if ranks else None for t in range(known.layout.T)]
        """Metadata of the whole tensor; None: no more is known than its entropy."""

    def told_bits(self, t: int, words: Array) -> Array:
        """(n,) bits of metadata for each nonzero of tiles of so many words."""
        occupancy, volume, held = self.layout.occupancies[t], self.volumes[t], words * self.density[t]
        if not self.coded or not hasattr(occupancy, "placements_bits"):
            return np.zeros(len(words))
        entropy = float(occupancy.placements_bits(np.array([volume]), volume * self.density[t])[0]) / volume
        return code_bits(words * entropy - ONE_BIT) / np.where(held > 0.0, held, 1.0)

    def whole_bits(self, t: int, extents: Array) -> Array:
        """(n,) bits of metadata for each nonzero at the outermost level, if these are the extents (D, n) of the tiles inside:
        of the cheapest hierarchy of ranks that has them, where it is known."""
        ranks, held = self.ranks[t], self.volumes[t] * self.density[t]
        told = self.told_bits(t, np.full(1, self.volumes[t]))
        if ranks is None or held <= 0.0:
            return told
        return np.maximum(told, ranks.of_tiles(extents) / held)

    def room(self, level: int, words: list[Array]) -> Array:
        """(n,) words that a level needs at least to hold tiles of so many `words` (T; n,) of all tensors."""
        return sum(
            (self.copies[t, level] * self.held(t, level, tile) for t, tile in enumerate(words)
             if self.layout.stored[t, level] and not self.layout.holes[t]),
            start=np.zeros(1),
        )  # fmt: skip

    def held(self, t: int, level: int, words: Array) -> Array:
        """(n,) words of one tile at its largest occupancy, compressed or not."""
        occupancy = self.layout.occupancies[t]
        if occupancy.by_shape or not hasattr(occupancy, "largest_many"):
            return np.floor(words * self.density[t] * (1.0 - 1e-9))  # the mean: no largest one is smaller
        most = np.minimum(words, occupancy.largest_many(words.astype(np.int64)))
        if not self.coded or not self.chip.shared_capacity[level] or not hasattr(occupancy, "placements_bits"):
            return most
        bits = code_bits(occupancy.placements_bits(words, most) - ONE_BIT)
        return np.minimum(words, most + bits / self.chip.word_bits[level])

    def fits(self, level: int, extents: Array) -> bool:
        """Whether a level has room for the tiles with extents (D,) of all tensors, each in the cheapest hierarchy of ranks."""
        lay = self.layout
        tiles = [float(np.prod([1.0, *(width[0] for width in box(ranks, extents[:, None]))])) for ranks in lay.ranks]
        here = {t: n for t, n in enumerate(tiles) if lay.stored[t, level] and not lay.holes[t]}
        room = float(self.chip.capacity_bits[level]) / float(self.chip.word_bits[level])
        if sum(float(self.copies[t, level]) * n for t, n in here.items()) <= room:
            return True  # without compression
        from .bound_fullest import fits

        return fits(self, level, extents, here, room)

    def wires_pj(self, level: int, copies: Array) -> Array:
        """(n,) pJ of a word on its way from a level to so many children (n,), or back."""
        return self._wire_pj(level, copies) * float(self.chip.word_bits[level])

    def _wire_pj(self, level: int, copies: Array) -> Array:
        """The same of a bit."""
        if not self.network or self.layout.spatial[level] is None:
            return np.zeros(1)
        length = length_mm(copies, self.chip.fanout[level], self.sides[level])
        return length * float(self.chip.wire_pj_per_bit_mm) * SHARE

    def price(self, t: int, level: int, action: str, bits: Array, wires: bool = True) -> Array:
        """(n,) pJ for each nonzero that is moved, with so many bits of metadata or with all the zeros; `wires`: what is read
        or updated goes to a child or comes from it."""
        packed, plain = self.each(level, action, bits, wires), self.each(level, action, None, wires)
        return np.minimum(packed, plain / self.density[t] if self.density[t] > 0.0 else np.inf) * SHARE

    def each(self, level: int, action: str, bits: Array | None, wires: bool = True) -> Array | float:
        """(n,) pJ for a word with so many bits of metadata (n,), or for one of a tensor that has none."""
        energy, name = self.chip.energy_pj, PRICES.get(action, action)
        cluster = self.layout.problem.levels[level].memory.cluster  # words that one access of a cluster moves
        wire = float(self._wire_pj(level, np.ones(1))[0]) if wires and action != "fill" else 0.0
        word = float(energy[name][level]) + wire * float(self.chip.word_bits[level])
        if bits is None:
            return word / cluster
        told = float(energy[f"metadata_{name}"][level]) / float(self.chip.metadata_width[level]) + wire
        return (word + bits * told) / cluster

    def time(self, t: int, level: int, bits: Array) -> Array:
        """(n,) words of bandwidth for each nonzero that is moved, likewise."""
        packed = 1.0 + bits / float(self.chip.word_bits[level])
        return np.minimum(packed, 1.0 / self.density[t] if self.density[t] > 0.0 else np.inf) * SHARE


def code_bits(entropy: Array) -> Array:
    """Mean length of a one-to-one code, at least."""
    entropy = np.maximum(entropy, 0.0)
    return np.maximum(0.0, entropy - log2s(1.0 + entropy) - log2(math.e))
