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
from sparsemap.pieces.contracts.sparsity import name_bits

from . import runs
from .stored import Layout, blocks, lay_out

BITMASK, COORDINATE, RUN_LENGTH, OFFSETS, FORMULA = "bitmask", "coordinate", "run-length", "offsets", "formula"


@attrs.frozen(eq=False)
class Stream:
    """One rank of many tiles: what a memory would hold, fiber after fiber."""

    structure: str
    length: int
    """Positions of a fiber, or blocks of them."""
    block: int
    """Positions that one of them stands for."""
    values: Array
    """bitmask (fibers, L) bool; coordinates or run lengths, one per occupied position; offsets (fibers, L + 1); tokens."""
    ends: Array
    """(fibers,) where the fiber's values end: the link that the rank above holds."""
    metadata: Array
    """(fibers,) units."""
    payload: Array
    whole: bool = False
    """Every position is there, whatever the offsets say of the words below it."""
    width: int = 0
    """Bits of a token, if run lengths are as an encoder writes them, see `runs.py`; else 0."""

    def positions(self) -> Array:
        """(fibers, L) bool, decoded: which positions are occupied."""
        if self.whole:
            return np.ones((len(self.ends), self.length), dtype=bool)
        if self.structure == OFFSETS:
            return np.diff(self.values, axis=1) > 0
        if self.structure in (BITMASK, FORMULA):
            return self.values
        if self.width:
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


def build(form: Format, rows: Array, weights: Array, below: int, block: int, width: int | None) -> Stream:
    """The structure of one rank. `rows` (fibers, L) bool: stored positions; `weights`: words under each.

    `below`: words under a position, stored or not; `width`: an encoder writes, run lengths as tokens of so many bits
    (0: without escapes); None: as the format's units are counted.
    """
    structure = structure_of(form)
    whole = not form.compressed and bool(rows.all())
    rows = blocks(rows, block)
    count, length = rows.shape
    metadata = payload = occupied = rows.sum(axis=1)
    values, ends = rows, np.cumsum(occupied)
    fiber, at = np.nonzero(rows)
    if structure == BITMASK:
        metadata = np.full(count, length)
    elif structure == COORDINATE:
        values = at
    elif structure == RUN_LENGTH and width:
        values, metadata = runs.encode(rows, width)
        ends = np.cumsum(metadata)
    elif structure == RUN_LENGTH:
        values = np.where(np.diff(fiber, prepend=-1) > 0, at, np.diff(at, prepend=0) - 1)
    elif structure == OFFSETS:
        values = np.cumsum(np.insert(weights, 0, 0, axis=1), axis=1)
        metadata, payload = np.zeros(count), np.full(count, length + 1)
    else:
        one = Fiber.of(np.ones(count), length, occupied, length * block * below)
        count_units = form.units if width is None else form.encoded
        units = count_units(attrs.evolve(one, longest=occupied) if form.padded else one)
        metadata, payload = (np.zeros(count) + part for part in (units.metadata, units.payload))
    return Stream(structure, length, block, values, ends, metadata, payload, whole, width or 0)


@attrs.frozen(eq=False)
class Encoded:
    """The ranks of some tiles (U, L1, .., LR), outer to inner."""

    shape: tuple[int, ...]
    streams: tuple[Stream, ...]
    stored: Array
    """Tiles of the fibers of the outermost rank."""
    bits: Array
    """(tiles, ranks) bits of metadata and payload."""
    too_wide: int
    """Values that do not fit in the bits that the format gives them."""
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
    streams = []
    bits = np.zeros((count, len(formats)))
    too_wide = 0
    for rank, form in enumerate(formats):
        block = min(form.block, lengths[rank]) if form.compressed else 1
        exists = np.flatnonzero(layout.fibers[rank])
        rows = layout.positions[rank].reshape(-1, lengths[rank])[exists]
        inside = tuple(range(rank + 2, tiles.ndim))
        weights = layout.words.sum(axis=inside, dtype=np.int64).reshape(-1, lengths[rank])[exists]
        below = math.prod(lengths[rank + 1 :])
        stream = build(form, rows, weights, below, block, widths[rank] if widths else None)
        owner = exists // max(1, math.prod(lengths[:rank]))
        full = np.full(1, float(stream.length))
        units = form.units(Fiber.of(np.ones(1), stream.length, full, lengths[rank] * below))
        metadata_bits = float(stream.width or np.max(units.metadata_bits))
        payload_bits = float(np.max(units.payload_bits)) if rank < len(formats) - 1 else 0.0
        bits[:, rank] = np.bincount(owner, stream.metadata * metadata_bits + stream.payload * payload_bits, count)
        if jumps and jumps[rank] and not payload_bits:
            bits[:, rank] += _offsets(rows, weights, owner, count, lengths[rank] * below, form.compressed)
        named = payload_bits if stream.structure == OFFSETS else metadata_bits
        if 0 < named < 62:
            too_wide += int((stream.values >= 2**named).sum())
        streams.append(stream)
    first = np.flatnonzero(layout.fibers[0]) if formats else np.zeros(0, dtype=np.int64)
    return Encoded(tiles.shape, tuple(streams), first, bits, too_wide, tiles[layout.words])


def _offsets(rows: Array, weights: Array, owner: Array, tiles: int, words: int, compressed: bool) -> Array:
    """(tiles,) bits of the offsets of a rank, which are stored and read again: each names the data below a position."""
    there = rows if compressed else np.ones_like(rows)
    fiber, _ = np.nonzero(there)
    begins = (np.cumsum(weights, axis=1) - weights)[
        there
    ]  # the offsets: the first of a fiber is 0, and its last the end
    ends = np.append(begins, 0)[1:]
    last = np.append(np.diff(fiber) > 0, True)[: len(fiber)]
    ends[last] = weights.sum(axis=1)[fiber[last]]
    if not np.array_equal(ends - begins, weights[there]):
        raise AssertionError("offsets lead to other words than those below their positions")
    return np.bincount(owner, there.sum(axis=1) + 1.0, tiles) * float(name_bits(words + 1.0))


def decode(encoded: Encoded) -> Array:
    """The tiles again, from the streams, the data, and from which tiles are stored at all."""
    found = np.zeros(encoded.shape, dtype=bool)
    fibers = encoded.stored
    for stream, length in zip(encoded.streams, encoded.shape[1:], strict=True):
        fiber, at = np.nonzero(np.repeat(stream.positions(), stream.block, axis=1)[:, :length])
        fibers = fibers[fiber] * length + at
    if len(fibers) != len(encoded.data):
        raise AssertionError("metadata name other words than those that are stored")
    found.reshape(-1)[fibers] = encoded.data
    return found
