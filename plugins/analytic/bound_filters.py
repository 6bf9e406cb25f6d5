"""Minimum accesses left by filters: a part of the lower bound (`bound`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemap.inner.arrays import exp2s, log2, log2s
from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array

from .actions import Action, PlaceTables
from .layout import Layout

FEW = 1 << 12
"""Largest number of words with a cached probability of being non-empty."""


class LeastAccesses:
    """Accesses by tensor and level that no filter can remove."""

    def __init__(self, layout: Layout, places: PlaceTables, padding: bool = False, stay: bool = False) -> None:
        """`stay`: a stationary tile is judged by all leader tiles it meets."""
        self.layout, self.places, self.padding, self.stay = layout, places, padding, stay
        self.densities = layout.least_densities
        self.touched = [self._touched(t) for t in range(layout.T)]
        self.volumes = [float(math.prod(tensor.shape(layout.problem.sizes))) for tensor in layout.tensors]
        self.chances: dict[int, Array] = {}
        """By leader, `_there` for 2 ** (i / 8) words."""
        self._few: dict[int, Array] = {}
        """By leader, (`FEW`,) cached values of `_chance`."""
        self._known: dict[tuple[str, int, int], Any] = {}
        """Cached results, by method and arguments."""
        self.one_by_one = [self.touched[t] * layout.ends[~layout.relevant[t]].prod() for t in range(layout.T)]
        self.meets_all = [[self._meets_all(t, c) for c in range(layout.T)] for t in range(layout.T)]

    def _touched(self, t: int) -> float:
        """Words of the tensor touched by some compute, without the holes of strides and, with `padding`, without
        padding."""
        sizes, words = self.layout.problem.sizes, float(self.layout.visited[1, t])
        if self.padding and any(there is not None for there in self.layout.gaps[t]):
            gaps, share = self.layout.gaps[t], self.layout.ends / self.layout.sizes
            for terms, there, width in zip(
                self.layout.ranks[t], gaps, self.layout.tensors[t].shape(sizes), strict=True
            ):
                words *= width if there is None else int(there.sum())
                if there is not None and len(terms) > 1:  # tiles are not sent where one behind the end has left them
                    words *= math.prod(float(share[d]) for d, _ in terms)
            return words
        for rank in self.layout.tensors[t].ranks:
            if len(rank) == 1:
                words *= sizes[rank[0][0]]
            else:
                (first, c1), (second, c2) = rank
                n1, n2 = sizes[first], sizes[second]
                g = int(np.gcd(c1, c2))
                words *= n1 * n2 - max(0, n1 - c2 // g) * max(0, n2 - c1 // g)
        return words

    def kept(self, t: int, level: int, extents: Array | None = None) -> Array:
        """(n,) minimum share of the accesses of a tensor at a level left by any filters there and further out.
        `extents` (D, n): computes served by an access along each dimension; by default one.

        Filters of several levels nest (7.2): together they remove the share of the strongest. A leader tile covers at
        least the extents of the dimensions not moving the target."""
        lay = self.layout
        extents = np.ones((lay.D, 1)) if extents is None else np.where(lay.relevant[t][:, None], 1.0, extents)
        kept: Array = np.ones(extents.shape[1])
        for action in self.filters(t, level):
            there = np.ones_like(kept)
            for c in action.leaders:
                words = math.prod(box(lay.ranks[c], extents), start=np.ones_like(kept))
                there = there * self._there(c, words)
            kept = np.minimum(kept, there)
        return kept

    def filters(self, t: int, level: int) -> list[Action]:
        """Filters relevant to the accesses of a tensor at a level: the filters there and further out."""
        found: list[Action] = self._once(self._filters, t, level)
        return found

    def _once(self, find: Callable[[int, int], Any], t: int, other: int) -> Any:
        key = find.__name__, t, other
        if key not in self._known:
            self._known[key] = find(t, other)
        return self._known[key]

    def _filters(self, t: int, level: int) -> list[Action]:
        found = [a for a in self.places.actions if a.target == t and a.place.storage is not None and a.kind.any()]
        return [a for a in found if self.layout.holder(t, a.place.storage or 0) <= level]

    def choices(self, level: int) -> list[tuple[frozenset[int], frozenset[int]]]:
        """Choices of mechanisms at a level: the tensors held back, and the leaders."""
        acting = [a for a in self.places.actions if a.place.storage == level and a.kind.any()]
        found = dict[tuple[frozenset[int], frozenset[int]], None]()
        for m in range(len(self.places.mechanisms)):
            acts = [a for a in acting if a.kind[m]]
            found[frozenset(a.target for a in acts), frozenset(c for a in acts for c in a.leaders)] = None
        return [*found]

    def there_in_steps(self, c: int, log_words: Array) -> Array:
        """`_there` for at most 2 ** `log_words` words, rounded down to eighths of a power of two."""
        return self._chances(c).take((8.0 * log_words).astype(np.intp), mode="clip")

    def _chances(self, c: int) -> Array:
        if c not in self.chances:
            most = int(8.0 * log2(max(1.0, self.volumes[c]))) + 1
            self.chances[c] = self._there(c, exp2s(np.arange(most) / 8.0))
        return self.chances[c]

    def _there(self, c: int, words: Array) -> Array:
        """(n,) probability of a nonzero among `words` words of a leader; where shapes matter, the probability for one
        word."""
        occupancy = self.layout.occupancies[c]
        if occupancy.by_shape:
            return np.full(words.shape, self.densities[c])
        volumes = words.astype(np.int64)
        if volumes.max() < FEW:
            known = self._few.setdefault(c, np.full(FEW, np.nan))
            chance = known[volumes]
            if np.isnan(chance).any():
                for n in np.flatnonzero(np.bincount(volumes[np.isnan(chance)])):
                    known[n] = self._chance(c, int(n))
                chance = known[volumes]
        else:
            some, which = np.unique(volumes, return_inverse=True)
            chance = np.array([self._chance(c, n) for n in some.tolist()])[which]
        return np.maximum(chance, self.densities[c])

    def _chance(self, c: int, n: int) -> float:
        return self.densities[c] if n == 1 else 1.0 - float(self.layout.occupancies[c].empty((n,)))

    def needed(
        self, t: int, level: int, words: Array, stays: Array | float = np.inf, sums: Array | None = None,
        every: bool = False,
    ) -> Array:  # fmt: skip
        """(n,) minimum accesses of a tensor at a level delivering at least `words` (n,), compressed and filtered.

        Without sharing, computes make `one_by_one` accesses. If x computes share an access, the leader tile covers
        their loops, except, without `stay`, loops outside the blocks examined by the filter; at an inner level the
        leader tile still covers all loops inside the tile, `stays`.

        `sums` (n,): words of the output; the result is the smaller of the accesses left by filters and the nonzeros of
        these words. `every`: without filters."""
        least = words
        for action in () if every else self.filters(t, level):
            share: Array = np.ones_like(words)
            for c in action.leaders:
                if self.meets_all[t][c]:
                    together = self.one_by_one[t] / np.maximum(1.0, words)
                    together = np.maximum(1.0, together if self.stay else np.minimum(together, stays))
                    share = share * self.there_in_steps(c, log2s(together))
                else:
                    share = share * self.densities[c]
            each = math.prod(self.densities[c] for c in action.leaders)
            least = np.minimum(least, np.minimum(words * share, self.one_by_one[t] * each))
        density = min(1.0, self.densities[t])
        least = least * density if sums is None else np.minimum(least, sums * density)
        return np.maximum(0.0, least * (1.0 - 1e-6) - 1.0)

    def _meets_all(self, t: int, c: int) -> bool:
        """Whether each step of the dimensions keeping a word of `t` brings different words of the leader."""
        return bool(self._once(self._meets, t, c))

    def _meets(self, t: int, c: int) -> bool:
        alone = ~self.layout.relevant[t]
        of_ranks = [sum(alone[dim] for dim, _ in rank) for rank in self.layout.ranks[c]]
        return bool(sum(of_ranks) == alone.sum() and all(count < 2 for count in of_ranks))

    def judged(self, t: int, level: int) -> list[int]:
        """Dimensions along which the children's tiles influence the words left by filters of a tensor."""
        found: list[int] = self._once(self._judged, t, level)
        return found

    def _judged(self, t: int, level: int) -> list[int]:
        leaders = {c for action in self.filters(t, level) for c in action.leaders}
        return sorted({d for c in leaders for rank in self._beside(t, c) for d, _ in rank})

    def _beside(self, t: int, c: int) -> list[list[tuple[int, int]]]:
        """Ranks of a leader in which an access of `t` meets at least the leader's tile in a child, and no more is
        known."""
        ranks = list(self.layout.ranks[c])
        whole = self.stay and self.meets_all[t][c]
        return [rank for rank in ranks if self.layout.relevant[t, [d for d, _ in rank]].all()] if whole else ranks

    def plan(self, t: int, level: int) -> tuple[Array, Array, float]:
        """Leader tiles of a tensor's filters in children's tiles, encoded for `inner/bound_shares.py`. An access is
        judged by at least the leader's tile there, and by everything met over the dimensions keeping the tensor in
        place.

        Encoding: number of actions; per action, the number of leaders; per leader, start and length of the table of
        `there_in_steps`, whether the leader covers everything met, and the number of ranks beside; per rank, the
        dimensions with the columns of the largest number of children along them (`InnerTiles.ways`). Returned with the
        tables, and log2 of the accesses made by computes one by one."""
        dims, tables, filters = self.judged(t, level), list[Array](), self.filters(t, level)
        found = [len(filters)]
        for action in filters:
            found.append(len(action.leaders))
            for c in action.leaders:
                beside, table = self._once(self._beside, t, c), self._chances(c)
                found += [sum(map(len, tables)), len(table), int(self.stay and self.meets_all[t][c]), len(beside)]
                for rank in beside:
                    found += [len(rank), *(n for d, _ in rank for n in (d, 2 + dims.index(d)))]
                tables.append(table)
        return np.array(found), np.concatenate([np.zeros(0), *tables]), float(log2(self.one_by_one[t]))
