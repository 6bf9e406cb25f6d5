"""Tiles as bits: encoding by the codecs of a tensor's ranks, rank after rank, and decoding.

A tile is a tree of fibers: a fiber lists positions, each with a fiber of the rank below. The stream of a rank holds the
fibers in the order of storage, then the fibers' offsets, if the format has offsets. A decoder reads a stream from the
bits, the shape and the facts from the streams of outer ranks, nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from .boundary import guarded, numbers, wrong
from .contracts import Format, Outer
from .contracts.base import Array
from .contracts.codec import BitReader, Code, RankShape

UNTOLD = Outer()
"""For the outermost rank: no facts from outside."""


@attrs.frozen(eq=False)
class TileLayout:
    """Stored fibers, positions and words of tiles (U, L1, .., LR), or of one tensor, U = 1."""

    fibers: tuple[Array, ...]
    """Per rank, (U, L1, .., the rank above) bool: the fiber is stored."""
    positions: tuple[Array, ...]
    """Per rank, (U, L1, .., the rank) bool: positions listed by the fibers, or on the way to a stored fiber."""
    words: Array
    """(U, L1, .., LR) bool: words of data."""


def lay_out(tiles: Array, formats: Sequence[Format], padding: bool = True, every_fiber: bool = False) -> TileLayout:
    """Stored parts of tiles. `padding`: pad fibers, to the fullest fiber of all tiles; `every_fiber`: write all fibers
    below stored positions, empty fibers too, as a decoder needs."""
    exists: Array = np.ones(len(tiles), dtype=bool)
    first = next((form for form in formats if form.compressed), None)
    every = every_fiber or (first is not None and first.padded and padding)  # which stores empty fibers, too
    fibers, positions = [], []
    for rank, form in enumerate(formats):
        occupied: Any = tiles.any(axis=tuple(range(rank + 2, tiles.ndim)))
        found = exists if every else exists & occupied.any(axis=-1)
        if form.compressed:
            kept: Array = _kept(occupied, found, form, padding)
            every = True  # below it
        else:
            kept = np.ones_like(occupied) if every else occupied
        exists = kept & found[..., None]
        fibers.append(found)
        positions.append(exists)
    return TileLayout(tuple(fibers), tuple(positions), exists)


def _kept(occupied: Array, fibers: Array, form: Format, padding: bool) -> Array:
    """Positions stored by a compressed rank, (.., L) bool."""
    kept = blocks(occupied, form.block)
    if form.padded and padding:
        count = kept.sum(axis=-1, keepdims=True)
        missing = np.max(count[fibers], initial=0) - count
        kept = kept | (np.cumsum(~kept, axis=-1) <= missing)  # the first empty positions serve as padding
    return np.repeat(kept, form.block, axis=-1)[..., : occupied.shape[-1]] if form.block > 1 else kept


def blocks(positions: Array, block: int) -> Array:
    """(.., L) bool -> (.., ceil(L / block)): whether any position of the block is set."""
    if block == 1:
        return positions
    return np.logical_or.reduceat(positions, np.arange(0, positions.shape[-1], block), axis=-1)


def outer_of(above: Format | None, offsets: bool = False) -> Outer:
    """Facts about a rank's fibers known from the rank above; `offsets`: the rank above has offsets besides those of its
    format."""
    if above is None:
        return UNTOLD
    filled = above.compressed and above.block == 1 and not above.padded
    return Outer(above.offsets or offsets, filled)


@attrs.frozen(eq=False)
class Coding:
    """Coding of the ranks of a tensor, outer to inner."""

    formats: tuple[Format, ...]
    lengths: tuple[int, ...]
    offsets: tuple[bool, ...]
    """Ranks with offsets, from the format or additional."""
    shapes: tuple[RankShape, ...]

    @classmethod
    def of(
        cls, formats: Sequence[Format], lengths: Sequence[int], outer: Outer = UNTOLD, usual: Sequence[float] = (),
        offsets: Sequence[bool] = (), exact: bool = False, even: Sequence[int] = (),
    ) -> Coding:  # fmt: skip
        """Coding from formats and fiber lengths. `outer`: facts from ranks outside; `usual`: fill per rank in the whole
        tensor; `offsets`: ranks with additional offsets; `exact`: widths are not rounded; `even`: as in `RankShape`."""
        inner = len(formats) - 1
        more = [(form.offsets or bool(offsets and offsets[rank])) and rank < inner for rank, form in enumerate(formats)]
        shapes = []
        for rank, form in enumerate(formats):
            count = math.ceil(lengths[rank] / block_of(form, lengths[rank]))
            share, alike = usual[rank] if usual else 0.5, even[rank] if even else 0
            shapes.append(RankShape.of(count, math.prod(lengths[rank:]), outer, share, exact, alike))
            outer = outer_of(form, more[rank])
        return cls(tuple(formats), tuple(lengths), tuple(more), tuple(shapes))


def block_of(form: Format, length: int) -> int:
    """Positions of a fiber stored together."""
    return min(form.block, length) if form.compressed else 1


@attrs.frozen(eq=False)
class TileStream:
    """Bits of some tiles."""

    ranks: tuple[Array, ...]
    """Per rank, bits of all tiles, tile after tile."""
    sizes: Array
    """(tiles, ranks) number of bits."""
    ends: Array | None
    """(fibers,) entries of the outermost fibers, to be known from a rank outside; None: the code marks the ends."""
    roots: Array
    """(tiles,) bool: whether anything of the tile is stored."""
    data: Array
    """(words stored,) bool: whether a word is nonzero, in the order of the ranks."""


def encode(tiles: Array, coding: Coding, layout: TileLayout | None = None) -> TileStream:
    """Encodes tiles (U, L1, .., LR) bool; pass `layout` if stored parts depend on more than the tiles."""
    layout = layout or lay_out(tiles, coding.formats, every_fiber=True)
    count, lengths = len(tiles), coding.lengths
    codes: list[Code] = []
    places: list[tuple[Array, Array, Array]] = []
    for rank, form in enumerate(coding.formats):
        exists = np.flatnonzero(layout.fibers[rank])
        rows = layout.positions[rank].reshape(-1, lengths[rank])[exists]
        owner = exists // max(1, math.prod(lengths[:rank]))
        inside = tuple(range(rank + 2, tiles.ndim))
        words = layout.words.sum(axis=inside, dtype=np.int64).reshape(-1, lengths[rank])[exists]
        with guarded(form, "encode"):
            stored = blocks(rows, block_of(form, lengths[rank]))
            codes.append(form.encode(stored, coding.shapes[rank], owner) if len(rows) else Code.of(0, []))
        places.append((rows, owner, words))
    streams, sizes = [], np.zeros((count, len(codes)))
    for rank, code in enumerate(codes):
        rows, owner, words = places[rank]
        bits, each = [code.bits], code.sizes
        if coding.offsets[rank]:
            below = codes[rank + 1].entries
            led = _offsets(rows, words[rows] if below is None else below, coding.shapes[rank].offset_bits)
            bits, each = [code.bits, led.bits], code.sizes + led.sizes
        streams.append(np.concatenate(bits))
        sizes[:, rank] = np.bincount(owner, each, count)
    ends = codes[0].entries if codes else None
    return TileStream(tuple(streams), sizes, ends, layout.fibers[0] if codes else layout.words, tiles[layout.words])


def _offsets(rows: Array, below: Array, width: int) -> Code:
    """Offsets of stored positions: the begin of the part below each position (m,), relative to the begin of its fiber,
    and the end of the last part."""
    count = len(rows)
    fiber = np.nonzero(rows)[0]
    running = np.cumsum(below)
    number = rows.sum(axis=1)
    last = np.cumsum(number)
    start = np.concatenate([[0], running])[last - number]  # before each fiber
    begins = running - below - start[fiber]
    ends = np.concatenate([[0], running])[last] - start
    return Code.of(count, [(fiber, begins, width), (np.arange(count), ends, width)])


def decode(stream: TileStream, coding: Coding, layout: TileLayout | None = None) -> Array:
    """Inverse of `encode`, tiles (U, L1, .., LR) bool: positions from the bits, zeros among the stored words from the
    data.

    PluginError with the name of the format if bits are left over, or if the tiles differ from a given `layout`;
    ValueError if the bits do not match the stored data."""
    lengths = coding.lengths
    fibers = np.flatnonzero(stream.roots)
    owner, ends = fibers, stream.ends if coding.shapes and coding.shapes[0].outer.ends else None
    for rank, form in enumerate(coding.formats):
        reader, shape, length = BitReader(stream.ranks[rank]), coding.shapes[rank], lengths[rank]
        with guarded(form, "decode"):
            none = np.zeros((0, shape.length), dtype=bool)
            rows = form.decode(reader, shape, owner, ends) if len(owner) else none
        rows = numbers(form, "decode", "rows", rows, (len(owner), shape.length), "b")
        rows = np.repeat(rows, block_of(form, length), axis=1)[:, :length]
        fiber, at = np.nonzero(rows)
        if coding.offsets[rank]:
            number = rows.sum(axis=1)
            found = reader.many(int(number.sum()) + len(rows), shape.offset_bits)
            first = np.cumsum(number + 1) - number - 1
            keep = np.ones(len(found), dtype=bool)
            keep[first + number] = False  # the last offset of a fiber is an end, and no beginning
            ends = (np.append(found[1:], 0) - found)[keep]
        else:
            ends = None
        if reader.at != len(reader.bits):
            raise wrong(form, "decode", f"leaves {len(reader.bits) - reader.at} bits over")
        fibers, owner = fibers[fiber] * length + at, owner[fiber]
        if layout and not np.array_equal(fibers, np.flatnonzero([*layout.fibers[1:], layout.words][rank])):
            raise wrong(form, "decode", "does not bring back what encode has written")
    if len(fibers) != len(stream.data):
        raise ValueError(f"the bits name {len(fibers)} words where {len(stream.data)} are stored")
    tiles = np.zeros((len(stream.roots), *lengths), dtype=bool)
    tiles.reshape(-1)[fibers] = stream.data
    return tiles
