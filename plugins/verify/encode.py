"""Metadata of real tiles: the structures of the formats, built for all tiles at once, counted, and decoded again.

A tile is a tree of fibers: rank after rank, a fiber lists positions, each the fiber of the rank below. Which of them
exist says `stored`. A payload links a position to the rank below; that of the innermost rank is the data itself.

Which structure a format has is read off its own formula, so that a format from anywhere is built if its units are those
of a bitmask, of coordinates, of run lengths or of offsets. For others the formula is given the real occupancy of every
single fiber, and nothing is decoded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap import Fiber, Format
from sparsemap.pieces.contracts.base import Array

from . import runs
from .stored import Layout, blocks, lay_out

BITMASK, COORDINATE, RUN_LENGTH, OFFSETS, FORMULA = "bitmask", "coordinate", "run-length", "offsets", "formula"
TOKENS = "tokens"
"""Run lengths as an encoder writes them, see `runs.py`."""


@attrs.frozen(eq=False)
class Stream:
    """One rank of many tiles: what a memory would hold, fiber after fiber."""

    structure: str
    length: int
    """Positions of a fiber, or blocks of them."""
    values: Array
    """bitmask (fibers, L) bool; coordinates or run lengths, one per occupied position; offsets (fibers, L + 1)."""
    ends: Array
    """(fibers,) where the fiber's values end: the link that the rank above holds."""
    metadata: Array
    """(fibers,) units."""
    payload: Array
    whole: bool = False
    """Every position is there, whatever the offsets say of the words below it."""
    width: int = 0
    """Bits of a token."""

    def positions(self) -> Array:
        """(fibers, L) bool, decoded: which positions are occupied."""
        if self.whole:
            return np.ones((len(self.ends), self.length), dtype=bool)
        if self.structure == OFFSETS:
            return np.diff(self.values, axis=1) > 0
        if self.structure in (BITMASK, FORMULA):
            return self.values
        if self.structure == TOKENS:
            return runs.decode(self.values, self.ends, self.length, self.width)
        found = np.zeros((len(self.ends), self.length), dtype=bool)
        fiber = np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))
        at = self.values
        if self.structure == RUN_LENGTH:
            running = np.cumsum(at + 1)
            begins = np.concatenate([[0], self.ends])[fiber]
            before = np.concatenate([[0], running])[begins]
            at = running - before - 1
        found[fiber, at] = True
        return found

    def largest_value(self) -> int:
        return int(self.values.max(initial=0)) if self.structure != BITMASK else 1


def structure_of(form: Format) -> str:
    """The structure whose units the format's formula counts, or `FORMULA`."""
    lengths = np.array([7.0, 7.0, 20.0, 64.0])
    occupied = np.array([2.5, 7.0, 3.25, 40.0])
    threes = np.full(4, 3.0)
    own = occupied
    if form.padded:  # all fibers have the positions of the longest one, which are a whole number
        own, occupied = occupied / 2, np.ceil(occupied)
    units = form.units(Fiber(threes, lengths, own, threes, threes, threes, longest=occupied))
    got = np.broadcast_to(units.metadata, 4), np.broadcast_to(units.payload, 4)
    whole = 3 * np.ceil(occupied)
    zero = np.zeros(4)
    known = {
        BITMASK: (3 * lengths, whole),
        COORDINATE: (whole, whole),
        RUN_LENGTH: (3 * occupied, 3 * occupied),
        OFFSETS: (zero, 3 * (lengths + 1)),
    }
    for name, (metadata, payload) in known.items():
        no_payload = name in (BITMASK, COORDINATE, RUN_LENGTH) and not np.any(got[1])
        if np.allclose(got[0], metadata) and (no_payload or np.allclose(got[1], payload)):
            return name
    return FORMULA


def build(
    form: Format, rows: Array, weights: Array, below: int, whole: bool = False, width: int = 0, encoded: bool = False
) -> Stream:
    """The structure of one rank. `rows` (fibers, L) bool: stored positions or blocks; `weights`: words under each.

    `below`: words under a position, stored or not; `whole`: see `Stream`; `width`: bits of a token, 0: run lengths have
    no escapes; `encoded`: formulas are those of an encoder.
    """
    structure = structure_of(form)
    count, length = rows.shape
    occupied = rows.sum(axis=1)
    fiber, at = np.nonzero(rows)
    ends = np.cumsum(occupied)
    if structure == BITMASK:
        return Stream(structure, length, rows, ends, np.full(count, length), occupied)
    if structure == COORDINATE:
        return Stream(structure, length, at, ends, occupied, occupied)
    if structure == RUN_LENGTH and width:
        tokens, count_of = runs.encode(rows, width)
        return Stream(TOKENS, length, tokens, np.cumsum(count_of), count_of, occupied, width=width)
    if structure == RUN_LENGTH:
        new = np.diff(fiber, prepend=-1) > 0
        empty = np.where(new, at, np.diff(at, prepend=0) - 1)
        return Stream(structure, length, empty, ends, occupied, occupied)
    if structure == OFFSETS:
        offsets = np.concatenate([np.zeros((count, 1), dtype=np.int64), np.cumsum(weights, axis=1)], axis=1)
        return Stream(structure, length, offsets, ends, np.zeros(count), np.full(count, length + 1), whole)
    one = Fiber.of(np.ones(count), length, occupied, length * below)
    count_units = form.encoded if encoded else form.units
    units = count_units(attrs.evolve(one, longest=occupied) if form.padded else one)
    both = units.metadata, units.payload
    metadata, payload = (np.broadcast_to(np.asarray(x, dtype=np.float64), count) for x in both)
    return Stream(FORMULA, length, rows, ends, metadata, payload, whole)


