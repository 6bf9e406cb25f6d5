"""Probability of an empty part of a tile, for every possible number of nonzeros in the tile (section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from .lookup import Lists, Table, chunks, fingerprint
from .tiles import Tiles

POINTS_AT_ONCE = 1 << 16
"""Occupancies processed at once, to bound temporary arrays."""


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
        """Total count of stored numbers."""
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
        """Pairs at some rows of `table`."""
        found = Pair(*np.ascontiguousarray(self.table.data[rows].T))
        return found._replace(filled=found.filled.astype(np.int64), varies=found.varies > 0.0)

    def _pairs(self, tiles: Rows, shapes: Array, subs: Array) -> Pair:
        asked, known = self.tiles.occupancy, self.tiles.at(tiles)
        sizes, merged, empty_largest = known.points, known.grain > 0.0, (known.largest == 0.0).astype(np.float64)
        inner = np.any(subs != shapes, axis=1) | asked.whole_too
        stops = np.cumsum(sizes)
        pair = np.repeat(np.arange(len(sizes)), sizes)
        k = self.tiles.lists.data[(known.k - stops + sizes)[pair] + np.arange(stops[-1])]
        empty = (k == 0.0).astype(np.float64)  # of whole tiles
        some, points, last = inner & ~merged, (inner & ~merged)[pair], inner.nonzero()[0]
        which = np.concatenate([last, some.nonzero()[0]])
        counts = np.where(np.arange(len(which)) < len(last), 1, sizes[which])
        asked_k = np.concatenate([known.largest[last], k[points]])
        found = asked.within_many(subs[which], shapes[which], asked_k, counts)
        empty_largest[last], empty[points] = found[: len(last)], found[len(last) :]
        if merged.any():
            points = (inner & merged)[pair]
            empty[points] = asked.within_real(subs[pair[points]], shapes[pair[points]], k[points])
        filled = 1.0 - empty
        varies = np.zeros(len(sizes), dtype=bool)
        varies[pair[1:][(filled[1:] != filled[:-1]) & (pair[1:] == pair[:-1])]] = True
        return Pair(self.lists.add(filled) + stops - sizes, 1.0 - empty_largest, varies)
