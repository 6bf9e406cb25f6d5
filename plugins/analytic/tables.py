"""Occupancy tables: everything that depends on a tile and its density is computed once per tile, then looked up.

Keys are 64-bit fingerprints of the integers that determine an entry (two different tiles share one with a probability
of about n^2 / 2^64 for n entries: 10^-9 for a hundred thousand). The tables live as long as the problem; what they hold
is bounded, and made again where it was dropped. A value depends on its key alone, not on what it is computed with.

Three layers: tiles (occupancies k with their probabilities, in large tiles merged to `cells`), pairs of a tile and a
sub-tile (probability P0 that the sub-tile is empty, for every k), and ranks (expected units of a format, two pairs).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sparsemap import Fiber, Format

from .cells import CUTS, TAIL, WHOLE, Cells, Windows, cut
from .layout import Layout

Array = np.ndarray
MIX = np.uint64(0x9E3779B97F4A7C15)
ODD = [np.uint64(2 * int(x) + 1) for x in np.random.default_rng(20250101).integers(1 << 62, 1 << 63, 64)]
"""Fixed odd multipliers, one per component of a fingerprint."""


def fingerprint(parts: Sequence[Array], first: int = 0) -> Array:
    """(N,) uint64 from integer-valued arrays."""
    key = np.zeros(parts[0].shape, dtype=np.uint64)
    for i, part in enumerate(parts):
        key += part.astype(np.int64).view(np.uint64) * ODD[first + i]
    return key


class Table:
    """A growing hash map from fingerprints to rows of float64, looked up for whole arrays (linear probing)."""

    def __init__(self, width: int, largest: int = 1 << 18) -> None:
        """A table that would have more than `largest` rows starts afresh."""
        self.width, self.largest = width, largest
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self._values = np.zeros((self.width, 1 << 8))
        self._resize(10)

    def _resize(self, bits: int) -> None:
        self.bits, self.shift = bits, np.uint64(64 - bits)
        self.keys = np.zeros(1 << bits, dtype=np.uint64)
        self.row_of = np.zeros(1 << bits, dtype=np.int32)

    def _home(self, keys: Array) -> Array:
        return ((keys * MIX) >> self.shift).astype(np.int64)

    @property
    def values(self) -> Array:
        """(width, rows)"""
        return self._values[:, : self.count]

    def find(self, keys: Array, fill: Callable[[Array], Array]) -> Array:
        """Values (width, N) of all keys (N,). `fill(first)` gets one position in `keys` per missing distinct key,
        (n,), and returns their values (width, n)."""
        rows = self.rows(keys, fill)
        return self._values[:, rows]

    def rows(self, keys: Array, fill: Callable[[Array], Array]) -> Array:
        """The rows of `values` that `find` returns, (N,)."""
        keys = keys | np.uint64(1)
        place, missing = self._probe(keys)
        if missing.size:
            distinct, first = np.unique(keys[missing], return_index=True)
            first = missing[first]
            if self.count and self.count + len(distinct) > self.largest:
                self.clear()
                distinct, first = np.unique(keys, return_index=True)
            self._insert(distinct, fill(first))
            place, _ = self._probe(keys)
        return self.row_of[place]

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
        if needed > self._values.shape[1]:
            grown = np.zeros((self.width, 2 * needed))
            grown[:, : self.count] = self.values
            self._values = grown
        if needed * 4 > len(self.keys):
            taken = np.flatnonzero(self.keys)
            old_keys, old_rows = self.keys[taken], self.row_of[taken]
            self._resize(int(needed * 8 - 1).bit_length())
            self._place(old_keys, old_rows)
        self._values[:, self.count : needed] = values
        self._place(keys, np.arange(self.count, needed))
        self.count = needed

    def _place(self, keys: Array, rows: Array) -> None:
        """Distinct new keys: all try their slots at once, those that find theirs taken try the next one."""
        mask = (1 << self.bits) - 1
        place = self._home(keys)
        while keys.size:
            free = self.keys[place] == 0
            self.keys[place[free]] = keys[free]
            won = self.keys[place] == keys
            self.row_of[place[won]] = rows[won]
            lost = ~won
            keys, rows, place = keys[lost], rows[lost], (place[lost] + 1) & mask


class Store:
    """Arrays of float64 one after the other in one growing array."""

    def __init__(self) -> None:
        self.data = np.zeros(1 << 10)
        self.size = 0

    def add(self, values: Array) -> int:
        """Where the values start."""
        start, self.size = self.size, self.size + len(values)
        if self.size > len(self.data):
            grown = np.zeros(2 * self.size)
            grown[:start] = self.data[:start]
            self.data = grown
        self.data[start : self.size] = values
        return start


def chunks(sizes: Array, most: int) -> Iterator[slice]:
    """Runs of entries whose sizes add up to no more than `most`, or single entries."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, "right")))
        yield slice(start, stop)
        start = stop


