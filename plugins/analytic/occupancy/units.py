"""Units of metadata and payload that a rank has on average, and at most (sections 6.2 and 6.3)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sparsemap import Fiber, Format
from sparsemap.pieces.boundary import units_of
from sparsemap.pieces.contracts.base import Array, Rows

from .lookup import Number, Table, chunks, fingerprint, take
from .pairs import POINTS_AT_ONCE, Pairs
from .points import RankPoints, Ranks
from .tiles import Tiles


class RankUnits(NamedTuple):
    """Units of ranks, a column (N,) each: expected, of the fullest tile, and the bits of one."""

    metadata: Array
    payload: Array
    largest_metadata: Array
    largest_payload: Array
    metadata_bits: Array
    payload_bits: Array

    @classmethod
    def zeros(cls, count: int) -> RankUnits:
        return cls(*np.zeros((len(cls._fields), count)))


class UnitTables:
    """Asks the formats for the units of the ranks of one tensor."""

    def __init__(
        self, tiles: Tiles, pairs: Pairs, formats: tuple[Format, ...], empty: Callable[[Sequence[Array]], Array] | None
    ) -> None:
        """`empty`: the chance that parts (N,) of the tensor are; None: no format asks."""
        self.tiles, self.pairs, self.formats, self.empty = tiles, pairs, formats, empty
        self.totals = Table(Number)
        self.group = np.array([float(f.group) for f in formats])

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
        """One call of every format for all k of its ranks, then expectations rank by rank."""
        points, ends, pieces = listing.points(self.tiles, self.pairs)
        formats, merged = listing.ranks.format.astype(np.int64), listing.merged
        count = len(formats)
        found = RankUnits.zeros(count)
        steady = {"metadata": np.full(count, np.nan), "payload": np.full(count, np.nan)}
        for a, b in itertools.pairwise([0, *(np.flatnonzero(np.diff(formats)) + 1).tolist(), count]):
            begin = int(ends[a - 1]) + 1 if a else 0
            some = take(points, slice(begin, int(ends[b - 1]) + 1))
            mine = slice(*np.searchsorted(pieces.rank, [a, b]).tolist())
            if mine.start < mine.stop:
                some = type(some)(*map(np.concatenate, zip(some, take(pieces, mine), strict=True)))
            units = units_of(self.formats[formats[a]], Fiber(*some[:9]))
            last = ends[a:b] - begin
            first_merged = a + int(np.argmax(merged[a:b])) if merged[b - 1] else b
            for name, part in (("metadata", units.metadata), ("payload", units.payload)):
                column = np.broadcast_to(np.asarray(part, dtype=np.float64), some.p.shape)
                # bincount adds in order of k, in double, as Timeloop does (5.5)
                getattr(found, name)[a:b] = np.bincount(some.rank, some.p * column, b)[a:b]
                getattr(found, f"largest_{name}")[a:b] = column[last]
                if first_merged < b:
                    steady[name][first_merged:b] = _same(column, some.rank, last, a, first_merged, b)
            for bits, part in ((found.metadata_bits, units.metadata_bits), (found.payload_bits, units.payload_bits)):
                bits[a:b] = np.asarray(part)[last] if np.ndim(part) else part
        for name, values in steady.items():
            rows = np.flatnonzero(~np.isnan(values))
            if rows.size:
                getattr(found, name)[rows] = self._totals(listing, rows, values[rows])
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


def _same(column: Array, rank: Rows, last: Rows, first: int, start: int, stop: int) -> Array:
    """Per rank start .. stop, the value that `column` has at all of its occupancies but the largest; NaN: several.

    `column` and `rank` are those of the ranks first .. stop; `last` says where the largest occupancies are.
    """
    begins = np.append(0, last[:-1] + 1)[start - first :]
    found = column[begins]
    differs = column[begins[0] :] != found[rank[begins[0] :] - start]
    differs[last[start - first :] - begins[0]] = False
    found[rank[begins[0] :][differs] - start] = np.nan
    return found
