"""Occupancy tables: everything that depends on a tile and its density is computed once per distinct tile, then looked up.

Keys are 64-bit fingerprints of the integers that determine an entry (two different tiles share one with a probability of
about n^2 / 2^64 for n entries: 10^-9 for a hundred thousand). The tables live as long as the problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from sparsemap import Fiber, Format

from .layout import Layout

Array = np.ndarray
MIX = np.uint64(0x9E3779B97F4A7C15)
ODD = [np.uint64(2 * int(x) + 1) for x in np.random.default_rng(20250101).integers(1 << 62, 1 << 63, 64)]
"""Fixed odd multipliers, one per component of a fingerprint."""


def fingerprint(parts: list[Array], first: int = 0) -> Array:
    """(N,) uint64 from integer-valued float64 arrays."""
    key = np.zeros(parts[0].shape, dtype=np.uint64)
    for i, part in enumerate(parts):
        key += part.astype(np.int64).view(np.uint64) * ODD[first + i]
    return key


class Table:
    """A growing hash map from fingerprints to rows of float64, looked up for whole arrays (linear probing)."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.count = 0
        self._resize(10)

    def _resize(self, bits: int) -> None:
        self.bits, self.shift = bits, np.uint64(64 - bits)
        self.keys = np.zeros(1 << bits, dtype=np.uint64)
        self.values = np.zeros((self.width, 1 << bits))

    def _home(self, keys: Array) -> Array:
        return ((keys * MIX) >> self.shift).astype(np.int64)

    def find(self, keys: Array, fill: Callable[[Array], Array]) -> Array:
        """Values (width, N) of all keys (N,). `fill(first)` gets one position in `keys` per missing distinct key,
        (n,), and returns their values (width, n)."""
        keys = keys | np.uint64(1)
        place, missing = self._probe(keys)
        if missing.size:
            distinct, first = np.unique(keys[missing], return_index=True)
            self._insert(distinct, fill(missing[first]))
            place, _ = self._probe(keys)
        return self.values[:, place]

    def _probe(self, keys: Array) -> tuple[Array, Array]:
        place = self._home(keys)
        found = self.keys[place]
        wrong = np.flatnonzero(found != keys)
        missing = []
        mask = (1 << self.bits) - 1
        while wrong.size:
            empty = self.keys[place[wrong]] == 0
            if empty.any():
                missing.append(wrong[empty])
                wrong = wrong[~empty]
            place[wrong] = (place[wrong] + 1) & mask
            wrong = wrong[self.keys[place[wrong]] != keys[wrong]]
        return place, np.concatenate(missing) if missing else np.zeros(0, dtype=np.int64)

    def _insert(self, keys: Array, values: Array) -> None:
        needed = self.count + len(keys)
        if needed * 4 > len(self.keys):
            old = np.flatnonzero(self.keys)
            old_keys, old_values = self.keys[old], self.values[:, old]
            self._resize(max(self.bits + 1, int(needed * 8 - 1).bit_length()))
            self._place(old_keys, old_values)
        self._place(keys, values)
        self.count = needed

    def _place(self, keys: Array, values: Array) -> None:
        mask = (1 << self.bits) - 1
        for key, home, value in zip(keys, self._home(keys), values.T, strict=True):
            place = int(home)
            while self.keys[place]:
                place = (place + 1) & mask
            self.keys[place] = key
            self.values[:, place] = value


@attrs.frozen(eq=False)
class Tile:
    """The occupancy of one tile: probabilities over k with or without the empty tile."""

    k: Array
    p: Array
    occupied: float
    """Probability that the tile is sent at all: 1, or 1 - P(empty) where empty tiles are left out."""


