"""Tiles of tensors with N:M sparsity in kept blocks (5.7), exact.

In one block row (a *band*), the number of kept blocks touched by a tile is hypergeometric. A kept block adds the
nonzeros of its groups: a fixed number for whole groups, hypergeometric per row and group for cut groups. Bands are
independent, so their distributions are convolved, as products of Fourier transforms. Tiles of the same size in
different positions relative to the blocks are averaged. All of this is exact up to 1e-15 in absolute probability,
except for tiles with more than `crisp_sums.POINTS` possible occupancies within reach: there, an occupancy is split
between the nearest two of so many points."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np

from sparsemap.inner.arrays import power
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .common import chosen, expanded, remembered
from .crisp_bands import Cut, Places
from .crisp_sums import UNSEEN, Asked, CrispSums, Lattice


class CrispOccupancy(CrispSums):
    """Tiles of a tensor of `crisp.Crisp`. Tiles are aligned; tiles cut off at an edge count with their actual size."""

    __slots__ = ()

    by_shape = True

    @property
    def density(self) -> float:  # type: ignore[override]
        columns, groups = self.columns, -(-self.columns.count // self.columns.m)
        held = np.minimum(columns.width(np.arange(groups)), columns.n).sum()
        return float(self.keep / self.blocks * held / columns.count)

    @remembered
    def _cut(self, tile: tuple[int, ...]) -> Cut:
        rows, first, *others = (min(int(t), s) for t, s in zip(tile, self.shape, strict=True))
        return rows, (*others, first)

    @remembered
    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(k), as described in the module."""
        cut = self._cut(tile)
        layout, (places, rows) = self._layout(cut), self._places(cut[0], cut[0], self._whole(cut[1]))
        p = self._of_tiles(layout.over(rows or 1), cut[1], places, cut[1])
        k = np.minimum(layout.origin + layout.step * np.arange(layout.points), int(self.largest(tile)))
        some = p > UNSEEN
        k, p = k[some], p[some]
        if len(k) > 1 and k[-1] == k[-2]:  # the last point was beyond the largest occupancy
            k, p = np.delete(k, -2), np.append(p[:-2], p[-2] + p[-1])
        return k, p / p.sum()

    @remembered
    def empty(self, tile: tuple[int, ...]) -> float:
        """Probability of every band being empty, averaged over the positions of the tile."""
        cut = self._cut(tile)
        found = total = 0.0
        for band, strip in self._positions(cut, cut):
            chance = 1.0
            for height, inner, count in band.touched:
                chance *= power(self._chance(strip.inside, height, inner, 0), count)
            weight = band.weight * strip.weight
            found, total = found + weight * chance, total + weight
        return found / total

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """P(sub-tile empty and k in the tile) / P(k), over all sub-tiles."""
        k = np.asarray(k)
        found = self.empty_within_many(np.array([sub_tile]), np.array([tile]), k.ravel(), np.array([k.size]))
        return found.reshape(k.shape)

    def empty_within_many(self, sub_tiles: Array, tiles: Array, k: Nonzeros, counts: Array) -> Array:
        """`empty_within` of n pairs; pairs of one tile are transformed together."""
        found, stop = np.empty(len(k)), 0
        asked = defaultdict[Any, dict[Asked, Any]](dict)
        looked_up = list[tuple[int, int, Lattice, Any, Asked]]()
        for sub_tile, tile, count in zip(sub_tiles.tolist(), map(tuple, tiles.tolist()), counts.tolist(), strict=True):
            start, stop = stop, stop + count
            cut, layout, largest, own = self._tile(tile)
            sub = self._cut(tuple(map(min, sub_tile, tile)))
            if cut == sub:
                found[start:stop] = k[start:stop] == 0
                continue
            if own and sub[0] * math.prod(sub[1]) == 1:  # a word: as many are empty as the tile has no nonzeros
                found[start:stop] = 1.0 - k[start:stop] / (cut[0] * math.prod(cut[1]))
                continue
            places, rows = self._places(cut[0], sub[0], self._whole(cut[1]))
            if count == 1 and k[start] == largest:
                full = (self._of_fullest if rows else self._empty_in_fullest)(places, cut[1], sub[1])
                if full is not None:
                    found[start] = full
                    continue
            about = layout.over(rows or 1), cut[1], own or places, cut[1] if own else sub[1]
            asked[about][places, sub[1]] = None
            looked_up.append((start, count, layout, about, (places, sub[1])))
        for about, ones in asked.items():
            ones.update(zip(ones, self._empty_shares(about, list(ones)), strict=True))
        for start, count, layout, about, one in looked_up:
            shares = asked[about][one]
            at = np.rint((k[start : start + count] - layout.origin) / layout.step).astype(np.int64)
            found[start : start + count] = shares[np.minimum(np.maximum(at, 0), len(shares) - 1)]
        return found

    @remembered
    def _tile(self, tile: tuple[int, ...]) -> tuple[Cut, Lattice, float, Places]:
        """Rows, columns, lattice, most nonzeros and positions of a tile; () where tiles are cut off at an edge."""
        rows, columns = cut = self._cut(tile)
        sizes = (self.shape[0], *self.columns.ranks)
        even = not any(size % width for size, width in zip(sizes, (rows, *columns), strict=True))
        own = self._places(rows, rows, self._whole(columns))[0] if even else ()
        return cut, self._layout(cut), self.largest(tile), own

    @remembered
    def largest(self, tile: tuple[int, ...]) -> float:
        """Nonzeros with the heaviest possible blocks kept in every band."""
        rows, columns = self._cut(tile)
        most = int(self._weights(columns, columns)[1].max())
        return float(max(band.rows for band in self._bands(rows, rows)) * most)

    def largest_stored(self, tile: tuple[int, ...], granule: tuple[int, ...]) -> float:
        """All words of the largest set of kept blocks for granules within blocks; else one granule per nonzero."""
        (rows, columns), (high, wide) = self._cut(tile), self._cut(granule)
        words, grain, block = rows * math.prod(columns), high * math.prod(wide), self.columns.block
        within = self.columns.ranks[-1] % block == block % wide[-1] == self.block_rows % high == 0
        if within and math.prod(wide[:-1]) == 1:
            touched = max(sum(count for _, count in strip.whole) for strip in self._strips(columns, columns))
            return float(min(words, rows * min(columns[-1], block) * min(touched, self.keep)))
        return float(min(words, grain * self.largest(tile)))

    @property
    def alike(self) -> tuple[int, ...]:
        """All rows of one block row keep the same blocks, and within these equally many words of a group."""
        return self.block_rows, self.columns.block, *(1,) * (len(self.shape) - 2)

    def draw(self, rng: np.random.Generator) -> Array:
        """Random tensor: exactly `keep` blocks in every block row, and n words in every group of a kept block."""
        rows, (count, m) = self.shape[0], (self.columns.count, self.columns.m)
        blocks = chosen(rng, (-(-rows // self.block_rows), self.blocks), self.keep)
        order = rng.random((rows, -(-count // m) * m))
        order[:, count:] = 1.0  # beyond the last group: never among the first
        words = order.reshape(rows, -1, m).argsort(axis=2).argsort(axis=2) < self.columns.n
        kept = expanded(blocks, (self.block_rows, self.columns.block), (rows, count))
        drawn = words.reshape(rows, -1)[:, :count] & kept
        return np.ascontiguousarray(np.moveaxis(drawn.reshape(rows, *self.columns.ranks), -1, 1))
