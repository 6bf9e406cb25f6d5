"""Probability of an empty part of a tile, for every possible number of nonzeros in the tile (section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from .lookup import Lists, Table, chunks
from .tiles import Tile, Tiles

POINTS_AT_ONCE = 1 << 16
"""Occupancies processed at once, to bound temporary arrays."""
LARGEST, POINTS, LIST, GRAIN = (Tile._fields.index(name) for name in ("largest", "points", "k", "grain"))


class Pair(NamedTuple):
    """Pairs of a tile and a sub-tile, a column (N,) each."""

    filled: Array  # place in `Pairs.lists` of 1 - P0 for every k that is listed of the tile
    filled_largest: Array  # 1 - P0 at the largest occupancy
    varies: Array  # whether 1 - P0 differs between the k


class Pairs:
    """Sub-tiles of the tiles of one tensor."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self.table = Table(len(Pair._fields))
        self.clear()

    def clear(self) -> None:
        self.table.clear()
        self.lists = Lists()

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        return self.lists.size + self.table.size

    def rows(self, keys: Array, tiles: Rows, wholes: Array, parts: Sequence[Array]) -> Rows:
        """Rows (m N,) of `table` for the keys of m parts of N tiles. `tiles` (N,): their rows; `wholes` and each of
        `parts`: words, (tensor ranks, N)."""

        def fill(rows: Rows) -> Array:
            mine = rows % len(tiles)
            known, subs = tiles[mine], np.concatenate(parts, axis=1)[:, rows]
            shapes = np.array([wholes[:, mine].T, subs.T], dtype=np.int64, order="C")
            some = chunks(self.tiles.table.data[known, POINTS], POINTS_AT_ONCE)
            made = [self._pairs(known[part], *shapes[:, part]) for part in some]
            return np.concatenate(made)

        return self.table.rows(keys, fill)

    def _pairs(self, tiles: Rows, shapes: Array, subs: Array) -> Array:
        """(m, 3) columns of pairs."""
        asked, largest = self.tiles.occupancy, self.tiles.table.data[tiles, LARGEST]
        sizes, first = self.tiles.table.data[tiles[:, None], [POINTS, LIST]].T.astype(np.int64)
        merged, empty_largest = self.tiles.table.data[tiles, GRAIN] > 0.0, (largest == 0.0).astype(np.float64)
        inner = np.any(subs != shapes, axis=1) | asked.whole_too
        stops = np.cumsum(sizes)
        pair = np.repeat(np.arange(len(sizes)), sizes)
        k = self.tiles.lists.data[(first - stops + sizes)[pair] + np.arange(stops[-1])]
        empty = (k == 0.0).astype(np.float64)  # of whole tiles
        some, points, last = inner & ~merged, (inner & ~merged)[pair], inner.nonzero()[0]
        which = np.concatenate([last, some.nonzero()[0]])
        counts = np.where(np.arange(len(which)) < len(last), 1, sizes[which])
        found = asked.within_many(subs[which], shapes[which], np.concatenate([largest[last], k[points]]), counts)
        empty_largest[last], empty[points] = found[: len(last)], found[len(last) :]
        if merged.any():
            points = (inner & merged)[pair]
            empty[points] = asked.within_real(subs[pair[points]], shapes[pair[points]], k[points])
        filled = 1.0 - empty
        varies = np.zeros(len(sizes), dtype=bool)
        varies[pair[1:][(filled[1:] != filled[:-1]) & (pair[1:] == pair[:-1])]] = True
        return np.stack([self.lists.add(filled) + stops - sizes, 1.0 - empty_largest, varies], axis=1)
