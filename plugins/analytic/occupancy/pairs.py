"""Probability that part of a tile is empty, for every number of nonzeros that the tile may hold (section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from .lookup import Lists, Table, chunks, fingerprint
from .tiles import Tiles

POINTS_AT_ONCE = 1 << 16
"""Occupancies that are handled at once: bounds temporary arrays."""


class Pair(NamedTuple):
    """Pairs of a tile and a sub-tile, a column (N,) each."""

    filled: Array  # place in `Pairs.lists` of 1 - P0 for every k that is listed of the tile
    filled_largest: Array  # 1 - P0 at the largest occupancy
    varies: Array  # whether 1 - P0 differs between the k


class Pairs:
    """Sub-tiles of the tiles of one tensor."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self.table = Table(Pair)
        self.clear()

    def clear(self) -> None:
        self.table.clear()
        self.lists = Lists()

    @property
    def size(self) -> int:
        """Numbers kept."""
        return self.lists.size + self.table.size

    def rows(self, tiles: Sequence[Array], subs: Sequence[Array]) -> Rows:
        """Rows (N,) of `table` for tiles and sub-tiles, both (N,) words or a row per tensor rank."""

        def fill(rows: Rows) -> Pair:
            whole, parts = [part[rows] for part in tiles], [part[rows] for part in subs]
            known, shapes = self.tiles.rows(whole), np.array([whole, parts], dtype=np.int64).transpose(0, 2, 1)
            some = chunks(self.tiles.at(known).points, POINTS_AT_ONCE)
            made = [self._pairs(known[part], *shapes[:, part]) for part in some]
            return Pair(*map(np.concatenate, zip(*made, strict=True)))

        return self.table.rows(fingerprint([*tiles, *subs]), fill)

    def at(self, rows: Rows) -> Pair:
        """Pairs by their rows."""
        found = Pair(*np.ascontiguousarray(self.table.data[rows].T))
        return found._replace(filled=found.filled.astype(np.int64), varies=found.varies > 0.0)

    def _pairs(self, tiles: Rows, shapes: Array, subs: Array) -> Pair:
        asked, known = self.tiles.occupancy, self.tiles.at(tiles)
        sizes, merged, largest = known.points, known.grain > 0.0, known.largest
        inner = np.any(subs != shapes, axis=1) | asked.whole_too
        stops = np.cumsum(sizes)
        k = self.tiles.lists.data[np.repeat(known.k - (stops - sizes), sizes) + np.arange(stops[-1])]
        empty, empty_largest = (k == 0.0).astype(np.float64), (largest == 0.0).astype(np.float64)  # of whole tiles
        ones = np.ones(inner.sum(), dtype=np.int64)
        empty_largest[inner] = asked.within_many(subs[inner], shapes[inner], largest[inner], ones)
        for some in (inner & ~merged, inner & merged):
            if not some.any():
                continue
            points = np.repeat(some, sizes)
            if merged[some][0]:
                pair = np.repeat(np.flatnonzero(some), sizes[some])
                empty[points] = asked.within_real(subs[pair], shapes[pair], k[points])
            else:
                empty[points] = asked.within_many(subs[some], shapes[some], k[points], sizes[some])
        filled = 1.0 - empty
        pair = np.repeat(np.arange(len(sizes)), sizes)
        varies = np.zeros(len(sizes), dtype=bool)
        varies[pair[1:][(filled[1:] != filled[:-1]) & (pair[1:] == pair[:-1])]] = True
        return Pair(self.lists.add(filled) + stops - sizes, 1.0 - empty_largest, varies)
