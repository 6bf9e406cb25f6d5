"""Everything that depends on a tile and its density is computed once per tile, then looked up (sections 5 and 6).

`tiles` knows the occupancies k of a tile and their probabilities, in large tiles merged to `bins`; `pairs` the
probability that part of a tile is empty, for every k; `units` what formats need for a rank. All of it lives in the hash
maps of `lookup`; what they hold is bounded, and made again where it was dropped. A value depends on its key alone, not
on what it is computed with. Tables depend on density and formats alone, so that problems on other chips share them
(`shared`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sparsemap import Occupancy
from sparsemap.pieces.contracts.base import Array, Rows
from sparsemap.pieces.contracts.sparsity import name_bits

from .lookup import Number, Table, fingerprint, take
from .methods import OccupancyMethods
from .pairs import Pairs
from .shared import SHARED
from .tiles import Tiles
from .units import AskedFormat, Ranks, RankUnits, UnitTables

__all__ = ["AskedFormat", "RankUnits", "Ranks", "TensorTables"]

Made = TypeVar("Made")

KEPT = 8 << 20
"""float64 of tiles and pairs that are kept until they are dropped, 64 MB: a search of a tensor in cut blocks has 25 MB."""


class TileFigures(NamedTuple):
    """What is known of tiles, (N,) each; the fields are those of `Tile`."""

    density: Array
    occupied: Array
    density_occupied: Array
    largest: Array


class TensorTables:
    """The tables of one tensor. Several threads may ask at once; they take turns.

    Shapes of tiles are words, or words per tensor rank if `by_shape`: arrays (N,) of one row or a row per tensor rank.
    """

    def __init__(
        self,
        occupancy: Occupancy,
        quirks: frozenset[str],
        formats: tuple[AskedFormat, ...],
        usual: bool = False,
        pointers: bool = False,
    ) -> None:
        """`usual`: formats ask how full a rank is anywhere in the tensor; `pointers`: ranks may have offsets."""
        self.by_shape = occupancy.by_shape
        self.asked = OccupancyMethods(occupancy, quirks)
        self.asked.actual &= not usual  # codes count what all fibers hold, Timeloop those that are there (7.5)
        self.tiles = Tiles(self.asked)
        self.pairs = Pairs(self.tiles)
        self.lock = RLock()
        self._made: dict[Hashable, Any] = {}
        self._units = Table(RankUnits)
        self._empty, self._largest_stored, self._longest, self._filled, self._passes = (Table(Number) for _ in range(5))
        empty = self.empty if usual else None
        self.ranks = UnitTables(self.tiles, self.pairs, formats, empty, pointers)

    @property
    def size(self) -> int:
        """Numbers kept."""
        own = (self._units, self._empty, self._largest_stored, self._longest, self._filled, self._passes)
        made = sum(getattr(one, "size", 1) for one in self._made.values())
        return made + self.tiles.size + self.pairs.size + sum(table.size for table in own)

    @classmethod
    def shared(cls, *arguments: Any) -> TensorTables:
        """The tables of all tensors of a process with these arguments."""
        return SHARED.get(cls, *arguments)

    def remember(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made of these tables and of what `key` says, once."""
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

    def empty(self, parts: Sequence[Array]) -> Array:
        """(N,) probability that a leader tile is empty (7.1)."""
        return self._each(self._empty, self.asked.empty, parts)

    def largest_stored(self, tiles: Sequence[Array], granules: Sequence[Array]) -> Array:
        """(N,) words that the granules of a tile with a nonzero in them hold at most (6.5)."""
        return self._each(self._largest_stored, self.asked.largest_stored, tiles, granules)

    def longest(self, fibers: Sequence[Array], positions: Sequence[Array], counts: Array) -> Array:
        """(N,) expected non-empty positions in the fullest of `counts` fibers (6.5)."""
        asked = self.asked.longest
        return self._each(self._longest, lambda f, p, n: asked(f, p, float(n[0])), fibers, positions, [counts])

    def packed(self, tiles: Sequence[Array], lanes: Array) -> tuple[Array, Array]:
        """(N,) share of so many lanes that the nonzeros of a tile fill, and passes that they need (7.4)."""
        from .plain import packed

        asked = self.asked
        filled = self._each(self._filled, lambda tile, n: packed(asked, tile, float(n[0]))[0], tiles, [lanes])
        return filled, self._each(self._passes, lambda tile, n: packed(asked, tile, float(n[0]))[1], tiles, [lanes])

    def _each(self, table: Table, ask: Callable[..., float], *groups: Sequence[Array]) -> Array:
        """One number per row, `ask` of a tuple of whole numbers per group of columns (N,)."""

        def fill(rows: Rows) -> Number:
            shapes = [zip(*(part[rows].astype(np.int64).tolist() for part in group), strict=True) for group in groups]
            return Number(np.array([float(ask(*some)) for some in zip(*shapes, strict=True)]))

        with self.lock:
            return table.find(fingerprint([part for group in groups for part in group]), fill).value

    def units(self, ranks: Ranks, pointed: Array | None = None) -> RankUnits:
        """Expected and largest units of metadata and payload; `pointed` (N,) bool: where offsets are the payload."""
        with self.lock:
            found = self._units.find(ranks.fingerprint(), partial(self._units_of, ranks))
        return found if pointed is None else found.pointed(pointed, name_bits(ranks.positions + 1.0))

    def _units_of(self, ranks: Ranks, rows: Rows) -> RankUnits:
        self._trim()
        return self.ranks.units(ranks if len(rows) == len(ranks.length) else take(ranks, rows))
