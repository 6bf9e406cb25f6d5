"""Expected and largest units of metadata and payload of ranks (sections 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from sparsemap import Format, Outer
from sparsemap.inner.arrays import UNIT
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.contracts.sparsity import name_bits

from ..inner import functions
from .lookup import Table, fingerprint, take
from .pairs import Pairs
from .pieces import cut_bins
from .shared import SHARED
from .tiles import Tiles

AskedFormat = tuple[Format, Outer | None]
"""A format queried for plain units; or for the units of its code, with the knowledge from outer ranks."""
SINGLE = 5
"""Number of single figures of a rank, between the shapes."""


class Ranks(NamedTuple):
    """Ranks of tiles. Shapes are (1, N) words or, where shape matters, (tensor ranks, N); all other fields (N,)."""

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
        """Ranks from rows (N, columns): three shapes of `parts` numbers each, then the other columns, with `longest`
        last."""
        columns = np.ascontiguousarray(rows.T)
        tile, box, below = columns[: 3 * parts].reshape(3, parts, -1)
        last = 3 * parts + SINGLE
        length, above, form, positions, drops = columns[3 * parts : last]
        return cls(tile, box, below, length, above, form, positions, drops, columns[-1], columns[last:-1])

    def fingerprint(self) -> Array:
        """(N,) keys of all fields; a row depends on nothing else. `longest` is a mean, so all of its bits count."""
        longest = np.ascontiguousarray(self.longest, np.float64).view(np.int64)
        return fingerprint([*self.tile, *self.box, *self.below, *self[3:-2], *self.group, longest], 8)


class RankUnits(NamedTuple):
    """Units of ranks, a column (N,) each: expected, in the fullest tile, and bits per unit."""

    metadata: Array
    payload: Array
    largest_metadata: Array
    largest_payload: Array
    metadata_bits: Array
    payload_bits: Array
    offsets: Array
    """Number of offsets: one per position present, and one per end of a fiber."""
    largest_offsets: Array
    narrow: Array
    """1 where the code of the rank cannot be read, else 0."""

    def pointed(self, rows: Array, bits: Array) -> RankUnits:
        """Units with offsets of `bits` bits as payload at the rows (N,) bool."""
        return self._replace(
            payload=np.where(rows, self.offsets, self.payload),
            largest_payload=np.where(rows, self.largest_offsets, self.largest_payload),
            payload_bits=np.where(rows, bits, self.payload_bits),
        )

    @classmethod
    def zeros(cls, count: int) -> RankUnits:
        return cls(*np.zeros((len(cls._fields), count)))


class KnownFormats:
    """Formats defined in TOML, as arrays of numbers (`ExpressionFormat.in_numbers`)."""

    def __init__(self, *formats: AskedFormat) -> None:
        self.formats, self.table, self.lock = formats, Table(tuple, width=UNIT.TOLD), Lock()
        found = [self._asked(number, np.ones(1), np.ones(1)) for number in range(len(formats))]
        self.known = np.array([one is not None for one in found])
        self.codes = np.array([np.zeros(UNIT.CODE) if one is None else one[0] for one in found])
        self.read = np.array([outer is not None for _, outer in formats])
        """Whether a format is queried for its code, with readability checked."""

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        return self.table.size

    def _asked(self, number: int, length: Array, offset_bits: Array) -> tuple[Array, Array] | None:
        form, outer = self.formats[number]
        found: Callable[..., Any] | None = getattr(form, "in_numbers", None)
        return None if found is None else found(outer, length, offset_bits)

    def told(self, form: Array, length: Array, offset_bits: Array) -> tuple[Array, Array]:
        """Row indices (N,) and their table: the inputs of formats for fibers of a given length and offset width."""

        def fill(rows: Array) -> Array:
            found = np.zeros((UNIT.TOLD, len(rows)))
            for number in np.flatnonzero(np.bincount(form[rows])):
                mine = np.flatnonzero(form[rows] == number)
                numbers = self._asked(int(number), length[rows[mine]], offset_bits[rows[mine]])
                assert numbers is not None
                found[:, mine] = numbers[1]
            return found

        with self.lock:
            return self.table.rows(fingerprint([form, length, offset_bits]), fill), self.table.data


class Placed(NamedTuple):
    """Table entries of n ranks, in the form of `inner/rank_points.py`."""

    places: Array
    sizes: Array
    tiles: Array
    chances: Array
    pairs: Array
    filled: Array


class UnitTables:
    """Units of the ranks of one tensor, from formats."""

    def __init__(
        self, tiles: Tiles, pairs: Pairs, formats: tuple[AskedFormat, ...],
        empty: Callable[[Sequence[Array]], Array] | None, pointers: bool,
    ) -> None:  # fmt: skip
        """`empty`: probability of empty parts (N,) of the tensor; None: not used by formats. `pointers`: whether
        offsets count."""
        self.tiles, self.pairs, self.formats, self.empty, self.pointers = tiles, pairs, formats, empty, pointers
        self.group = np.array([float(form.group) for form, _ in formats])

    @cached_property
    def known(self) -> KnownFormats:
        return SHARED.get(KnownFormats, *self.formats)

    def units(self, ranks: Ranks) -> RankUnits:
        """Units of ranks: compiled for formats in TOML, by calls for others."""
        form = ranks.format.astype(np.int64)
        known = self.known.known[form]
        if known.all():
            found = self._known_units(ranks, form)
        else:
            found = RankUnits.zeros(len(known))
            if known.any():
                self._enter(found, known, self._known_units(take(ranks, known), form[known]))
        known = known & (found.narrow >= 0.0)  # others are no numbers from 0 on: their formats say what is wrong
        if not known.all():
            from .expected import expected

            self._enter(found, ~known, expected(self, take(ranks, ~known)))
        return found

    @staticmethod
    def _enter(found: RankUnits, rows: Array, own: RankUnits) -> None:
        for column, part in zip(found, own, strict=True):
            column[rows] = part

    def groups_of(self, ranks: Ranks) -> Array:
        """(N,) number of groups of a fiber."""
        size = self.group[ranks.format.astype(np.int64)]
        return np.ceil(ranks.length / size) if len(ranks.group) else np.zeros(len(size))

    def share_of(self, held: Array, there: Array) -> Array:
        """Share of non-empty positions: over all fibers or, by Timeloop in actual data, over non-empty fibers."""
        actual = self.tiles.occupancy.actual
        return np.minimum(1.0, held / np.where(there > 0.0, there, 1.0)) if actual else held

    def placed(self, ranks: Ranks) -> Placed:
        """Table entries of the ranks, without the inputs of formats."""
        parts = [ranks.box, ranks.below, ranks.group if len(ranks.group) else ranks.box]
        places = np.zeros((6, len(ranks.length)), dtype=np.int64)
        places[0] = self.tiles.rows(ranks.tile)
        tiles, subs = [np.tile(words, 3) for words in ranks.tile], np.concatenate(parts, axis=1)
        places[3:] = self.pairs.rows(tiles, [*subs]).reshape(3, -1)
        usual = 0.0 * ranks.length if self.empty is None else 1.0 - self.empty([*ranks.below])
        columns = ranks.length, ranks.above, self.groups_of(ranks), ranks.longest, usual, ranks.drop_empty
        tables = (table for one in (self.tiles, self.pairs) for table in (one.table.data, one.lists.data))
        return Placed(places, np.array(columns, dtype=np.float64), *tables)

    def _known_units(self, ranks: Ranks, form: Array) -> RankUnits:
        given = self.placed(ranks)
        given.places[1] = form
        given.places[2], told = self.known.told(form, ranks.length, name_bits(ranks.positions + 1.0))
        scratch = np.zeros(functions.SPANS, dtype=np.int64), np.zeros((UNIT.ROWS, functions.BLOCK))
        out = np.empty((len(form), len(RankUnits._fields)))
        functions.sum_units(
            *given, self.known.codes, told, self.tiles.one, self.tiles.occupancy.actual, *cut_bins(self, ranks, given),
            *scratch, np.zeros((3, functions.SUMS)), out,
        )  # fmt: skip
        found = RankUnits(*np.ascontiguousarray(out.T))
        if not self.pointers:
            found = found._replace(offsets=np.zeros(len(form)), largest_offsets=np.zeros(len(form)))
        found.narrow[(found.narrow > 0.0) & ~self.known.read[form]] = 0.0
        return found
