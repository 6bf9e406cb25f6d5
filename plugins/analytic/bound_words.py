"""Minimum costs of words moved or stored, compressed or not: a part of the lower bound (`bound`).

A compressed tensor stores the places of its nonzeros. With `run-lengths`, metadata are bits of a readable code. For a
tile with r of N words at equally likely places, the mean length is at least the length of a one-to-one code: H - log2(1
+ H) - log2(e) for entropy H. A tile of n words has at least n / N of the tensor's entropy (all tiles together have no
less), minus up to one bit for emptiness, which the outer level may hold. For a whole tensor, the cheapest hierarchy of
ranks is known as well (`bound_formats`)."""

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
"""Entropy of a tile's emptiness, which the outer level may hold."""
SHARE = 1.0 - 1e-6
"""Safety factor for the rounding noise of sums in another order."""


class LeastWords:
    """Minimum room, time and energy of words, by tensor and level."""

    def __init__(self, known: ModelTables, ranks: bool = True) -> None:
        """`ranks`: whether to search for the cheapest hierarchy of a tensor's ranks."""
        self.known, self.layout, self.chip = known, known.layout, known.layout.problem.chip
        self.coded = known.options.run_lengths and not known.formats.pads
        """Whether metadata are readable codes, and formats store only nonzeros and metadata."""
        self.copies = np.ones((known.layout.T, known.layout.S)) if known.copies is None else known.copies
        self.width = known.layout.problem.widths(self.chip)
        """(T, S) words of a level per word of a tensor."""
        self.density = known.layout.least_densities
        shapes = [tensor.shape(self.layout.problem.sizes) for tensor in self.layout.tensors]
        self.volumes = [float(np.prod([float(n) for n in shape])) for shape in shapes]
        self.once = [words * float(n) for words, n in zip(self.volumes, self.layout.visited[0], strict=True)]
        """Words moved per tensor, each once."""
        self.network = known.options.network
        """Whether words are charged for wires."""
        self.sides = tree_sides(self.chip)
        self.drains = known.options.drains
        """Whether words leaving a level for the parent are read there."""
        self.ranks = [LeastRanks.of(known, t) if ranks else None for t in range(known.layout.T)]
        """Metadata of the whole tensor; None: only the entropy is known."""

    def told_bits(self, t: int, words: Array) -> Array:
        """(n,) minimum bits of metadata per nonzero, for tiles of `words` words."""
        occupancy, volume, held = self.layout.occupancies[t], self.volumes[t], words * self.density[t]
        if not self.coded or not hasattr(occupancy, "placements_bits"):
            return np.zeros(len(words))
        entropy = float(occupancy.placements_bits(np.array([volume]), volume * self.density[t])[0]) / volume
        return code_bits(words * entropy - ONE_BIT) / np.where(held > 0.0, held, 1.0)

    def whole_bits(self, t: int, extents: Array) -> Array:
        """(n,) minimum bits of metadata per nonzero at the outermost level, for inner tiles with extents (D, n): of the
        cheapest hierarchy of ranks through these tiles, if known."""
        ranks, held = self.ranks[t], self.volumes[t] * self.density[t]
        told = self.told_bits(t, np.full(1, self.volumes[t]))
        if ranks is None or held <= 0.0:
            return told
        return np.maximum(told, ranks.of_tiles(extents) / held)

    def room(self, level: int, words: list[Array]) -> Array:
        """(n,) minimum words of a level as room for tiles of `words` (T; n,) of all tensors."""
        return sum(
            (self.copies[t, level] * self.held(t, level, tile) for t, tile in enumerate(words)
             if self.layout.stored[t, level] and not self.layout.holes[t]),
            start=np.zeros(1),
        )  # fmt: skip

    def held(self, t: int, level: int, words: Array) -> Array:
        """(n,) minimum words of a level for one tile at its largest occupancy, compressed or not."""
        occupancy, width = self.layout.occupancies[t], self.width[t, level]
        if occupancy.by_shape or not hasattr(occupancy, "largest_many"):
            return np.floor(words * self.density[t] * (1.0 - 1e-9)) * width  # the mean: no largest one is smaller
        most = np.minimum(words, occupancy.largest_many(words.astype(np.int64)))
        if not self.coded or not self.chip.shared_capacity[level] or not hasattr(occupancy, "placements_bits"):
            return most * width
        bits = code_bits(occupancy.placements_bits(words, most) - ONE_BIT)
        return np.minimum(words * width, most * width + bits / self.chip.word_bits[level])

    def fits(self, level: int, extents: Array) -> bool:
        """Whether tiles with extents (D,) of all tensors fit into a level, each in the cheapest hierarchy of ranks."""
        lay = self.layout
        tiles = [float(np.prod([1.0, *(width[0] for width in box(ranks, extents[:, None]))])) for ranks in lay.ranks]
        wide = [n * float(width) for n, width in zip(tiles, self.width[:, level], strict=True)]
        here = {t: n for t, n in enumerate(wide) if lay.stored[t, level] and not lay.holes[t]}
        room = float(self.chip.capacity_bits[level]) / float(self.chip.word_bits[level])
        if sum(float(self.copies[t, level]) * n for t, n in here.items()) <= room:
            return True  # without compression
        from .bound_fullest import fits

        return fits(self, level, extents, {t: tiles[t] for t in here}, room)

    def wires_pj(self, t: int, level: int, copies: Array) -> Array:
        """(n,) pJ of a word of a tensor on its way from a level to `copies` (n,) children, or back."""
        return self.wire_pj(level, copies) * float(self.width[t, level] * self.chip.word_bits[level])

    def wire_pj(self, level: int, copies: Array) -> Array:
        """(n,) pJ of a bit on this way."""
        if not self.network or self.layout.spatial[level] is None:
            return np.zeros(1)
        length = length_mm(copies, self.chip.fanout[level], self.sides[level])
        return length * float(self.chip.wire_pj_per_bit_mm) * SHARE

    def price(self, t: int, level: int, action: str, bits: Array, wires: bool = True) -> Array:
        """(n,) pJ per nonzero moved, either with `bits` bits of metadata or with all the zeros, whichever is cheaper.
        `wires`: a read or update also crosses the wires to a child."""
        packed, plain = (self.each(t, level, action, some, wires) for some in (bits, None))
        return np.minimum(packed, plain / self.density[t] if self.density[t] > 0.0 else np.inf) * SHARE

    def each(self, t: int, level: int, action: str, bits: Array | None, wires: bool = True) -> Array | float:
        """(n,) pJ of a word of a tensor with `bits` (n,) bits of metadata, or of a word of an uncompressed tensor."""
        energy, name = self.chip.energy_pj, PRICES.get(action, action)
        cluster = self.layout.problem.levels[level].memory.cluster  # words that one access of a cluster moves
        wire = float(self.wire_pj(level, np.ones(1))[0]) if wires and action != "fill" else 0.0
        word = (float(energy[name][level]) + wire * float(self.chip.word_bits[level])) * float(self.width[t, level])
        if bits is None:
            return word / cluster
        told = float(energy[f"metadata_{name}"][level]) / float(self.chip.metadata_width[level]) + wire
        return (word + bits * told) / cluster

    def time(self, t: int, level: int, bits: Array) -> Array:
        """(n,) words of a level's bandwidth per nonzero moved, compressed or not, whichever is less."""
        width = float(self.width[t, level])
        packed = width + bits / float(self.chip.word_bits[level])
        return np.minimum(packed, width / self.density[t] if self.density[t] > 0.0 else np.inf) * SHARE


def code_bits(entropy: Array) -> Array:
    """Lower bound on the mean length in bits of a one-to-one code."""
    entropy = np.maximum(entropy, 0.0)
    return np.maximum(0.0, entropy - log2s(1.0 + entropy) - log2(math.e))