class TensorTables:
    """The tables of one tensor: tiles, empty leader tiles, and ranks of tiles."""

    EMPTY_SENT, DENSITY_SENT, OCCUPIED, DENSITY, LARGEST = range(5)
    METADATA, PAYLOAD, LARGEST_METADATA, LARGEST_PAYLOAD, METADATA_BITS, PAYLOAD_BITS = range(6)

    def __init__(self, layout: Layout, t: int, quirks: frozenset[str], formats: tuple[Any, ...]) -> None:
        self.occupancy = layout.occupancies[t]
        self.by_shape = layout.by_shape[t]
        self.quirks = quirks
        self.formats: tuple[Format, ...] = formats
        self.tiles = Table(5)
        self.emptiness = Table(1)
        self.ranks = Table(6)
        self._tiles: dict[tuple[tuple[int, ...], bool], Tile] = {}
        self._within: dict[tuple[tuple[int, ...], tuple[int, ...], bool], Array] = {}

    # -- keys: the volume, or the words per rank where the shape matters

    def key(self, widths: list[Array], volume: Array) -> list[Array]:
        return widths if self.by_shape else [volume]

    def shape(self, parts: list[Array], row: int) -> tuple[int, ...]:
        return tuple(int(part[row]) for part in parts)

    # -- tiles (5.6)

    def tile_values(self, parts: list[Array]) -> Array:
        """(5, N): OCCUPIED and DENSITY where the parent sends no empty tiles, *_SENT elsewhere, LARGEST occupancy."""

        def fill(rows: Array) -> Array:
            return np.array([self._tile_values(self.shape(parts, row)) for row in rows]).T

        return self.tiles.find(fingerprint(parts), fill)

    def _tile_values(self, shape: tuple[int, ...]) -> list[float]:
        volume = float(np.prod([float(w) for w in shape]))
        every, kept = self.tile(shape, False), self.tile(shape, True)

        def density(tile: Tile) -> float:
            return float(np.cumsum(tile.p * tile.k)[-1]) / volume if tile.k.size else 0.0

        return [1.0, density(every), kept.occupied, density(kept), self.occupancy.largest(shape)]

    def tile(self, shape: tuple[int, ...], drop_empty: bool) -> Tile:
        found = self._tiles.get((shape, drop_empty))
        if found is None:
            k, p = self.occupancy.distribution(shape)
            k = np.asarray(k, dtype=np.float64)
            occupied = 1.0
            smallest = self.occupancy.smallest(shape, self.quirks)
            if "Q3" in self.quirks and smallest > 0:
                k, p = k[k >= smallest], p[k >= smallest]
            if drop_empty and k.size and smallest == 0 and (k[0] == 0 or "Q3" in self.quirks):
                # Q3: the evaluator drops the smallest possible occupancy even where that is not the empty tile
                occupied = 1.0 - float(p[0])
                k, p = k[1:], p[1:] / occupied if occupied > 0 else p[1:]
            found = self._tiles[shape, drop_empty] = Tile(k, p, occupied if k.size else 0.0)
        return found

    # -- leader tiles (7.1)

    def empty(self, parts: list[Array]) -> Array:
        """(N,) probability that the tile is empty, unconditional."""

        def fill(rows: Array) -> Array:
            return np.array([[self.occupancy.empty(self.shape(parts, row)) for row in rows]])

        return self.emptiness.find(fingerprint(parts), fill)[0]

    # -- ranks (6.2, 6.3)

    def rank_values(
        self, tile: list[Array], box: list[Array], below: list[Array], length: Array, above: Array, formats: Array,
        offset: Array, drop_empty: Array,
    ) -> Array:  # fmt: skip
        """(6, N) for entries (N,): expected and largest units of metadata and payload, and their widths.

        `box` is the rank's tile, `below` the tile of one position, `above` the number of fibers in the whole tile,
        `offset` the words an offset of this rank must be able to name.
        """
        numbers = [*tile, *box, *below, length, above, formats, drop_empty]

        def fill(rows: Array) -> Array:
            entries = [
                _RankEntry(
                    self.shape(tile, row), self.shape(box, row), self.shape(below, row), float(length[row]),
                    float(above[row]), int(formats[row]), bool(drop_empty[row]), float(offset[row]),
                )
                for row in rows
            ]  # fmt: skip
            return self._rank_values(entries)

        return self.ranks.find(fingerprint(numbers, 8), fill)

    def empty_within(self, sub: tuple[int, ...], shape: tuple[int, ...], drop_empty: bool) -> Array:
        """Probability that a sub-tile is empty per occupancy of `tile`, then for the largest occupancy."""
        key = (sub, shape, drop_empty)
        found = self._within.get(key)
        if found is None:
            k = self.tile(shape, drop_empty).k
            k = np.append(k, self.occupancy.largest(shape))
            if sub == shape and "Q4" not in self.quirks:
                found = (k == 0).astype(np.float64)
            elif k.size > 1:
                inner = self.occupancy.empty_within(sub, shape, k[:-1], self.quirks)
                last = self.occupancy.empty_within(sub, shape, k[-1:], self.quirks)
                found = np.concatenate([inner, last])
            else:
                found = self.occupancy.empty_within(sub, shape, k, self.quirks)
            if len(self._within) > 4096:
                self._within.clear()
            self._within[key] = found
        return found

    def _rank_values(self, entries: list[_RankEntry]) -> Array:
        values = np.zeros((6, len(entries)))
        for chosen in sorted({entry.format for entry in entries}):
            picked = [i for i, entry in enumerate(entries) if entry.format == chosen]
            start, size = 0, 0
            for stop, i in enumerate(picked, 1):
                size += self.tile(entries[i].tile, entries[i].drop_empty).k.size + 1
                if size > 200_000 or stop == len(picked):  # bounded temporaries
                    some = picked[start:stop]
                    values[:, some] = self._units([entries[j] for j in some], self.formats[chosen])
                    start, size = stop, 0
        return values

    def _units(self, entries: list[_RankEntry], rank_format: Format) -> Array:
        """One call of the format for all occupancies of all entries, then expectations entry by entry."""
        current = [self.empty_within(e.box, e.tile, e.drop_empty) for e in entries]
        inside = [self.empty_within(e.below, e.tile, e.drop_empty) for e in entries]
        sizes = [len(part) for part in current]
        length = np.repeat([e.length for e in entries], sizes)
        above = np.repeat([e.above for e in entries], sizes)
        fibers = above * (1.0 - np.concatenate(current))
        occupied = length * (1.0 - np.concatenate(inside))
        units = rank_format.units(
            Fiber(
                fibers=fibers,
                length=length,
                occupied=occupied,
                coord_bits=np.repeat([width(e.length) for e in entries], sizes),
                offset_bits=np.repeat([width(e.offset + 1) for e in entries], sizes),
                slots=above,
            )
        )
        columns = [
            np.broadcast_to(np.asarray(part, dtype=np.float64), fibers.shape)
            for part in (units.metadata, units.payload, units.metadata_bits, units.payload_bits)
        ]
        if not all(np.isfinite(column).all() and (column >= 0).all() for column in columns):
            raise BadUnits(rank_format.name)
        values = np.zeros((6, len(entries)))
        end = 0
        for i, entry in enumerate(entries):
            begin, end = end, end + sizes[i]
            p = self.tile(entry.tile, entry.drop_empty).p
            for row, column in ((self.METADATA, columns[0]), (self.PAYLOAD, columns[1])):
                # the evaluator adds in order of k, in double (5.5)
                values[row, i] = np.cumsum(p * column[begin : end - 1])[-1] if p.size else 0.0
                values[row + 2, i] = column[end - 1]
            values[self.METADATA_BITS, i] = columns[2][begin]
            values[self.PAYLOAD_BITS, i] = columns[3][begin]
        return values


@attrs.frozen
class _RankEntry:
    tile: tuple[int, ...]
    box: tuple[int, ...]
    below: tuple[int, ...]
    length: float
    above: float
    format: int
    drop_empty: bool
    offset: float


class BadUnits(ValueError):
    """A format returned metadata that is negative or not finite; the message is the format's name."""


def width(positions: float) -> float:
    """Bits that name one of `positions`, rounded up to a power of two (so that they divide a metadata word)."""
    bits = max(1, int(np.ceil(np.log2(positions)))) if positions > 1 else 1
    return float(1 << (bits - 1).bit_length())
