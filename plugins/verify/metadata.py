"""The ranks of a tensor's tiles, and the bits of metadata that real tiles have (section 6)."""

from __future__ import annotations

import math
from functools import cached_property

import attrs
import numpy as np

from sparsemap import Fiber
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.sparsity import name_bits
from sparsemap.problem.designs import Loop, Rank

from .encode import FORMULA, RUN_LENGTH, decode, encode, structure_of
from .nest import Nest, box_words, flat
from .stored import Contents, Layout, store_zeros


@attrs.frozen
class TileRank(Rank):
    """A rank of a tensor in the tile of one level."""

    box: tuple[int, ...]
    """Words per tensor rank under one fiber."""
    below: tuple[int, ...]
    """Words under one position, or one block of positions."""
    blocks: int
    """Positions, or blocks, of one fiber."""


@attrs.frozen
class Coding:
    """What is written beyond the formats' own counts (docs/model.md, `run-lengths` and `pointers`)."""

    every_fiber: bool = False
    """Every fiber below a position that is there, run lengths with widths and escapes."""
    jumps: frozenset[Loop] = frozenset()
    """Loops whose ranks have offsets."""


PLAIN = Coding()


@attrs.frozen(eq=False)
class Bits:
    """Bits of metadata of some tiles, (tiles, ranks), ranks outer to inner."""

    real: Array
    within: Array
    """What the tile takes as a part of the tile of the parent: an empty one takes bits there if its fibers are written."""
    expected: tuple[Array, Array] | None
    """What the formats' formulas say for the nonzeros that the tile has, with the positions that a fiber has on average,
    and with those that it has if it is not empty; None: they cannot say."""
    held: Array
    """(tiles,) words stored."""
    too_wide: int = 0


def is_packed(nest: Nest, tensor: int) -> bool:
    """Whether the tensor is compressed, and so has metadata at every level."""
    return any(rank.format.compressed for rank in nest.ranks(tensor))


