"""Methods of occupancies used by the tables: the plain contract, and optional methods of particular densities.

With the optional methods, the tables are faster or closer to Timeloop. Shapes of tiles are (n, tensor ranks) int64, or
(n, 1) volumes where shapes do not matter.

* `empty_within_many(sub_tiles, tiles, k, counts)`: `empty_within` of n pairs at once; the first `counts[0]` of k belong
  to the first pair, and so on. The result of a pair must not depend on the others.
* `grain(tile)`: where probabilities vary smoothly with k, the distance of possible occupancies, such as 1; otherwise 0.
  A few values, not necessarily possible occupancies, may then represent the many k of a large tile (`bins`);
  `distribution` may list k at equal steps, with the probability of the neighbourhood of each k.
* `empty_within_real(sub_tiles, tiles, k)`: with a grain, `empty_within` of n pairs, each with one real k > 0, (n,); to
  1e-12 relative.
* `largest_many(volumes)`: `largest` of many tiles, (n,), where shapes do not matter; used by `LowerBound`.
* `placements_bits(volumes, k)`: log2 of the number of ways to place k nonzeros in tiles, (n,), where all are equally
  likely and only volumes matter; used by `LowerBound`.
* `largest_stored(tile, granule)`: the largest total of words in non-empty granules of a tile; used by formats storing
  whole blocks (6.5).
* `longest(fiber, position, fibers)`: expected number of non-empty positions in the fullest of `fibers` fibers.
* `alike`: words per rank of a block with equally many nonzeros in all tiles of a shape; otherwise the number differs
  from tile to tile (`imbalance`).
* `timeloop_smallest(tile)`: Timeloop's value for the smallest occupancy (Q3).
* `timeloop_empty_within(sub_tile, tile, k)`: `empty_within` with Timeloop's defects (Q4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparsemap import Occupancy
from sparsemap.pieces.contracts.base import Nonzeros

Shape = tuple[int, ...]


class OccupancyMethods:
    """An occupancy with all the methods above; defaults replace missing methods."""

    def __init__(self, occupancy: Occupancy, quirks: frozenset[str]) -> None:
        def own(method: str, plain: Any) -> Any:
            return getattr(occupancy, method, plain)

        self.distribution, self.empty, self.largest = occupancy.distribution, occupancy.empty, occupancy.largest
        self.within, self.within_many = occupancy.empty_within, own("empty_within_many", self._plainly("one_by_one"))
        self.actual = occupancy.actual
        self.whole_too = "Q4" in quirks
        """Whether `empty_within` is also called for a sub-tile equal to the whole tile, as in Timeloop."""
        if self.whole_too and hasattr(occupancy, "timeloop_empty_within"):
            self.within, self.within_many = occupancy.timeloop_empty_within, self._plainly("one_by_one")
        self.within_real = own("empty_within_real", None)
        self.grain = own("grain", lambda tile: 0)
        self.lane_shares = "lane-shares" in quirks
        self.drops_smallest = "Q3" in quirks
        """Whether the smallest occupancy counts as the empty tile even if above 0."""
        self._timeloop_smallest = own("timeloop_smallest", None)

        self.largest_stored = own("largest_stored", self._plainly("each_apart"))
        self.longest = own("longest", self._plainly("independent"))

    def smallest(self, tile: Shape, k: Nonzeros) -> float:
        """Smallest of the possible occupancies k, or Timeloop's value."""
        if self.drops_smallest and self._timeloop_smallest is not None:
            return float(self._timeloop_smallest(tile))
        return float(k[0])

    def _plainly(self, name: str) -> Callable[..., Any]:
        """Default for a missing method, see `plain`."""

        def ask(*given: Any) -> Any:
            from . import plain

            return getattr(plain, name)(self, *given)

        return ask
