"""Units of metadata and payload that a rank has on average, and at most (sections 6.2 and 6.3)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sparsemap import Fiber, Format, Outer
from sparsemap.pieces.boundary import units_of
from sparsemap.pieces.contracts.base import Array, Rows

from .. import native
from .lookup import Number, Table, chunks, fingerprint, take
from .pairs import POINTS_AT_ONCE, Pairs
from .points import RankPoints, Ranks
from .tiles import Tiles

AskedFormat = tuple[Format, Outer | None]
"""A format that is asked for its units; or for those of its code, where ranks outside have told so much."""


class RankUnits(NamedTuple):
    """Units of ranks, a column (N,) each: expected, of the fullest tile, and the bits of one."""

    metadata: Array
    payload: Array
    largest_metadata: Array
    largest_payload: Array
    metadata_bits: Array
    payload_bits: Array
    offsets: Array
    """One for every position that is there, and for the end of every fiber."""
    largest_offsets: Array

    def pointed(self, rows: Array, bits: Array) -> RankUnits:
        """With offsets of so many bits as payload where `rows` (N,) bool says so."""
        return self._replace(
            payload=np.where(rows, self.offsets, self.payload),
            largest_payload=np.where(rows, self.largest_offsets, self.largest_payload),
            payload_bits=np.where(rows, bits, self.payload_bits),
        )

    @classmethod
    def zeros(cls, count: int) -> RankUnits:
        return cls(*np.zeros((len(cls._fields), count)))


class UnitTables:
    """Asks the formats for the units of the ranks of one tensor."""

    def __init__(
        self, tiles: Tiles, pairs: Pairs, formats: tuple[AskedFormat, ...],
        empty: Callable[[Sequence[Array]], Array] | None, pointers: bool,
    ) -> None:  # fmt: skip
        """`empty`: the chance that parts (N,) of the tensor are; None: no format asks. `pointers`: whether offsets count."""
        self.tiles, self.pairs, self.formats, self.empty, self.pointers = tiles, pairs, formats, empty, pointers
        self.totals = Table(Number)
        self.group = np.array([float(form.group) for form, _ in formats])

    def of(self, ranks: Ranks) -> RankUnits:
        tiles = self.tiles.rows(ranks.tile)
        order = np.lexsort([self.tiles.columns.grain[tiles], ranks.format])
        tiles, ranks = tiles[order], take(ranks, order)
        tile, box, below = (shape.T.astype(np.int64) for shape in (ranks.tile, ranks.box, ranks.below))
        parts = [box, below, *([ranks.group.T.astype(np.int64)] if len(ranks.group) else [])]
        times = len(parts)
        pairs = self.pairs.find(np.tile(tiles, times), np.concatenate([tile] * times), np.concatenate(parts))
        columns = take(self.tiles.columns, tiles)
        box_rows, below_rows, *group_rows = np.split(np.arange(times * len(tiles)), times)
        size = self.group[ranks.format.astype(np.int64)] if group_rows else None
        found = RankUnits.zeros(len(tiles))
        usual = np.zeros(len(tiles)) if self.empty is None else 1.0 - self.empty(list(ranks.below))
        for some in chunks(columns.points, POINTS_AT_ONCE):
            listing = RankPoints(
                take(ranks, some), tiles[some], take(columns, some), take(pairs, box_rows[some]),
                take(pairs, below_rows[some]), usual[some],
                take(pairs, group_rows[0][some]) if group_rows else None, None if size is None else size[some],
            )  # fmt: skip
            for column, part in zip(found, self._expected(listing), strict=True):
                column[order[some]] = part
        return found

    def _expected(self, listing: RankPoints) -> RankUnits:
        """One call of every format for all k of its ranks, then expectations of all ranks."""
        points, ends, pieces = listing.points(self.tiles, self.pairs)
        formats, count, listed = listing.ranks.format.astype(np.int64), len(ends), len(points.p)
        if len(pieces.p):
            points = type(points)(*map(np.concatenate, zip(points, pieces, strict=True)))
        found, columns = RankUnits.zeros(count), np.zeros((3, len(points.p)))
        for a, b in itertools.pairwise([0, *(np.flatnonzero(np.diff(formats)) + 1).tolist(), count]):
            begin, end = int(ends[a - 1]) + 1 if a else 0, int(ends[b - 1]) + 1
            first, last = (listed + np.searchsorted(pieces.rank, [a, b])).tolist()
            mine = np.append(np.arange(begin, end), np.arange(first, last)) if first < last else slice(begin, end)
            form, outer = self.formats[formats[a]]
            fiber = Fiber(*take(points, mine)[:9])
            units = units_of(form, fiber, outer)
            columns[0, mine], columns[1, mine] = units.metadata, units.payload
            if self.pointers:
                there = fiber.slots * fiber.occupied if form.compressed else fiber.fibers * fiber.length
                columns[2, mine] = fiber.fibers + there
            for bits, part in ((found.metadata_bits, units.metadata_bits), (found.payload_bits, units.payload_bits)):
                bits[a:b] = np.asarray(part)[ends[a:b] - begin] if np.ndim(part) else part
        merged = np.flatnonzero(listing.merged[points.rank]) if listing.merged.any() else ends[:0]
        used = [column.any() for column in columns]
        totals = _sums(points.rank, points.p, columns, count)
        for name, column, total, some in zip(("metadata", "payload", "offsets"), columns, totals, used, strict=True):
            if not some:
                continue
            getattr(found, name)[:] = total
            getattr(found, f"largest_{name}")[:] = column[ends]
            if len(merged):
                steady = _same(column, points.rank, ends, merged)
                rows = np.flatnonzero(~np.isnan(steady) & listing.merged)
                if rows.size:
                    getattr(found, name)[rows] = self._totals(listing, rows, steady[rows])
        return found

    def _totals(self, listing: RankPoints, rows: Rows, units: Array) -> Array:
        """Expectations of `units` (n,) that are the same for all occupancies of the merged windows `rows` (n,).

        That is sum p_k u, as a sum in double, in order of k: its last bits decide what ceil makes of whole numbers, as
        in Timeloop (5.5). They depend on the mantissa of u only. Where k are left out, the sum is u.
        """
        mantissa, exponent = np.frexp(units)
        tile = take(listing.tile, rows)

        def fill(missing: Rows) -> Number:
            totals = mantissa[missing]
            for i, row in enumerate(missing):
                start, size = int(tile.all_p[row]), int(tile.samples[row])
                if start:
                    totals[i] = np.cumsum(self.tiles.lists.data[start : start + size] * totals[i])[-1]
            return Number(totals)

        keys = fingerprint([listing.tiles[rows], mantissa * 2.0**53], 60)
        return np.ldexp(self.totals.find(keys, fill).value, exponent)


def _sums(rank: Rows, p: Array, columns: Array, count: int) -> Array:
    """(k, count) per rank the sum of p times a column (k, P), in order of k, in double, as Timeloop forms it (5.5)."""
    found = np.empty((len(columns), count))
    if native.fast is not None and native.fast.sums(rank, p, columns, found) is not None:
        return found
    return np.array([np.bincount(rank, p * column, count) for column in columns])


def _same(column: Array, rank: Rows, last: Rows, some: Rows) -> Array:
    """Per rank, the value that `column` has at all of its occupancies but the largest; NaN: several. `last` says where the
    largest ones are; of ranks that are not among the points `some`, the value of the first one."""
    found = column[np.append(0, last[:-1] + 1)]
    differs = some[column[some] != found[rank[some]]]
    differs = differs[last[rank[differs]] != differs]
    found[rank[differs]] = np.nan
    return found