def _shapes(parts: Sequence[Array], rows: Array) -> Array:
    """(n, R) int64"""
    return np.stack([part[rows] for part in parts], axis=1).astype(np.int64)


class TensorTables:
    """The tables of one tensor: tiles, empty leader tiles, and ranks of tiles."""

    EMPTY_SENT, DENSITY_SENT, OCCUPIED, DENSITY, LARGEST = range(5)
    METADATA, PAYLOAD, LARGEST_METADATA, LARGEST_PAYLOAD, METADATA_BITS, PAYLOAD_BITS = range(6)

    # Further rows of `tiles`: number and place of the k (occupancies or cells) and place of their probabilities; where
    # empty tiles are not sent, how many k are left out and the place of the other probabilities; and, of merged
    # windows, what `Windows` is and the place of the probabilities of all k (0: some are not listed).
    _POINTS, _K, _P, _LEFT_OUT, _KEPT, _EDGES, _SUMS, _SAMPLES, _ORIGIN, _STEP, _GRAIN, _ALL = range(5, 17)
    # A pair: the place of 1 - P0 for every k, the same for the largest, and whether it varies with k.
    _AT, _FULLEST, _VARIES = range(3)

    KEPT_VALUES = 2 << 20
    """float64 of tiles and pairs that are kept until they are dropped, 16 MB."""
    POINTS_AT_ONCE = 1 << 16
    """Occupancies for which formats are called at once: bounds temporary arrays."""

    def __init__(self, layout: Layout, t: int, quirks: frozenset[str], formats: tuple[Any, ...]) -> None:
        self.occupancy = layout.occupancies[t]
        self.by_shape = layout.by_shape[t]
        self.quirks = quirks
        self.formats: tuple[Format, ...] = formats
        self.tiles = Table(17, 1 << 62)
        self.emptiness = Table(1)
        self.ranks = Table(6)
        self._pairs = Table(3)
        self._sums = Table(1)
        self._forget()

    def _forget(self) -> None:
        self.tiles.clear()
        self._pairs.clear()
        self._sums.clear()
        self._of_tiles, self._of_pairs = Store(), Store()
        self._one = self._of_tiles.add(np.ones(1))

    def _trim(self) -> None:
        if self._of_tiles.size + self._of_pairs.size + 16 * self.tiles.count > self.KEPT_VALUES:
            self._forget()

    # -- keys: the volume, or the words per rank where the shape matters

    def key(self, widths: list[Array], volume: Array) -> list[Array]:
        return widths if self.by_shape else [volume]

    def shape(self, parts: Sequence[Array], row: int) -> tuple[int, ...]:
        return tuple(int(part[row]) for part in parts)

    # -- tiles (5.6)

    def tile_values(self, parts: list[Array]) -> Array:
        """(5, N): OCCUPIED and DENSITY where the parent sends no empty tiles, *_SENT elsewhere, LARGEST occupancy."""
        self._trim()
        rows = self._tile_rows(parts)
        return self.tiles.values[:5, rows]

    def _tile_rows(self, parts: Sequence[Array]) -> Array:
        def fill(rows: Array) -> Array:
            return np.array([self._tile(self.shape(parts, row)) for row in rows]).T

        return self.tiles.rows(fingerprint(parts), fill)

    def _tile(self, shape: tuple[int, ...]) -> list[float]:
        """A row of `tiles`."""
        volume = math.prod(float(words) for words in shape)
        k, p = self.occupancy.distribution(shape)
        k = np.asarray(k, dtype=np.float64)
        smallest = self.occupancy.smallest(shape, self.quirks)
        if "Q3" in self.quirks and smallest > 0:
            k, p = k[k >= smallest], p[k >= smallest]
        left_out, occupied, kept = 0, 1.0, p
        if k.size and smallest == 0 and (k[0] == 0 or "Q3" in self.quirks):
            # Q3: the evaluator drops the smallest possible occupancy even where that is not the empty tile
            left_out, occupied = 1, 1.0 - float(p[0])
            kept = p[1:] / occupied if occupied > 0 else p[1:]

        def density(k: Array, p: Array) -> float:
            return float(np.cumsum(p * k)[-1]) / volume if k.size else 0.0

        sent = occupied if k.size > left_out else 0.0
        values = [1.0, density(k, p), sent, density(k[left_out:], kept), self.occupancy.largest(shape)]
        grain = self.occupancy.grain(shape) if k.size > 1 and k[0] > 0 and p[0] < TAIL else 0
        add = self._of_tiles.add
        if not (grain and (k.size > WHOLE or k[1] - k[0] > grain)):
            return [*values, k.size, add(k), add(p), left_out, add(kept), 0, 0, 0, 0, 0, 0, 0]
        cells = Cells.of(k, p, grain)
        at = add(cells.p)
        values += [cells.k.size, add(cells.k), at, 0, at]
        every = add(p) if cells.step == grain else 0
        return [*values, add(cells.edges), add(cells.sums), k.size, cells.origin, cells.step, grain, every]

    # -- leader tiles (7.1)

    def empty(self, parts: list[Array]) -> Array:
        """(N,) probability that the tile is empty, unconditional."""

        def fill(rows: Array) -> Array:
            return np.array([[self.occupancy.empty(self.shape(parts, row)) for row in rows]])

        return self.emptiness.find(fingerprint(parts), fill)[0]

    # -- pairs: sub-tiles of tiles

    def _pair_rows(self, tiles: Array, shapes: list[Array], subs: list[Array]) -> Array:
        """Rows of `_pairs`, (N,), for tiles (rows of `tiles`), their shapes and sub-tiles."""

        def fill(rows: Array) -> Array:
            sizes = self.tiles.values[self._POINTS, tiles[rows]]
            parts = [rows[some] for some in chunks(sizes, self.POINTS_AT_ONCE)]
            made = [self._fill_pairs(tiles[part], _shapes(shapes, part), _shapes(subs, part)) for part in parts]
            return np.concatenate(made, axis=1)

        return self._pairs.rows(fingerprint([tiles, *subs], 40), fill)

    def _fill_pairs(self, tiles: Array, shapes: Array, subs: Array) -> Array:
        """Rows of `_pairs`, (3, n), for tiles (n,) of some shapes and their sub-tiles, both (n, R)."""
        columns = self.tiles.values[:, tiles]
        size, start = columns[[self._POINTS, self._K]].astype(np.int64)
        merged = columns[self._GRAIN] > 0.0
        inner = np.any(subs != shapes, axis=1) | ("Q4" in self.quirks)
        stops = np.cumsum(size)
        k = self._of_tiles.data[np.repeat(start - (stops - size), size) + np.arange(stops[-1])]
        largest = columns[self.LARGEST]
        empty, emptiest = (k == 0.0).astype(np.float64), (largest == 0.0).astype(np.float64)  # where it is the tile
        within = self.occupancy.empty_within_many
        emptiest[inner] = within(subs[inner], shapes[inner], largest[inner], np.ones(inner.sum(), int), self.quirks)
        for some in (inner & ~merged, inner & merged):
            if not some.any():
                continue
            counts, points = size[some], np.repeat(some, size)
            if merged[some][0]:
                pair = np.repeat(np.flatnonzero(some), counts)
                empty[points] = self.occupancy.empty_within_real(subs[pair], shapes[pair], k[points])
            else:
                empty[points] = within(subs[some], shapes[some], k[points], counts, self.quirks)
        filled = 1.0 - empty
        pair = np.repeat(np.arange(len(size)), size)
        varies = np.zeros(len(size), dtype=bool)
        varies[pair[1:][(filled[1:] != filled[:-1]) & (pair[1:] == pair[:-1])]] = True
        return np.stack([self._of_pairs.add(filled) + stops - size, 1.0 - emptiest, varies])

    # -- ranks (6.2, 6.3)

    def rank_values(
        self, tile: list[Array], box: list[Array], below: list[Array], length: Array, above: Array, formats: Array,
        offset: Array, drop_empty: Array,
    ) -> Array:  # fmt: skip
        """(6, N) for entries (N,): expected and largest units of metadata and payload, and their widths.

        `box` is the rank's tile, `below` the tile of one position, `above` the number of fibers in the whole tile,
        `offset` the words an offset of this rank must be able to name.
        """
        numbers = [*tile, *box, *below, length, above, formats, offset, drop_empty]

        def fill(rows: Array) -> Array:
            self._trim()
            tiles = self._tile_rows([part[rows] for part in tile])
            order = np.lexsort([self.tiles.values[self._GRAIN, tiles], formats[rows]])
            tiles, rows = tiles[order], rows[order]
            shape, *subs = ([part[rows] for part in group] for group in (tile, box, below))
            pairs = self._pair_rows(
                np.concatenate([tiles, tiles]),
                [np.concatenate([part, part]) for part in shape],
                [np.concatenate(both) for both in zip(*subs, strict=True)],
            )
            in_box, in_below = np.split(self._pairs.values[:, pairs], 2, axis=1)
            columns = self.tiles.values[:, tiles]
            values = np.empty((6, len(rows)))
            for some in chunks(columns[self._POINTS], self.POINTS_AT_ONCE):
                here = rows[some]
                values[:, order[some]] = self._units(
                    tiles[some], columns[:, some], in_box[:, some], in_below[:, some], drop_empty[here] != 0.0,
                    _shapes(tile, here), _shapes(box, here), _shapes(below, here), length[here], above[here],
                    formats[here].astype(np.int64), offset[here],
                )  # fmt: skip
            return values

        return self.ranks.find(fingerprint(numbers, 8), fill)

    def _units(
        self, tiles: Array, columns: Array, in_box: Array, in_below: Array, drop_empty: Array, tile: Array, box: Array,
        below: Array, length: Array, above: Array, formats: Array, offset: Array,
    ) -> Array:  # fmt: skip
        """One call of every format for all k of its entries, then expectations entry by entry.

        Entries are in order of formats, those with merged windows last; `columns` are the values of `tiles`, `in_box`
        and `in_below` those of their pairs, shapes are (n, R).
        """
        count = len(length)
        merged = columns[self._GRAIN] > 0.0
        varies = in_below[self._VARIES] != 0.0
        flat = merged & ~varies & (in_box[self._VARIES] == 0.0)
        left_out = np.where(drop_empty, columns[self._LEFT_OUT], 0.0)
        p_at = np.where(flat, self._one, np.where(drop_empty, columns[self._KEPT], columns[self._P]))
        sizes = np.where(flat, 1.0, columns[self._POINTS] - left_out).astype(np.int64) + 1  # all k, then the largest
        stops = np.cumsum(sizes)
        starts, ends = stops - sizes, stops - 1
        count_up, rank = np.arange(stops[-1]), np.repeat(np.arange(count), sizes)

        def gather(store: Store, place: Array, largest: Array | float) -> Array:
            at = np.repeat(place.astype(np.int64) - starts, sizes)
            at += count_up
            at[ends] = 0
            found = store.data[at]
            found[ends] = largest
            return found

        p = gather(self._of_tiles, p_at, 0.0)
        lengths, slots = np.repeat(length, sizes), np.repeat(above, sizes)
        fibers = slots * gather(self._of_pairs, in_box[self._AT] + left_out, in_box[self._FULLEST])
        occupied = lengths * gather(self._of_pairs, in_below[self._AT] + left_out, in_below[self._FULLEST])
        coord_bits, offset_bits = np.repeat(widths(length), sizes), np.repeat(widths(offset + 1.0), sizes)
        points = [fibers, lengths, occupied, coord_bits, offset_bits, slots, rank, p]  # the first six: those of `Fiber`
        more = np.zeros(0, dtype=np.int64)
        if (merged & varies).any():
            more, k, more_p = self._cut(columns, merged & varies, starts, sizes, p, occupied, tile, below, length)
        if more.size:
            extra = [part[starts[more]] for part in points]
            subs, tiles_twice = np.concatenate([box[more], below[more]]), np.concatenate([tile[more], tile[more]])
            full_box, full_below = np.split(1.0 - self._empty_real(subs, tiles_twice, np.concatenate([k, k])), 2)
            extra[0], extra[2], extra[7] = above[more] * full_box, length[more] * full_below, more_p
        values = np.zeros((6, count))
        constant, first = np.zeros((2, count), dtype=bool), np.zeros((2, count))
        for a, b in itertools.pairwise([0, *(np.flatnonzero(np.diff(formats)) + 1).tolist(), count]):
            some = slice(int(starts[a]), int(stops[b - 1]))
            *fiber, owner, weight = (part[some] for part in points)
            if more.size and more[0] < b and more[-1] >= a:
                cells = slice(*np.searchsorted(more, [a, b]).tolist())
                here = zip(points, extra, strict=True)
                *fiber, owner, weight = (np.concatenate([part[some], new[cells]]) for part, new in here)
            rank_format = self.formats[formats[a]]
            units = rank_format.units(Fiber(*fiber))
            largest = ends[a:b] - some.start
            middle = a + int(np.argmax(merged[a:b])) if merged[b - 1] else b  # merged from here on
            for row, part in ((self.METADATA, units.metadata), (self.PAYLOAD, units.payload)):
                column = np.asarray(part, dtype=np.float64)
                if column.min(initial=0.0) < 0.0:
                    raise BadUnits(rank_format.name)
                if column.shape != owner.shape:
                    column = np.broadcast_to(column, owner.shape)
                # bincount adds in order of k, in double, as the evaluator does (5.5)
                values[row, a:b] = np.bincount(owner, weight * column, b)[a:b]
                values[row + 2, a:b] = column[largest]
                if middle < b:
                    begin = int(starts[middle]) - some.start
                    first[row, middle:b] = column[starts[middle:b] - some.start]
                    differs = column[begin:] != first[row, owner[begin:]]
                    differs[largest[middle - a :] - begin] = False
                    constant[row, middle:b] = True
                    constant[row, owner[begin:][differs]] = False
            for row, part in ((self.METADATA_BITS, units.metadata_bits), (self.PAYLOAD_BITS, units.payload_bits)):
                values[row, a:b] = part[largest] if np.ndim(part) else part
            if not (np.isfinite(values[:, a:b]).all() and values[:, a:b].min() >= 0.0):
                raise BadUnits(rank_format.name)
        if constant.any():
            row, entry = np.nonzero(constant)
            values[row, entry] = self._constants(tiles[entry], columns[:, entry], first[row, entry])
        return values

    def _constants(self, tiles: Array, columns: Array, units: Array) -> Array:
        """Expectations of `units` (n,) that are the same for all occupancies of merged windows.

        That is sum p_k u, as a sum in double, in order of k: its last bits decide what ceil makes of whole numbers, as
        in the evaluator (5.5). They depend on the mantissa of u only. Where k are left out, the sum is u.
        """
        mantissa, exponent = np.frexp(units)
        whole = mantissa * 2.0**53

        def fill(rows: Array) -> Array:
            found = mantissa[rows]
            for i, row in enumerate(rows):
                start, size = int(columns[self._ALL, row]), int(columns[self._SAMPLES, row])
                if start:
                    found[i] = np.cumsum(self._of_tiles.data[start : start + size] * found[i])[-1]
            return found[None]

        return np.ldexp(self._sums.find(fingerprint([tiles, whole], 60), fill)[0], exponent)

    def _cut(
        self, columns: Array, cuttable: Array, starts: Array, sizes: Array, p: Array, occupied: Array, tile: Array,
        below: Array, length: Array,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Ends cells where `occupied` passes whole numbers: entry, k and probability of their pieces (`cells.cut`).

        The probability of cells that are cut is set to 0 in `p`.
        """
        ends = starts + sizes - 1
        inside = np.repeat(cuttable, sizes)
        inside[ends] = False
        rises = np.diff(np.ceil(occupied))
        at = np.flatnonzero((rises > 0.0) & inside[:-1] & inside[1:])
        at = at[p[at] + p[at + 1] > TAIL]
        rank = np.searchsorted(ends, at)
        few = (np.bincount(rank, rises[at], len(starts)) <= CUTS)[rank]
        at, rank = at[few], rank[few]
        if not at.size:
            return rank, p[:0], p[:0]
        edges, sums = columns[[self._EDGES, self._SUMS]].astype(np.int64)
        data, cell = self._of_tiles.data, at - starts[rank]
        k = columns[self._K, rank].astype(np.int64) + cell
        windows = Windows(data, edges, sums, *columns[[self._SAMPLES, self._ORIGIN, self._STEP, self._GRAIN]])

        def occupied_at(rank: Array, k: Array) -> Array:
            return length[rank] * (1.0 - self._empty_real(below[rank], tile[rank], k))

        means, found = np.stack([data[k], data[k + 1]]), np.stack([occupied[at], occupied[at + 1]])
        pieces = cut(windows, rank, cell, rises[at], means, found, occupied_at)
        p[starts[pieces.rank] + pieces.cell] = 0.0
        order = np.argsort(pieces.rank, kind="stable")
        return pieces.rank[order], pieces.k[order], pieces.p[order]

    def _empty_real(self, subs: Array, tiles: Array, k: Array) -> Array:
        empty = self.occupancy.empty_within_real(subs, tiles, k)
        return np.where(np.all(subs == tiles, axis=1), 0.0, empty)


class BadUnits(ValueError):
    """A format returned metadata that is negative or not finite; the message is the format's name."""


_WIDTHS = np.array([1.0, *(float(1 << (bits - 1).bit_length()) for bits in range(1, 1025))])


def widths(positions: Array) -> Array:
    """Bits that name one of `positions`, rounded up to a power of two (so that they divide a metadata word)."""
    return _WIDTHS[np.ceil(np.log2(np.maximum(positions, 2.0))).astype(np.int64)]


def width(positions: float) -> float:
    """`widths` of one number."""
    return float(widths(np.array([positions]))[0])
