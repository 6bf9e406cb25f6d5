"""Units of metadata and payload that a rank has on average, and at most (sections 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sparsemap import Fiber, Format, Outer
from sparsemap.pieces.boundary import units_of
from sparsemap.pieces.contracts.base import Array, Rows

from .. import native
from .lookup import Number, Table, chunks, fingerprint, take
from .pairs import POINTS_AT_ONCE, Pairs
from .points import Points, RankPoints, Ranks
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
        self.totals = Table(Number)
        self.group = np.array([float(form.group) for form, _ in formats])

    def listed(self, ranks: Ranks) -> Iterator[RankPoints]:
        """The ranks, in their order, with what is known of their tiles: not too many points at once."""
        tiles = self.tiles.rows(ranks.tile)
        tile, box, below = (shape.T.astype(np.int64) for shape in (ranks.tile, ranks.box, ranks.below))
        parts = [box, below, *([ranks.group.T.astype(np.int64)] if len(ranks.group) else [])]
        times = len(parts)
        pairs = self.pairs.find(np.tile(tiles, times), np.concatenate([tile] * times), np.concatenate(parts))
        columns = take(self.tiles.columns, tiles)
        box_rows, below_rows, *group_rows = np.split(np.arange(times * len(tiles)), times)
        size = self.group[ranks.format.astype(np.int64)] if group_rows else None
        usual = np.zeros(len(tiles)) if self.empty is None else 1.0 - self.empty(list(ranks.below))
        for some in chunks(columns.points, POINTS_AT_ONCE):
            yield RankPoints(
                take(ranks, some), tiles[some], take(columns, some), take(pairs, box_rows[some]),
                take(pairs, below_rows[some]), usual[some],
                take(pairs, group_rows[0][some]) if group_rows else None, None if size is None else size[some],
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
    found = [_expected(parts[some]) for some in chunks(sizes, POINTS_AT_ONCE)]
    joined = RankUnits(*map(np.concatenate, zip(*found, strict=True)))
    counts = [len(ranks.length) for _, ranks in asked]
    return [take(joined, slice(stop - n, stop)) for n, stop in zip(counts, np.cumsum(counts), strict=True)]


def _expected(parts: Sequence[tuple[UnitTables, RankPoints]]) -> RankUnits:
    """One call of every format for all k of its ranks, then expectations of all ranks."""
    formats, pointers = parts[0][0].formats, parts[0][0].pointers
    listed, last, pieces, count, size = [], [], [], 0, 0
    for tables, part in parts:
        own, own_ends, cut = part.points(tables.tiles, tables.pairs)
        listed.append(own._replace(rank=own.rank + count))
        pieces.append(cut._replace(rank=cut.rank + count))
        last.append(own_ends + size)
        count, size = count + len(own_ends), size + len(own.p)
    points = Points(*map(np.concatenate, zip(*listed, *pieces, strict=True)))
    ends = np.concatenate(last)
    format_of = np.concatenate([part.ranks.format for _, part in parts]).astype(np.int64)
    found, columns = RankUnits.zeros(count), np.zeros((3, len(points.p)))
    for number in np.flatnonzero(np.bincount(format_of)):
        ranks = np.flatnonzero(format_of == number)
        mine = np.flatnonzero((format_of == number)[points.rank])
        form, outer = formats[number]
        fiber = Fiber(*map(fixed, (column[mine] for column in points[:9])))
        units = units_of(form, fiber, outer)
        columns[0, mine], columns[1, mine] = units.metadata, units.payload
        if pointers:
            there = fiber.slots * fiber.occupied if form.compressed else fiber.fibers * fiber.length
            columns[2, mine] = fiber.fibers + there
        narrow = 0.0 if outer is None else np.logical_not(units.readable)
        each = {"metadata_bits": units.metadata_bits, "payload_bits": units.payload_bits, "narrow": narrow}
        for name, bits in each.items():
            getattr(found, name)[ranks] = (
                np.asarray(bits)[np.searchsorted(mine, ends[ranks])] if np.ndim(bits) else bits
            )
    windows = np.concatenate([part.merged for _, part in parts])
    merged = np.flatnonzero(windows[points.rank]) if windows.any() else ends[:0]
    totals = _sums(points.rank, points.p, columns, count)
    for name, column, total in zip(("metadata", "payload", "offsets"), columns, totals, strict=True):
        if not column.any():
            continue
        getattr(found, name)[:] = total
        getattr(found, f"largest_{name}")[:] = column[ends]
        if len(merged):
            steady = np.where(windows, _same(column, points.rank, ends, merged), np.nan)
            first = 0
            for tables, part in parts:
                some = steady[first : first + len(part.tiles)]
                rows = np.flatnonzero(~np.isnan(some))
                if rows.size:
                    getattr(found, name)[first + rows] = tables.total(part, rows, some[rows])
                first += len(some)
    return found


def fixed(values: Array) -> Array:
    """The same array, which nobody can write any more."""
    values.flags.writeable = False
    return values


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
