"""Ranks of a tensor's tiles, and metadata bits of real tiles (section 6)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np

from sparsemap import Fiber, Format, Units
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.streams import Coding, TileLayout, block_of, blocks, decode, encode, lay_out, outer_of
from sparsemap.problem.designs import Loop, Rank

from .nest import ExecutedNest, box_words, flat
from .stored import Contents, store_zeros


@attrs.frozen
class TileRank(Rank):
    """A rank of a tensor in the tile of a level."""

    box: tuple[int, ...]
    """Words per tensor rank under one fiber."""
    below: tuple[int, ...]
    """Words per tensor rank under a position, or a block of positions."""
    blocks: int
    """Positions, or blocks, of a fiber."""
    group: tuple[int, ...]
    """Words per tensor rank under a group of positions listed together by the code."""


@attrs.frozen
class Written:
    """Metadata written beyond the formats' own counts (docs/model.md, `run-lengths` and `pointers`)."""

    every_fiber: bool = False
    """Whether all fibers of the formats' codecs are written."""
    jumps: frozenset[Loop] = frozenset()
    """Loops of ranks with offsets."""


PLAIN = Written()


@attrs.frozen(eq=False)
class Bits:
    """Metadata bits of tiles, (tiles, ranks), ranks outer to inner."""

    real: Array
    within: Array
    """Bits of a tile inside the parent's tile; an empty tile takes bits there if its fibers are written."""
    expected: tuple[Array, Array] | None
    """Bits by the formats' formulas for the tile's nonzeros, twice: with the average occupancy of all fibers, and of
    the non-empty fibers. None: the formulas do not apply."""
    held: Array
    """(tiles,) stored words."""


def is_packed(nest: ExecutedNest, tensor: int) -> bool:
    """Whether the tensor is compressed, with metadata at every level except where it is decoded."""
    return any(rank.format.compressed for rank in nest.ranks(tensor))


