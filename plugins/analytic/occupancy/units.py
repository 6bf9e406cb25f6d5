"""Expected and largest units of metadata and payload of ranks (sections 6.2 and 6.3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from sparsemap import Format, Outer
from sparsemap.inner.arrays import UNIT
from sparsemap.pieces.contracts.base import Array, Rows
from sparsemap.pieces.contracts.sparsity import name_bits

from ..inner import functions
from .lookup import Table
from .pairs import Pairs
from .pieces import cut_bins
from .shared import SHARED
from .tiles import Tiles

AskedFormat = tuple[Format, Outer | None]
"""A format queried for plain units; or for the units of its code, with the knowledge from outer ranks."""


class Ranks(NamedTuple):
    """Ranks of N tiles as one float64 array (c, N). First three shapes: the tile, the part of it that one fiber of the
    rank covers, and the part that one position of a fiber covers. Then single figures: positions of a fiber (L), fibers
    of the rank in the whole tile (maxf), format, positions of this rank and all inside (what an offset must be able to
    name), 1 where the parent sends no empty tiles, and expected non-empty positions of the fullest fiber of the tensor,
    where the format is padded. If any code has groups, finally the part that a group of positions covers."""

    columns: Array
    parts: int
    """Rows of a shape: one of words or, where shape matters, one per tensor rank."""

    @classmethod
    def of(cls, *fields: Array) -> Ranks:
        """Ranks from shapes (parts, N) and figures (N,), in order."""
        return cls(np.concatenate([np.atleast_2d(field) for field in fields], dtype=np.float64), len(fields[0]))

    def __len__(self) -> int:
        return self.columns.shape[1]

    def take(self, rows: Rows | slice) -> Ranks:
        return Ranks(np.ascontiguousarray(self.columns[:, rows]), self.parts)

    def shape(self, place: int) -> Array:
        """(parts, N) tile, fiber's part or position's part."""
        return self.columns[place * self.parts : (place + 1) * self.parts]

    @property
    def group(self) -> Array:
        """(parts, N); without rows if no code has groups."""
        return self.columns[3 * self.parts + 6 :]

    @property
    def length(self) -> Array:
        return self.columns[3 * self.parts]

    @property
    def format(self) -> Array:
        return self.columns[3 * self.parts + 2].astype(np.int64)

    @property
    def positions(self) -> Array:
        return self.columns[3 * self.parts + 3]


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


class KnownFormats:
    """Formats defined in TOML, as arrays of numbers (`ExpressionFormat.in_numbers`)."""

    def __init__(self, *formats: AskedFormat) -> None:
        self.formats, self.table, self.lock = formats, Table(UNIT.TOLD), Lock()
        found = [self._asked(number, np.ones(1), np.ones(1)) for number in range(len(formats))]
        self.known = np.array([one is not None for one in found])
        self.codes = np.array([np.zeros(UNIT.CODE) if one is None else one[0] for one in found])
        self.read = np.array([outer is not None for _, outer in formats], dtype=np.uint8)
        """Whether a format is queried for its code, with readability checked."""

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        return self.table.size

    def _asked(self, number: int, length: Array, offset_bits: Array) -> tuple[Array, Array] | None:
        form, outer = self.formats[number]
        found: Callable[..., Any] | None = getattr(form, "in_numbers", None)
        return None if found is None else found(outer, length, offset_bits)

    def told(self, keys: Array, ranks: Ranks) -> tuple[Array, Array]:
        """Row indices (N,) of keys and their table: the inputs of formats for fibers of a given length and offset
        width."""

        def fill(rows: Array) -> Array:
            found, form = np.zeros((len(rows), UNIT.TOLD)), ranks.format[rows]
            length, offset_bits = ranks.length[rows], name_bits(ranks.positions[rows] + 1.0)
            for number in np.flatnonzero(np.bincount(form)):
                (mine,) = (form == number).nonzero()
                numbers = self._asked(int(number), length[mine], offset_bits[mine])
                assert numbers is not None
                found[mine] = numbers[1].T
            return found

        with self.lock:
            return self.table.rows(keys, fill), self.table.data


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
        empty: Callable[..., Array] | None, pointers: bool,
    ) -> None:  # fmt: skip
        """`empty`: probability of empty parts (N,) of the tensor, with their keys; None: not used by formats.
        `pointers`: whether offsets count."""
        self.tiles, self.pairs, self.formats, self.empty, self.pointers = tiles, pairs, formats, empty, pointers
        self.group = np.array([float(form.group) for form, _ in formats])
        self.scratch = np.zeros(functions.SPANS, np.int64), np.zeros((UNIT.ROWS, functions.BLOCK))
        self.sums = np.zeros((3, functions.SUMS))
        self.steps = np.empty((0, 2), np.int64), np.empty((0, 5))
        """Room for the results of `find_steps`."""

    @cached_property
    def known(self) -> KnownFormats:
        return SHARED.get(KnownFormats, *self.formats)

    def units(self, ranks: Ranks) -> Array:
        """(N, 9) columns of `RankUnits`: compiled for formats in TOML, by calls for others."""
        known = self.known.known[ranks.format]
        if known.all():
            found = self._known_units(ranks)
        else:
            found = np.zeros((len(known), len(RankUnits._fields)))
            if known.any():
                found[known] = self._known_units(ranks.take(known))
        known = known & (found[:, -1] >= 0.0)  # others are no numbers from 0 on: their formats say what is wrong
        if not known.all():
            from .expected import expected

            found[~known] = np.array(expected(self, ranks.take(~known))).T
        return found

    def placed(self, ranks: Ranks, known: bool = False) -> tuple[Placed, Array]:
        """Table entries of the ranks, and the inputs of formats where all are `known`."""
        (places, keys), told = np.empty((2, 6, len(ranks)), np.int64), self.known.codes
        tile, box, below = map(ranks.shape, range(3))
        sizes = np.empty(places.shape)
        functions.place_ranks(ranks.columns, ranks.parts, self.group, places, sizes, keys)
        places[0] = self.tiles.rows_of(keys[0], tile)
        parts = box, below, ranks.group if len(ranks.group) else box
        places[3:] = self.pairs.rows(keys[2:5].reshape(-1), places[0], tile, parts).reshape(3, -1)
        if self.empty is not None:
            sizes[4] = 1.0 - self.empty(below, keys[5])
        if known:
            places[2], told = self.known.told(keys[1], ranks)
        tables = (table for one in (self.tiles, self.pairs) for table in (one.table.data, one.lists.data))
        return Placed(places, sizes, *tables), told

    def _known_units(self, ranks: Ranks) -> Array:
        (given, told), known = self.placed(ranks, known=True), self.known
        cut, out = cut_bins(self, ranks, given), np.empty((len(ranks), len(RankUnits._fields)))
        functions.sum_units(
            *given, known.codes, told, known.read, self.pointers, self.tiles.one, self.tiles.occupancy.actual, *cut,
            *self.scratch, self.sums, out,
        )  # fmt: skip
        return out
