"""Units of metadata and payload that a rank has on average, and at most (sections 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from sparsemap import Format, Outer
from sparsemap.pieces.contracts.base import Array

from .. import native
from .lookup import FACTORS, Number, Table, fingerprint, take
from .pairs import Pairs
from .shared import SHARED
from .tiles import Tiles

AskedFormat = tuple[Format, Outer | None]
"""A format that is asked for its units; or for those of its code, where ranks outside have told so much."""
CODES = 9 + 2 * 2 * 16
"""Numbers of a format's code, with its programs."""
CALLS = 4
"""For one lot of ranks, at most: tables that start afresh in between would be asked for again and again."""
LOOPS = np.exp, np.expm1, np.log1p, np.log2
NONE = np.zeros((2, 0), dtype=np.int64), np.zeros((4, 0))
"""Pieces of bins where none are cut."""


SINGLE = 5
"""Numbers of a rank between its shapes."""


class Ranks(NamedTuple):
    """Ranks of tiles. Shapes are (1, N) words or, where the shape matters, (tensor ranks, N); all others (N,)."""

    tile: Array
    box: Array  # the part of the tile that one fiber of the rank covers
    below: Array  # the part that one position of a fiber covers
    length: Array  # L, positions of a fiber
    above: Array  # maxf, fibers of the rank in the whole tile
    format: Array
    positions: Array  # of this rank and all inside: what an offset must be able to name
    drop_empty: Array  # 1 where the parent sends no empty tiles, otherwise 0
    longest: Array  # expected non-empty positions of the fullest fiber of the tensor, where the format is padded
    group: Array  # the part that a group of positions covers, as `below`; without rows if no code has groups

    @classmethod
    def of(cls, rows: Array, parts: int) -> Ranks:
        """Of rows (N, columns) with the shapes, so many numbers each, then the other columns, the longest as the last."""
        columns = np.ascontiguousarray(rows.T)
        tile, box, below = columns[: 3 * parts].reshape(3, parts, -1)
        last = 3 * parts + SINGLE
        length, above, form, positions, drops = columns[3 * parts : last]
        return cls(tile, box, below, length, above, form, positions, drops, columns[-1], columns[last:-1])

    @property
    def rows(self) -> Array:
        """(N, columns), as `of` takes them."""
        single = [column[None] for column in self[3:-2]]
        return np.ascontiguousarray(np.concatenate([*self[:3], *single, self.group, self.longest[None]]).T)

    def fingerprint(self) -> Array:
        """(N,) keys of all fields: a row depends on nothing else. `longest` is a mean, of which all bits count."""
        longest = np.ascontiguousarray(self.longest, np.float64).view(np.int64)
        return fingerprint([*self.tile, *self.box, *self.below, *self[3:-2], *self.group, longest], 8)


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


class Told(NamedTuple):
    """What a format's lists of positions go by, as `units.c` has it: of groups, and of the positions of one; or its counts
    (`ExpressionFormat.for_c`)."""

    group_entry: Array
    groups: Array
    positions: Array
    entry: Array
    entry_count: Array
    most: Array
    coord_bits: Array
    readable: Array
    readable_even: Array


class KnownFormats:
    """Those among some formats that are in TOML, as `units.c` knows them."""

    def __init__(self, *formats: AskedFormat) -> None:
        self.formats, self.table, self.lock = formats, Table(Told), Lock()
        codes = [self._asked(number, np.ones(1), np.ones(1)) for number in range(len(formats))]
        self.known = np.array([code is not None for code in codes])
        self.codes = np.zeros((len(formats), CODES))
        for row, code in zip(self.codes, codes, strict=True):
            if code is not None:
                row[: len(code[0])] = code[0]

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.table.size

    def _asked(self, number: int, length: Array, offset_bits: Array) -> tuple[Sequence[float], Sequence[Array]] | None:
        form, outer = self.formats[number]
        told: Callable[..., Any] | None = getattr(form, "for_c", None)
        return None if told is None else told(outer, length, offset_bits)

    def tell(self, form: Array, length: Array, offset_bits: Array) -> None:
        """Puts what fibers (N,) of so many positions go by into the table."""

        def fill(rows: Array) -> Array:
            found = np.zeros((len(Told._fields), len(rows)))
            for number in np.flatnonzero(np.bincount(form[rows].astype(np.int64))):
                mine = np.flatnonzero(form[rows] == number)
                told = self._asked(int(number), length[rows[mine]], offset_bits[rows[mine]])
                assert told is not None
                found[:, mine] = told[1]
            return found

        self.table.rows(fingerprint([form, length, offset_bits]), fill)