class ExecutedRanks:
    """The ranks of a tensor in the tile of a level."""

    def __init__(self, nest: ExecutedNest, tensor: int, level: int) -> None:
        level = nest.spans(tensor, level)
        self.nest, self.tensor, self.level = nest, tensor, level
        self.shape, self.tile = nest.shape(tensor), nest.tile(tensor, level)
        self.words = math.prod(self.tile)
        extents = np.ones(len(nest.sizes), dtype=np.int64)
        ranks, cuts = list[TileRank](), list[tuple[int, ...]]()
        for rank in reversed([rank for rank in nest.ranks(tensor) if rank.loop.storage >= level]):
            below, loop = extents.copy(), rank.loop
            for own in rank.loops:
                extents[own.axis] *= own.bound
            block = block_of(rank.format, loop.bound)  # with several loops there are none, nor groups
            group = below.copy()
            group[loop.axis] *= min(rank.format.group, loop.bound)
            box, inner = nest.widths(tensor, extents), nest.widths(tensor, below)
            length = math.prod(-(-outer // own) for outer, own in zip(box, inner, strict=True))
            below[loop.axis] *= block
            rest = nest.widths(tensor, below), -(-length // block), nest.widths(tensor, group)
            cuts.append(inner)
            ranks.append(TileRank(loop, rank.format, length, box, *rest, inner=rank.inner))
        self.ranks, self.cuts = tuple(ranks[::-1]), cuts[::-1]
        self.occupancy = nest.occupancies[tensor]
        self.formats = tuple(rank.format for rank in self.ranks)
        all_ranks = nest.ranks(tensor)
        outside = len(all_ranks) - len(self.ranks)
        self.above = all_ranks[outside - 1] if outside else None
        """The rank outside the tile, whose format determines the tile's stored fibers."""
        every = [rank.format for rank in all_ranks]
        last = max((i for i, form in enumerate(every) if form.compressed), default=0)
        self.by_neighbours = any(form.padded for form in every) or store_zeros(every[:last])
        """Whether fibers are stored because of nonzeros elsewhere; the tile's own nonzeros then do not give their
        number."""

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def built(self) -> bool:
        """Whether tiles are subtrees of the tensor: no sliding windows and no strides."""
        return self.nest.plain(self.tensor)

    @cached_property
    def pieces(self) -> list[Array]:
        """Numbers (L1, .., LR) of the words of a tile, by pieces of it in which all fibers of a rank are equally long. A rank
        cuts its box into boxes of the rank below; where windows overlap, the last of these is smaller."""
        cuts = [self._cut(r, self.tile[r], 0) for r in range(len(self.tile))]
        strides = [math.prod(self.tile[r + 1 :]) for r in range(len(self.tile))]
        found = []
        for parts in itertools.product(*cuts):
            number: Array = np.zeros([1] * (len(self.ranks) * len(parts)), dtype=np.int64)
            for r, (part, stride) in enumerate(zip(parts, strides, strict=True)):
                shape = [length if own == r else 1 for length in part.shape for own in range(len(parts))]
                number = number + stride * part.reshape(shape)
            found.append(
                number.reshape([math.prod(lengths) for lengths in zip(*(p.shape for p in parts), strict=True)])
            )
        return found

    def _cut(self, r: int, size: int, rank: int) -> list[Array]:
        """Coordinates (L1, .., LR) along rank r of the tensor, of parts of `size` words that ranks from `rank` on cut alike."""
        if rank == len(self.ranks):
            return [np.zeros((), dtype=np.int64)]
        below = self.cuts[rank][r]
        full, rest = divmod(size, below)
        begins = below * np.arange(full)
        whole = [begins.reshape(-1, *[1] * part.ndim) + part for part in self._cut(r, below, rank + 1)] if full else []
        return whole + ([(full * below + part)[None] for part in self._cut(r, rest, rank + 1)] if rest else [])

    @cached_property
    def order(self) -> Array:
        """(L1, .., LR) numbers of the words of the tile at the origin, rank by rank."""
        index = self.nest.origins(loop for rank in self.ranks for loop in rank.loops) @ self.nest.access[self.tensor].T
        return flat(index, self.shape).reshape([math.prod(loop.bound for loop in rank.loops) for rank in self.ranks])

    def bits(self, contents: Contents, origins: Array, coding: Written = PLAIN) -> Bits:
        """Bits of the different tiles, at `origins` (U, ranks of the tensor), by tile number."""
        if self.built and self.ranks:
            return self._built(contents, coding)
        words = flat(origins[:, None] + box_words(self.tile), self.shape)
        if not self.ranks and self.nest.slots(self.tensor)[-1].of_one_word:
            return self._lone(contents.kept[words[:, 0]])
        stored = contents.stored.values.reshape(-1)[words] > 0
        held, sizes = stored.sum(axis=1), np.zeros((len(origins), len(self.ranks)))
        for piece in self.pieces if self.ranks else ():
            tiles = stored[:, piece]
            sizes += self._encoded(tiles, None, coding) if coding.every_fiber else self._counted(tiles, None, coding)
        if coding != PLAIN:
            return Bits(np.where(held[:, None] > 0, sizes, 0.0), sizes, None, held)
        return Bits(sizes, sizes, self._expected(held), held)

    def _encoded(self, tiles: Array, layout: TileLayout | None, coding: Written) -> Array:
        """(tiles, ranks) bits of the streams that the codecs write, which bring the tiles (U, L1, .., LR) back."""
        codes = self.coding(coding, tiles.shape[1:])
        layout = layout or lay_out(tiles, self.formats, every_fiber=True)
        stream = encode(tiles, codes, layout)
        assert np.array_equal(decode(stream, codes, layout), tiles)
        return stream.sizes

    def _lone(self, held: Array) -> Bits:
        """Bits of tiles of one word, `held` (U,) bool: a fiber of a single position each, outside every outer
        structure."""
        units = self.nest.slots(self.tensor)[-1].units(Fiber.of(np.ones(1), 1.0, np.ones(1), 1.0))
        each = float(np.sum(np.asarray(units.metadata) * units.metadata_bits))
        real = np.where(held, each, 0.0)[:, None]
        return Bits(real, np.zeros_like(real), (real, real), held.astype(np.float64))

    def _built(self, contents: Contents, coding: Written) -> Bits:
        """Bits of built structures; tiles are the subtrees of the tensor with the ranks of this level."""
        lengths = [rank.length for rank in self.ranks]
        by_origin = np.argsort(contents.order.reshape(-1, self.words)[:, 0])

        def tiles_of(part: Array, ranks: int = len(lengths)) -> Array:
            """(tiles, L1, ..) of an array over the tensor's ranks down to the tile's first `ranks` ranks."""
            return part.reshape(-1, *lengths[:ranks])[by_origin]

        tiles, layout = tiles_of(contents.tree), contents.written if coding.every_fiber else contents.layout
        if layout is not None:
            first = len(layout.fibers) - len(lengths)
            fibers = tuple(tiles_of(part, rank) for rank, part in enumerate(layout.fibers[first:]))
            positions = tuple(tiles_of(part, rank + 1) for rank, part in enumerate(layout.positions[first:]))
            layout = TileLayout(fibers, positions, tiles_of(layout.words))
        held = tiles_of(contents.kept[contents.order]).reshape(len(tiles), -1).sum(axis=1)
        if coding.every_fiber:
            sizes = self._encoded(tiles, layout, coding)
            return Bits(np.where(held[:, None] > 0, sizes, 0.0), sizes, None, held)
        counted = self._counted(tiles, layout, coding)
        if coding != PLAIN:
            return Bits(np.where(held[:, None] > 0, counted, 0.0), counted, None, held)
        expected = self._expected(tiles.reshape(len(tiles), -1).sum(axis=1))
        return Bits(counted, counted, expected, held)

    def coding(self, coding: Written, lengths: Sequence[int]) -> Coding:
        """Coding of ranks with `lengths` positions."""
        above = self.above
        outer = outer_of(None if above is None else above.format, above is not None and above.loop in coding.jumps)
        offsets = [rank.loop in coding.jumps for rank in self.ranks]
        usual = [self._usual(rank) for rank in self.ranks]
        even = [self._even(rank) for rank in self.ranks]
        return Coding.of(self.formats, lengths, outer, usual, offsets, even=even)

    def _usual(self, rank: TileRank) -> float:
        return min(1.0, max(0.0, 1.0 - float(self.occupancy.empty(rank.below))))

    def _even(self, rank: TileRank) -> int:
        """`RankShape.even`: nonzeros per group, if groups have equal size, none is empty, and the mean is a whole
        number; else 0."""
        size = min(rank.format.group, rank.length)
        each = self._usual(rank) * size
        equal = rank.format.group > 1 and not rank.length % size and float(self.occupancy.empty(rank.group)) == 0.0
        return round(each) if equal and abs(each - round(each)) < 1e-9 else 0

    def _counted(self, tiles: Array, layout: TileLayout | None, coding: Written) -> Array:
        """(tiles, ranks) bits by the formats' own units, with the real occupancy of every fiber."""
        lengths, layout = tiles.shape[1:], layout or lay_out(tiles, self.formats)
        bits = np.zeros((len(tiles), len(self.ranks)))
        for i, rank in enumerate(self.ranks):
            exists = np.flatnonzero(layout.fibers[i])
            rows = blocks(layout.positions[i].reshape(-1, lengths[i])[exists], block_of(rank.format, lengths[i]))
            there = rows.sum(axis=1)
            one = Fiber.of(np.ones(len(rows)), rows.shape[1], there, math.prod(lengths[i:]))
            fiber = attrs.evolve(one, longest=there.astype(np.float64)) if rank.format.padded else one
            each = self._bits_of(i, rank.format, rank.format.units(fiber), fiber, coding)
            bits[:, i] = np.bincount(exists // max(1, math.prod(lengths[:i])), each, len(tiles))
        return bits

    def _bits_of(self, i: int, form: Format, units: Units, fiber: Fiber, coding: Written) -> Array:
        """Bits of a rank, including links to the rank below, if any."""
        bits = np.zeros(len(fiber.length)) + units.metadata * units.metadata_bits
        if i == len(self.ranks) - 1:
            return bits
        jumps = self.ranks[i].loop in coding.jumps and not np.any(units.payload_bits)
        if jumps or (coding.every_fiber and form.offsets):
            there = fiber.slots * fiber.occupied if form.compressed else fiber.fibers * fiber.length
            return bits + (fiber.fibers + there) * fiber.offset_bits
        return bits + units.payload * units.payload_bits

    def _expected(self, held: Array) -> tuple[Array, Array] | None:
        """`Bits.expected`: with the average of all fibers, as in the analytic model, and without the empty fibers."""
        if self.by_neighbours:
            return None
        try:
            return self._formula(held), self._formula(held, conditional=True)
        except ValueError:  # a density model that knows only some occupancies
            return None

    def _formula(self, held: Array, coding: Written = PLAIN, conditional: bool = False) -> Array:
        """(U, ranks) bits expected by the formats' formulas for tiles with `held` nonzeros (6.2).

        `conditional`: fibers have the mean occupancy of non-empty fibers."""
        kinds, of = np.unique(held, return_inverse=True)
        some = kinds > 0
        found = np.zeros((len(kinds), len(self.ranks)))
        codes = self.coding(coding, [rank.length for rank in self.ranks])
        kept = np.zeros(int(some.sum()))  # what the next compressed rank outside keeps together is never empty
        for i, rank in enumerate(self.ranks):
            inside = math.prod(rank.box)
            above = self.words / inside
            empty = kept if coding.every_fiber else self._empty(rank.box, kinds[some])
            empty_below = self._empty(rank.below, kinds[some])
            fibers, occupied = above * (1.0 - empty), rank.blocks * (1.0 - empty_below)
            if conditional:
                occupied = np.minimum(occupied / np.where(empty < 1.0, 1.0 - empty, 1.0), rank.blocks)
            fiber = Fiber.of(fibers, rank.blocks, occupied, inside, above)
            units = rank.format.units(fiber)
            if coding.every_fiber:
                count = math.ceil(rank.blocks / rank.format.group)
                groups = count * (1.0 - self._empty(rank.group, kinds[some]))
                fiber = attrs.evolve(fiber, usual=np.full(len(fibers), self._usual(rank)), groups=groups)
                units = rank.format.encoded(fiber, codes.shapes[i].outer)
            bits = self._bits_of(i, rank.format, units, fiber, coding)
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