@attrs.frozen(eq=False)
class Encoded:
    """The ranks of some tiles, outer to inner."""

    streams: tuple[Stream, ...]
    tile_of: tuple[Array, ...]
    """Per rank, (fibers,) the tile of each fiber."""
    tiles: int
    bits: Array
    """(tiles, ranks) bits of metadata and payload."""
    too_wide: int
    """Values that do not fit in the bits that the format gives them."""
    lengths: tuple[int, ...]
    blocks: tuple[int, ...]
    """Positions that a value of each rank stands for."""
    data: Array
    """(words stored,) bool: the data, zeros among them, in the order of the ranks."""


def encode(
    tiles: Array, formats: Sequence[Format], layout: Layout | None = None, widths: Sequence[int] = (),
    jumps: Sequence[bool] = (),
) -> Encoded:  # fmt: skip
    """Tiles (U, L1, .., LR) bool, one format per rank; `layout` if more than the tiles decides what is stored.

    `widths`: per rank, bits of the tokens of a run-length rank; `jumps`: ranks with an offset for every position that is
    there, and for the end, besides what the format stores.
    """
    count, lengths = len(tiles), tiles.shape[1:]
    layout = layout or lay_out(tiles, formats)
    streams, owners, sizes = [], [], []
    bits = np.zeros((count, len(formats)))
    too_wide = 0
    for rank, form in enumerate(formats):
        block = min(form.block, lengths[rank]) if form.compressed else 1
        exists = np.flatnonzero(layout.fibers[rank])
        rows = layout.positions[rank].reshape(-1, lengths[rank])[exists]
        inside = tuple(range(rank + 2, tiles.ndim))
        weights = layout.words.sum(axis=inside, dtype=np.int64).reshape(-1, lengths[rank])[exists]
        below = math.prod(lengths[rank + 1 :])
        whole = not form.compressed and bool(rows.all())
        width = widths[rank] if widths else 0
        stream = build(form, blocks(rows, block), weights, below * block, whole, width, bool(widths))
        owner = exists // max(1, math.prod(lengths[:rank]))
        full = np.full(1, float(stream.length))
        units = form.units(Fiber.of(np.ones(1), stream.length, full, lengths[rank] * below))
        last = rank == len(formats) - 1
        wide = [float(np.max(units.metadata_bits)), 0.0 if last else float(np.max(units.payload_bits))]
        if stream.structure == TOKENS:
            wide[0] = float(width)
        bits[:, rank] = np.bincount(owner, stream.metadata * wide[0] + stream.payload * wide[1], count)
        named = wide[1] if stream.structure == OFFSETS else wide[0]
        if jumps and jumps[rank] and not wide[1]:
            bits[:, rank] += _offsets(rows, weights, owner, count, lengths[rank] * below, form.compressed)
        if stream.structure != FORMULA and 0 < named < 62 and stream.largest_value() >= 2**named:
            too_wide += int((stream.values >= 2**named).sum())
        streams.append(stream)
        owners.append(owner)
        sizes.append(block)
    data = tiles[layout.words]
    return Encoded(tuple(streams), tuple(owners), count, bits, too_wide, lengths, tuple(sizes), data)


def _offsets(rows: Array, weights: Array, owner: Array, tiles: int, words: int, compressed: bool) -> Array:
    """(tiles,) bits of the offsets of a rank, which are stored and read again: each names the data below a position."""
    there = rows if compressed else np.ones_like(rows)
    fiber, at = np.nonzero(there)
    length = np.where(there, weights, 0)
    ends = np.cumsum(length, axis=1)
    begins = (ends - length)[fiber, at]  # the offsets: the first of a fiber is 0, and its last is the end
    following = np.append(begins, 0)[1:]
    last = np.append(np.diff(fiber) > 0, True)[: len(fiber)]
    following[last] = ends[fiber[last], -1]
    if not np.array_equal(following - begins, weights[fiber, at]):
        raise AssertionError("offsets lead to other words than those below their positions")
    width = 1
    while 2**width < words + 1:
        width *= 2
    return np.bincount(owner, there.sum(axis=1) + 1.0, tiles) * width


def decode(encoded: Encoded) -> Array:
    """The tiles again, from the streams, the data, and from which tiles are stored at all."""
    lengths = encoded.lengths
    found = np.zeros((encoded.tiles, math.prod(lengths)), dtype=bool)
    if not lengths:
        return found
    fibers = np.unique(encoded.tile_of[0])
    for stream, length, block in zip(encoded.streams, lengths, encoded.blocks, strict=True):
        fiber, at = np.nonzero(np.repeat(stream.positions(), block, axis=1)[:, :length])
        fibers = fibers[fiber] * length + at
    if len(fibers) != len(encoded.data):
        raise AssertionError("metadata name other words than those that are stored")
    found.reshape(-1)[fibers] = encoded.data
    return found.reshape(encoded.tiles, *lengths)