class UnitTables:
    """Asks the formats for the units of the ranks of one tensor."""

    def __init__(
        self, tiles: Tiles, pairs: Pairs, formats: tuple[AskedFormat, ...], empties: Table[Number],
        empty: Callable[[Sequence[Array]], Array] | None, pointers: bool,
    ) -> None:  # fmt: skip
        """`empty`: the chance that parts (N,) of the tensor are, which `empties` keeps; None: no format asks. `pointers`:
        whether offsets count."""
        self.tiles, self.pairs, self.formats, self.empty, self.pointers = tiles, pairs, formats, empty, pointers
        self.empties, self.group = empties, np.array([float(form.group) for form, _ in formats])

    @cached_property
    def told(self) -> KnownFormats:
        return SHARED.get(KnownFormats, *self.formats)

    def units(self, ranks: Ranks) -> RankUnits:
        """Units of ranks: in C where it knows their formats, else by the formats themselves."""
        if native.units is not None:
            known = self.told.known
            if not known.all():
                known = known[ranks.format.astype(np.int64)]
            if known.all() and (made := self._in_c(ranks)) is not None:
                return made
            if known.any() and not known.all():
                found = RankUnits.zeros(len(known))
                for some in (known, ~known):
                    for column, own in zip(found, self.units(take(ranks, some)), strict=True):
                        column[some] = own
                return found
        from .expected import expected

        return expected(self, ranks)

    def groups_of(self, ranks: Ranks) -> Array:
        """Groups of a fiber, (N,)."""
        size = self.group[ranks.format.astype(np.int64)]
        return np.ceil(ranks.length / size) if len(ranks.group) else ranks.length

    def share_of(self, held: Array, there: Array) -> Array:
        """The share of positions that hold something: of all fibers, or by Timeloop, in actual data, of those that are there."""
        actual = self.tiles.occupancy.actual
        return np.minimum(1.0, held / np.where(there > 0.0, there, 1.0)) if actual else held

    def _in_c(self, ranks: Ranks) -> RankUnits | None:
        """By `units.c`; None: it does not know some numbers."""
        rows, n = ranks.rows, len(ranks.tile)
        for _ in range(CALLS):
            with self.told.lock:
                given = self._given(rows, n, len(ranks.group) > 0)
                lacks = native.units.lacking(*given)
                if lacks is None:
                    return None
                tiles, pairs, told, empty = (np.frombuffer(part) for part in lacks)
                if told.size:
                    self.told.tell(*columns_of(told, 3))
                elif not any(map(len, lacks)):
                    cut = NONE
                    if self.tiles.merged:
                        from .pieces import cut_bins

                        cut = cut_bins(self, ranks, given)
                    out = np.empty((len(rows), len(RankUnits._fields)))
                    return None if native.units.units(*given, *cut, out) is None else RankUnits(*out.T)
            if tiles.size:
                self.tiles.rows(columns_of(tiles, n))
            if pairs.size:
                both = columns_of(pairs, 2 * n)
                self.pairs.rows(both[:n], both[n:])
            if empty.size and self.empty is not None:
                self.empty(columns_of(empty, n))
        return None

    def _given(self, rows: Array, n: int, groups: bool) -> tuple[Any, ...]:
        """What all doors of `units.c` take, for ranks in rows, whose shapes are `n` numbers each."""
        tables = [table for one in (self.tiles, self.pairs, self.told) for table in (one.table.places, one.table.data)]
        empties = (self.empties.places, self.empties.data) if self.empty is not None else (None, None)
        flags = n, groups, self.tiles.occupancy.actual, self.pointers
        lists = self.tiles.lists.data, self.pairs.lists.data, self.tiles.one
        return rows, *flags, *tables, *empties, *lists, self.told.codes, self.group, FACTORS, LOOPS


def columns_of(data: Array, width: int) -> list[Array]:
    """(N,) each, of N rows of so many numbers."""
    return list(np.ascontiguousarray(data.reshape(-1, width).T))