class Ranks:
    """The ranks of a tensor in the tile of one level."""

    def __init__(self, nest: Nest, tensor: int, level: int) -> None:
        self.nest, self.tensor, self.level = nest, tensor, level
        self.shape, self.tile = nest.shape(tensor), nest.tile(tensor, level)
        self.words = math.prod(self.tile)
        extents = np.ones(len(nest.sizes), dtype=np.int64)
        of = {rank.loop: rank for rank in nest.ranks(tensor)}
        ranks: list[TileRank] = []
        for loop in reversed(nest.block(level, nest.levels)):
            below = extents.copy()
            extents[loop.axis] *= loop.bound
            if loop in of:
                rank = of[loop]
                block = min(rank.format.block, loop.bound) if rank.format.compressed else 1
                below[loop.axis] *= block
                boxes = nest.widths(tensor, extents), nest.widths(tensor, below)
                count = -(-loop.bound // block) if block > 1 else rank.length
                ranks.append(TileRank(loop, rank.format, rank.length, *boxes, count))
        self.ranks = tuple(ranks[::-1])
        self.occupancy = nest.occupancies[tensor]
        self.formats = tuple(rank.format for rank in self.ranks)
        every = [rank.format for rank in nest.ranks(tensor)]
        last = max((i for i, form in enumerate(every) if form.compressed), default=0)
        self.by_neighbours = any(form.padded for form in every) or store_zeros(every[:last])
        """Whether fibers are stored because of others: the nonzeros of the tile do not say how many there are."""

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def built(self) -> bool:
        """Whether structures can be built: fibers of overlapping or strided tiles are no tree."""
        return self.nest.plain(self.tensor)

    @property
    def undecoded(self) -> tuple[str, ...]:
        """Formats whose structure is not known."""
        return tuple({r.format.name: None for r in self.ranks if structure_of(r.format) == FORMULA})

    @cached_property
    def order(self) -> Array:
        """(L1, .., LR) numbers of the words of the tile at the origin, rank after rank."""
        index = self.nest.origins(rank.loop for rank in self.ranks) @ self.nest.access[self.tensor].T
        return flat(index, self.shape).reshape([rank.loop.bound for rank in self.ranks])

    def bits(self, contents: Contents, origins: Array, coding: Coding = PLAIN) -> Bits:
        """Bits of the different tiles, at `origins` (U, ranks of the tensor), in the order of their numbers."""
        if self.built and self.ranks:
            return self._built(contents, coding)
        words = flat(origins[:, None] + box_words(self.tile), self.shape)
        held = contents.stored.values.reshape(-1)[words].sum(axis=1)
        if coding != PLAIN:
            found = self._formula(held, coding)
            return Bits(np.where(held[:, None] > 0, found, 0.0), found, None, held)
        expected = self._expected(held)
        real = np.zeros((len(origins), len(self.ranks))) if expected is None else expected[1]
        return Bits(real, real, expected, held)

    def _built(self, contents: Contents, coding: Coding) -> Bits:
        """Tiles are the subtrees of the tensor that have the ranks of this level."""
        lengths = [rank.length for rank in self.ranks]
        by_origin = np.argsort(contents.order.reshape(-1, self.words)[:, 0])

        def tiles_of(part: Array, ranks: int = len(lengths)) -> Array:
            """(tiles, L1, ..) of an array over the ranks of the tensor down to so many of these."""
            return part.reshape(-1, *lengths[:ranks])[by_origin]

        tiles, layout = tiles_of(contents.tree), contents.written if coding.every_fiber else contents.layout
        if layout is not None:
            first = len(layout.fibers) - len(lengths)
            fibers = tuple(tiles_of(part, rank) for rank, part in enumerate(layout.fibers[first:]))
            positions = tuple(tiles_of(part, rank + 1) for rank, part in enumerate(layout.positions[first:]))
            layout = Layout(fibers, positions, tiles_of(layout.words))
        widths = [self._token_bits(rank) for rank in self.ranks] if coding.every_fiber else []
        encoded = encode(tiles, self.formats, layout, widths, [rank.loop in coding.jumps for rank in self.ranks])
        if not np.array_equal(decode(encoded), tiles):
            raise AssertionError("what was stored of a tile does not decode to that tile")
        held = tiles_of(contents.kept[contents.order]).reshape(len(tiles), -1).sum(axis=1)
        if coding != PLAIN:
            real = np.where(held[:, None] > 0, encoded.bits, 0.0)
            return Bits(real, encoded.bits, None, held, encoded.too_wide)
        expected = self._expected(tiles.reshape(len(tiles), -1).sum(axis=1))
        return Bits(encoded.bits, encoded.bits, expected, held, encoded.too_wide)

    def _token_bits(self, rank: TileRank) -> int:
        """Of a run length as an encoder writes it; 0 where the format names no encoder."""
        probe = Fiber.of(np.ones(1), 8, np.full(1, 2.5), 1.0)
        tells = not np.array_equal(rank.format.encoded(probe).metadata, rank.format.units(probe).metadata)
        if not tells or structure_of(rank.format) != RUN_LENGTH:
            return 0
        filled = min(1.0, max(0.0, 1.0 - float(self.occupancy.empty(rank.below))))
        usual = Fiber.of(np.ones(1), rank.blocks, np.full(1, filled * rank.blocks), 1.0)
        return int(np.max(rank.format.encoded(usual).metadata_bits))

    def _expected(self, held: Array) -> tuple[Array, Array] | None:
        """See `Bits`: as the analytic model has them, which takes the average of all fibers, and without the empty ones."""
        if self.by_neighbours:
            return None
        try:
            return self._formula(held), self._formula(held, conditional=True)
        except ValueError:  # a density model that knows only some occupancies
            return None

    def _formula(self, held: Array, coding: Coding = PLAIN, conditional: bool = False) -> Array:
        """(U, ranks) bits that the formats' formulas expect of tiles with so many nonzeros (6.2).

        `conditional`: fibers have the positions that they have on average if they are not empty.
        """
        kinds, of = np.unique(held, return_inverse=True)
        some = kinds > 0
        found = np.zeros((len(kinds), len(self.ranks)))
        lengths = [rank.length for rank in self.ranks]
        kept = np.zeros(int(some.sum()))  # what the next compressed rank outside keeps together is never empty
        for i, rank in enumerate(self.ranks):
            above, inside = math.prod(lengths[:i]), math.prod(lengths[i:])
            empty = kept if coding.every_fiber else self._empty(rank.box, kinds[some])
            empty_below = self._empty(rank.below, kinds[some])
            fibers, occupied = above * (1.0 - empty), rank.blocks * (1.0 - empty_below)
            if conditional:
                occupied = np.minimum(occupied / np.where(empty < 1.0, 1.0 - empty, 1.0), rank.blocks)
            fiber = Fiber.of(fibers, rank.blocks, occupied, inside, above)
            if coding.every_fiber:
                usual = np.full(len(fibers), 1.0 - float(self.occupancy.empty(rank.below)))
                units = rank.format.encoded(attrs.evolve(fiber, usual=usual))
            else:
                units = rank.format.units(fiber)
            bits = units.metadata * units.metadata_bits
            if i < len(self.ranks) - 1:
                bits = bits + units.payload * units.payload_bits
                if rank.loop in coding.jumps and not np.any(units.payload_bits):
                    entries = above * occupied if rank.format.compressed else fibers * rank.blocks
                    bits = bits + (fibers + entries) * name_bits(inside + 1.0)
            found[some, i] = bits
            if rank.format.compressed:
                kept = empty_below
        return found[of.reshape(-1)]

    def _empty(self, sub: tuple[int, ...], kinds: Array) -> Array:
        if sub == self.tile or not kinds.size:
            return np.zeros(len(kinds))
        # one by one: a model may take neighbouring values for a range
        parts = [self.occupancy.empty_within(sub, self.tile, kinds[i : i + 1]) for i in range(len(kinds))]
        return np.concatenate(parts).astype(np.float64)
