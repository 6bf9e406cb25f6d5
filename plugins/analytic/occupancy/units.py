"""Units of metadata and payload that a rank has on average, and at most (sections 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sparsemap import Format, Outer
from sparsemap.pieces.contracts.base import Array, Rows

from .. import native
from .lookup import Number, Table, Told, chunks, fingerprint, take
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
    narrow: Array
    """1 where the code of the rank cannot be read, else 0."""

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
        self.totals, self.told, self.codes = Table(Number), Table(Told), np.zeros((len(formats), 8), dtype=np.int64)
        self.group = np.array([float(form.group) for form, _ in formats])

    def listed(self, ranks: Ranks) -> Iterator[RankPoints]:
        """The ranks, in their order, with what is known of their tiles: not too many points at once."""
        tiles = self.tiles.rows(ranks.tile)
        tile, box, below = (shape.T.astype(np.int64) for shape in (ranks.tile, ranks.box, ranks.below))
        parts = [box, below, *([ranks.group.T.astype(np.int64)] if len(ranks.group) else [])]
        times = len(parts)
        pairs = self.pairs.find(np.tile(tiles, times), np.concatenate([tile] * times), np.concatenate(parts))
        columns = take(self.tiles.columns, tiles)
        size = self.group[ranks.format.astype(np.int64)] if len(ranks.group) else None
        usual = np.zeros(len(tiles)) if self.empty is None else 1.0 - self.empty(list(ranks.below))
        for some in chunks(columns.points, POINTS_AT_ONCE):
            places = range(some.start, len(pairs.filled), len(tiles))
            box_of, below_of, *group_of = (take(pairs, slice(at, at + some.stop - some.start)) for at in places)
            yield RankPoints(
                take(ranks, some), tiles[some], take(columns, some), box_of, below_of, usual[some],
                group_of[0] if group_of else None, None if size is None else size[some],
            )  # fmt: skip

    def total(self, listing: RankPoints, rows: Rows, units: Array) -> Array:
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


def units_together(asked: Sequence[tuple[UnitTables, Ranks]]) -> list[RankUnits]:
    """Units of ranks of several tensors with the same formats, which are asked for all of them at once."""
    parts = [(tables, listing) for tables, ranks in asked for listing in tables.listed(ranks)]
    sizes = np.array([listing.tile.points.sum() for _, listing in parts])
    found = [expected(parts[some]) for some in chunks(sizes, POINTS_AT_ONCE)]
    joined = RankUnits(*map(np.concatenate, zip(*found, strict=True)))
    counts = [len(ranks.length) for _, ranks in asked]
    return [take(joined, slice(stop - n, stop)) for n, stop in zip(counts, np.cumsum(counts), strict=True)]


def expected(parts: Sequence[tuple[UnitTables, RankPoints]]) -> RankUnits:
    """Units of all ranks, not too many points at once."""
    sums = None
    if native.units is not None:
        from .listed import expected_of_lists

        sums = expected_of_lists(parts)
    if sums is None:
        from .expected import expected_of_formats

        return expected_of_formats(parts)
    found = RankUnits.zeros(sum(map(len, sums)))
    rows = np.concatenate(sums).T
    steady(parts, rows[0], rows[2])
    found.metadata[:], found.largest_metadata[:], found.metadata_bits[:], found.narrow[:] = (
        rows[0],
        rows[1],
        1.0,
        rows[6],
    )
    if parts[0][0].pointers:
        steady(parts, rows[3], rows[5])
        found.offsets[:], found.largest_offsets[:] = rows[3], rows[4]
    return found


def steady(parts: Sequence[tuple[UnitTables, RankPoints]], totals: Array, same: Array) -> None:
    """Puts in place (n,) expectations of units that are the `same` (n,) at all occupancies of a merged window; NaN: not so."""
    first = 0
    for tables, part in parts:
        some = same[first : first + len(part.tiles)]
        rows = np.flatnonzero(some > 0.0)  # 0 is 0 already
        if rows.size:
            totals[first + rows] = tables.total(part, rows, some[rows])
        first += len(some)
