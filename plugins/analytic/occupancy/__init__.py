"""Tables of everything determined by a tile and its density: computed once per tile, then looked up (sections 5 and 6).

`tiles` holds the occupancies k of a tile with probabilities, merged to `bins` in large tiles. `pairs` holds the
probability of an empty part of a tile, for every k. `units` holds the metadata units of ranks. The hash maps of
`lookup` store all tables, bounded in size; dropped rows are computed again. A value depends on the key alone, never on
other entries of a batch. Tables depend on density and formats only, so problems on different chips share tables
(`shared`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sparsemap import Occupancy
from sparsemap.pieces.contracts.base import Array, Rows

from .lookup import Table, fingerprint
from .methods import OccupancyMethods
from .pairs import Pairs
from .shared import SHARED
from .tiles import Tiles
from .units import AskedFormat, Ranks, RankUnits, UnitTables

__all__ = ["AskedFormat", "RankUnits", "Ranks", "TensorTables"]

Made = TypeVar("Made")

KEPT = 8 << 20
"""Limit of float64 numbers kept for tiles and pairs (64 MB); a search of a tensor in cut blocks has 25 MB."""


class TileFigures(NamedTuple):
    """Figures of tiles, (N,) each; the fields are the first fields of `Tile`."""

    density: Array
    occupied: Array
    density_occupied: Array
    largest: Array


class TensorTables:
    """The tables of one tensor. A lock lets several threads take turns.

    Shapes of tiles are words, or words per tensor rank if `by_shape`: arrays (N,) of a single row or a row per tensor
    rank."""

    def __init__(
        self,
        occupancy: Occupancy,
        quirks: frozenset[str],
        formats: tuple[AskedFormat, ...],
        usual: bool = False,
        pointers: bool = False,
    ) -> None:
        """`usual`: formats need the occupancy of a rank averaged over the tensor; `pointers`: ranks may have offsets."""
        self.by_shape = occupancy.by_shape
        self.asked = OccupancyMethods(occupancy, quirks)
        self.asked.actual &= not usual  # codes count what all fibers hold, Timeloop those that are there (7.5)
        self.tiles = Tiles(self.asked)
        self.pairs = Pairs(self.tiles)
        self.lock = RLock()
        self._made: dict[Hashable, Any] = {}
        self._units = Table(len(RankUnits._fields))
        self._empty, self._largest_stored, self._longest, self._filled, self._passes = (Table() for _ in range(5))
        empty = self.empty if usual else None
        self.ranks = UnitTables(self.tiles, self.pairs, formats, empty, pointers)

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        own = (self._units, self._empty, self._largest_stored, self._longest, self._filled, self._passes)
        made = sum(getattr(one, "size", 1) for one in self._made.values())
        return made + self.tiles.size + self.pairs.size + sum(table.size for table in own)

    @classmethod
    def shared(cls, *arguments: Any) -> TensorTables:
        """The tables for these arguments, shared within the process."""
        return SHARED.get(cls, *arguments)

    def remember(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Result of `make`, computed once per key for these tables."""
        if key not in self._made:
            self._made[key] = make()
        found: Made = self._made[key]
        return found

    def _trim(self) -> None:
        if self.tiles.size + self.pairs.lists.size > KEPT:
            self.tiles.clear()
            self.pairs.clear()

    def tile(self, parts: Sequence[Array]) -> TileFigures:
        """Densities and largest occupancies of tiles."""
        with self.lock:
            self._trim()
            rows = self.tiles.rows(parts)
            return TileFigures(*self.tiles.table.data[rows, : len(TileFigures._fields)].T)

    def empty(self, parts: Sequence[Array], keys: Array | None = None) -> Array:
        """(N,) probability of an empty leader tile (7.1)."""
        return self._each(self._empty, self.asked.empty, parts, keys=keys)

    def largest_stored(self, tiles: Sequence[Array], granules: Sequence[Array]) -> Array:
        """(N,) largest number of words in the non-empty granules of a tile (6.5)."""
        return self._each(self._largest_stored, self.asked.largest_stored, tiles, granules)

    def longest(self, fibers: Sequence[Array], positions: Sequence[Array], counts: Array) -> Array:
        """(N,) expected non-empty positions in the fullest of `counts` fibers (6.5)."""
        asked = self.asked.longest
        return self._each(self._longest, lambda f, p, n: asked(f, p, float(n[0])), fibers, positions, [counts])

    def packed(self, tiles: Sequence[Array], lanes: Array) -> tuple[Array, Array]:
        """(N,) share of `lanes` filled by the nonzeros of a tile, and the passes needed (7.4)."""
        from .plain import packed

        asked = self.asked
        filled = self._each(self._filled, lambda tile, n: packed(asked, tile, float(n[0]))[0], tiles, [lanes])
        return filled, self._each(self._passes, lambda tile, n: packed(asked, tile, float(n[0]))[1], tiles, [lanes])

    def _each(
        self, table: Table, ask: Callable[..., float], *groups: Sequence[Array], keys: Array | None = None
    ) -> Array:
        """One number per row: `ask` applied to a tuple of whole numbers per group of columns (N,)."""

        def fill(rows: Rows) -> Array:
            shapes = [zip(*(part[rows].astype(np.int64).tolist() for part in group), strict=True) for group in groups]
            return np.array([[float(ask(*some))] for some in zip(*shapes, strict=True)])

        with self.lock:
            keys = fingerprint([part for group in groups for part in group]) if keys is None else keys
            return table.found(keys, fill)[:, 0]

    def units(self, ranks: Ranks) -> RankUnits:
        """Expected and largest units of metadata and payload."""
        return RankUnits(*self.rank_rows(ranks).T)

    def rank_rows(self, ranks: Ranks) -> Array:
        """(N, 9) columns of `RankUnits`."""
        with self.lock:
            return self._units.found(fingerprint(ranks.columns), partial(self._units_of, ranks))

    def _units_of(self, ranks: Ranks, rows: Rows) -> Array:
        self._trim()
        return self.ranks.units(ranks if len(rows) == len(ranks) else ranks.take(rows))
