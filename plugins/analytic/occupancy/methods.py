"""What the tables ask an occupancy: the plain contract, and more where a density knows more.

These methods are optional; the tables are faster, or nearer to Timeloop, where an occupancy has them. Shapes of tiles are
(n, tensor ranks) int64, or (n, 1) volumes where shapes do not matter.

* `empty_within_many(sub_tiles, tiles, k, counts)`: `empty_within` of n pairs at once; the first `counts[0]` of k are
  those of the first pair, and so on. What a pair gets must not depend on the others.
* `grain(tile)`: where probabilities vary smoothly with k, the distance of possible occupancies, such as 1; otherwise 0.
  The many k of a large tile may then be represented by few, which need not be possible ones (`bins`); `distribution`
  may leave out k at equal steps, the probability of each k being that of its neighbourhood.
* `empty_within_real(sub_tiles, tiles, k)`: with a grain, `empty_within` of n pairs, each with one real k > 0, (n,); to
  1e-12 relative.
* `largest_many(volumes)`: `largest` of many tiles, (n,), where shapes do not matter; asked by `LowerBound`.
* `placements_bits(volumes, k)`: log2 of the number of ways to place k nonzeros in tiles, (n,), where all are equally likely
  and only volumes matter; asked by `LowerBound`.
* `largest_stored(tile, granule)`: the most words that granules with a nonzero in them hold together, in a tile; asked
  where formats store whole blocks (6.5).
* `longest(fiber, position, fibers)`: expected number of non-empty positions in the fullest of so many fibers.
* `alike`: words in each rank within which all tiles of a shape hold equally many nonzeros; else each has a number of its
  own (`imbalance`).
* `timeloop_smallest(tile)`: what Timeloop takes the smallest occupancy to be (Q3).
* `timeloop_empty_within(sub_tile, tile, k)`: `empty_within` with Timeloop's mistakes (Q4).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemap import Occupancy
from sparsemap.pieces.boundary import locked
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

Shape = tuple[int, ...]


class OccupancyMethods:
    """An occupancy with all the methods above."""

    def __init__(self, occupancy: Occupancy, quirks: frozenset[str]) -> None:
        def own(method: str, plain: Any) -> Any:
            return getattr(occupancy, method, plain)

        self.distribution, self.empty, self.largest = occupancy.distribution, occupancy.empty, occupancy.largest
        self.within, self.within_many = occupancy.empty_within, own("empty_within_many", self._one_by_one)
        self.actual = occupancy.actual
        self.whole_too = "Q4" in quirks
        """Whether a sub-tile that is the whole tile is asked for as well, as Timeloop does."""
        if self.whole_too and hasattr(occupancy, "timeloop_empty_within"):
            self.within, self.within_many = occupancy.timeloop_empty_within, self._one_by_one
        self.within_real = own("empty_within_real", None)
        self.grain = own("grain", lambda tile: 0)
        self.lane_shares = "lane-shares" in quirks
        self.drops_smallest = "Q3" in quirks
        """Whether the smallest occupancy counts as the empty tile although it is not 0."""
        self._timeloop_smallest = own("timeloop_smallest", None)

        self.largest_stored = own("largest_stored", self._each_apart)
        self.longest = own("longest", self._independent)

    def smallest(self, tile: Shape, k: Nonzeros) -> float:
        """The smallest of the possible occupancies k, or what Timeloop takes it to be."""
        if self.drops_smallest and self._timeloop_smallest is not None:
            return float(self._timeloop_smallest(tile))
        return float(k[0])

    def packed(self, tile: Shape, lanes: float) -> tuple[float, float]:
        """Share of the lanes that nonzeros fill in the passes that they need, and these passes: the mean over all tiles of
        ceil(k / lanes), or, with `lane-shares`, that of tiles with nonzeros for the share."""
        k, p = self.distribution(tile)
        passes = np.ceil(k / lanes)
        mean, some = float(p @ passes), k > 0.0
        if not mean:
            return 1.0, 0.0
        if self.lane_shares:
            return float(p[some] @ (k[some] / (lanes * passes[some]))) / float(p[some].sum()), mean
        return float(p @ k) / (lanes * mean), mean

    def _one_by_one(self, sub_tiles: Array, tiles: Array, k: Nonzeros, counts: Array) -> Array:
        k, ends = locked(k), np.cumsum(counts)
        pairs = zip(sub_tiles, tiles, counts, ends, strict=True)
        parts = [
            self.within(tuple(sub.tolist()), tuple(tile.tolist()), k[end - count : end])
            for sub, tile, count, end in pairs
        ]
        return np.concatenate([np.zeros(0), *parts])

    def _each_apart(self, tile: Shape, granule: Shape) -> float:
        """Every nonzero in a granule of its own."""
        return float(min(math.prod(tile), math.prod(granule) * self.largest(tile)))

    def _independent(self, fiber: Shape, position: Shape, fibers: float) -> float:
        """E max of independent fibers: sum of m (F(m)^fibers - F(m-1)^fibers). Positions of several words are taken to be
        empty independently of each other."""
        words = math.prod(position)
        if words == 1:
            m, p = self.distribution(fiber)
        else:
            m = np.arange(math.prod(fiber) // words + 1)
            p = binomial(len(m) - 1, 1.0 - float(self.empty(position)))
        below = np.minimum(np.cumsum(p), 1.0) ** fibers
        return float(m @ np.diff(below, prepend=0.0))


def binomial(n: int, p: float) -> Probabilities:
    """P(m) of m = 0 .. n successes."""
    if p <= 0.0 or p >= 1.0:
        return (np.arange(n + 1) == (n if p >= 1.0 else 0)).astype(np.float64)
    m = np.arange(1, n + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((n - m + 1) / m) + math.log(p) - math.log1p(-p))])
    found = np.exp(logs - logs.max())
    return found / found.sum()
