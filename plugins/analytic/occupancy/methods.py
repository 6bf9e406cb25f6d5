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

from collections.abc import Callable
from typing import Any

from sparsemap import Occupancy
from sparsemap.pieces.contracts.base import Nonzeros

Shape = tuple[int, ...]


class OccupancyMethods:
    """An occupancy with all the methods above."""

    def __init__(self, occupancy: Occupancy, quirks: frozenset[str]) -> None:
        def own(method: str, plain: Any) -> Any:
            return getattr(occupancy, method, plain)

        self.distribution, self.empty, self.largest = occupancy.distribution, occupancy.empty, occupancy.largest
        self.within, self.within_many = occupancy.empty_within, own("empty_within_many", self._plainly("one_by_one"))
        self.actual = occupancy.actual
        self.whole_too = "Q4" in quirks
        """Whether a sub-tile that is the whole tile is asked for as well, as Timeloop does."""
        if self.whole_too and hasattr(occupancy, "timeloop_empty_within"):
            self.within, self.within_many = occupancy.timeloop_empty_within, self._plainly("one_by_one")
        self.within_real = own("empty_within_real", None)
        self.grain = own("grain", lambda tile: 0)
        self.lane_shares = "lane-shares" in quirks
        self.drops_smallest = "Q3" in quirks
        """Whether the smallest occupancy counts as the empty tile although it is not 0."""
        self._timeloop_smallest = own("timeloop_smallest", None)

        self.largest_stored = own("largest_stored", self._plainly("each_apart"))
        self.longest = own("longest", self._plainly("independent"))

    def smallest(self, tile: Shape, k: Nonzeros) -> float:
        """The smallest of the possible occupancies k, or what Timeloop takes it to be."""
        if self.drops_smallest and self._timeloop_smallest is not None:
            return float(self._timeloop_smallest(tile))
        return float(k[0])

    def _plainly(self, name: str) -> Callable[..., Any]:
        """What is done where an occupancy lacks a method, see `plain`."""

        def ask(*given: Any) -> Any:
            from . import plain

            return getattr(plain, name)(self, *given)

        return ask
