"""A lower bound on energy and on cycles that holds for every design of a problem: the certificate of a search.

What no mapping and no sparse strategy can avoid, by the rules of this model (fixed, without quirks):

* *Computes.* Filtering on leader tiles of one word removes most, 1 - the product of the leaders' densities, and never more
  than the share of empty ones (`Mechanism.eliminated`). What a filter on Q leaves, f_Q, makes P denser by the same factor,
  up to 1 (7.3): f_Q * min(1, d_P / f_Q) = min(f_Q, d_P), which is d_P if P alone leads. So
  actual >= C * min(d_P, f_Q) * min(d_Q, f_P). With any other number of operands the empty tiles of a leader remove a
  compute once, and make that leader denser by as much: actual >= C * the product of all d, times that of an output that
  leads an operand. Rounding to six decimals and the floors are given away below.
* *Outermost level.* Every word that some compute touches leaves it once (operands) or arrives once (output); compression
  leaves the nonzeros. Filters at this level, if the hardware has any, can remove a share of at most 1 - d of the leader.
* *Tiles of the next level.* What is too large for it is moved more than once. All tiles are tried: the extents of a tile
  divide the sizes, its tensors must fit at their largest occupancy without metadata, and the outermost loops around it
  have one that is innermost: a tensor that it moves is delivered in every step (4.1), any other one at best as if all
  loops that do not move it were innermost. Partial sums that come back are read, moved and written again (4.3).
* *Levels between.* What enters a level leaves it for its children at least once, and they are filled with it; the first
  write of an output cannot be avoided either.
* *Filters.* An access that serves several computes is needed if any leader word of theirs is there: the leader tile (7.1) has
  the extents of all loops over which the target stays or is shared. So of N accesses that computes would make one by one,
  N / x * P(a leader tile of x words is not empty) remain, which is least for the largest x, or, with several leaders, for 1.
* *Innermost level.* Each compute reads its operands and updates its output there; one access serves the computes that the
  innermost fan-out shares it with. All ways to share the fan-out among the dimensions are tried.
* *Cycles.* Computes over the largest number of units that the factors of the sizes can fill (with each way to share the
  innermost fan-out, over those), and the words of the outermost level over its bandwidth, and those of the innermost.

Charges add to this, but for one that leaves out updates of the output which do not happen. Then a level next to the
compute units has the fewest that keep every compute: C / R * (1 - (1 - actual/C)^R) where R of them share one. And of a
word that is visited V times the sums that are not zero yet are at least d (V + 1) / 2, since 1 - (1 - d)^f >= d f.

A tile of the next level and a split of the innermost fan-out make a pair: energies add, cycles are the largest. Every design
is at or above one of these pairs in both, so any objective that grows with both is bounded by its least value over them:
what saves energy may cost cycles, and no product of two separate bounds sees that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array
from sparsemap.primes import divisors

from .actions import Action, PlaceTables
from .bound_tiles import MOST_TILES, moved_words
from .cost import PRICES
from .layout import Layout

MOST_PAIRS = 64
"""Pairs of energy and cycles that are kept of those that no other beats."""
ROUNDING = 1e-6
"""Densities and shares are rounded to six decimals before computes are counted (7.3)."""


def _largest(limits: Iterable[int], sizes: Iterable[int]) -> float:
    """Largest product of one divisor per limit, none above its limit, whose product divides the product of the sizes."""
    total = 1
    for size in sizes:
        total *= size
    options = divisors(total)
    if len(options) > 3000:  # many different primes: settle for the limits themselves
        product = 1
        for limit in limits:
            product *= limit
        return float(min(product, total))
    reached = {1}
    for limit in limits:
        usable = [d for d in options if d <= limit]
        reached = {r * d for r in reached for d in usable if total % (r * d) == 0}
    return float(max(reached))


def _front(energy: Array, cycles: Array) -> tuple[Array, Array]:
    """The pairs that no other beats in both; neighbours are merged, to the least of each, where there are too many."""
    order = np.lexsort((cycles, energy))
    energy, cycles = energy[order], cycles[order]
    best = cycles < np.minimum.accumulate(np.concatenate([[np.inf], cycles]))[:-1]
    groups = np.array_split(np.flatnonzero(best), min(MOST_PAIRS, int(best.sum())))
    return np.array([energy[g[0]] for g in groups]), np.array([cycles[g[-1]] for g in groups])


class LowerBound:
    """Pairs of energy in pJ and cycles, (n,) each: every design of the problem is at or above one of them in both."""

    def __init__(self, layout: Layout, places: PlaceTables, fewer_updates: bool = False) -> None:
        self.layout, self.places, self.chip = layout, places, layout.problem.chip
        self.fewer_updates = fewer_updates
        problem = layout.problem
        self.densities = [occupancy.density for occupancy in layout.occupancies]
        sizes = {dim: problem.sizes[dim] for dim in layout.dims}
        self.computes = float(np.prod([float(n) for n in sizes.values()]))
        self.units = _largest([m.limit for m in problem.mapping_levels if m.spatial], sizes.values())
        inside = [m.limit for m in problem.mapping_levels if m.spatial and m.storage < layout.S - 1]
        self.instances = _largest(inside, sizes.values())
        self.volumes = [float(np.prod([float(n) for n in t.shape(problem.sizes)])) for t in layout.tensors]
        self.touched = [self._touched(t) for t in range(layout.T)]
        self.one_by_one = [self.touched[t] * layout.sizes[~layout.relevant[t]].prod() for t in range(layout.T)]
        self.kept = [float(self._kept(t, layout.S)[0]) for t in range(layout.T)]
        self.actual = max(0.0, np.floor(self.computes * self._effectual() * (1.0 - 1e-9)) - 4.0)
        outer, inner = _front(*self._outermost()), _front(*self._innermost())
        energy = self.actual * float(self.chip.mac_pj["compute"]) + np.add.outer(outer[0], inner[0])
        cycles = np.maximum.outer(outer[1], inner[1])
        least = np.ceil(self.actual / self.units * (1.0 - 1e-9)) if self.actual > 0 else 0.0
        self.energy_pj, self.cycles = _front(energy.ravel() * (1.0 - 1e-9), np.maximum(cycles.ravel(), least))

    def _effectual(self) -> float:
        """Share of the computes that take place whatever is filtered."""
        operands = self.layout.operands
        if len(operands) == 2:
            pairs = zip(operands, reversed(operands), strict=True)
            return math.prod(_rounded(min(self.densities[t], self.kept[u])) for t, u in pairs)
        filters = [action for action in self.places.actions if action.target in operands and action.kind.any()]
        outputs = {c for action in filters for c in action.leaders if c not in operands}
        return math.prod(_rounded(self.densities[t]) for t in (*operands, *outputs))

    def _touched(self, t: int) -> float:
        """Words of the tensor that some compute touches; holes of strides are not."""
        sizes = self.layout.problem.sizes
        words = 1.0
        for rank in self.layout.tensors[t].ranks:
            if len(rank) == 1:
                words *= sizes[rank[0][0]]
            else:
                (first, c1), (second, c2) = rank
                n1, n2 = sizes[first], sizes[second]
                g = int(np.gcd(c1, c2))
                words *= n1 * n2 - max(0, n1 - c2 // g) * max(0, n2 - c1 // g)
        return words

    def _kept(self, t: int, level: int, extents: Array | None = None) -> Array:
        """(n,) share of the accesses of a tensor at a level that no filter there or further out can remove, where an access
        serves so many computes along each dimension (D, n); by default one.

        Filters of several levels nest (7.2): together they remove what the strongest of them does. A leader tile has at
        least the extents of the dimensions that do not move the target.
        """
        lay = self.layout
        extents = np.ones((lay.D, 1)) if extents is None else np.where(lay.relevant[t][:, None], 1.0, extents)
        kept: Array = np.ones(extents.shape[1])
        for action in self._filters(t, level):
            there = np.ones_like(kept)
            for c in action.leaders:
                words = math.prod(box(lay.ranks[c], extents), start=np.ones_like(kept))
                there = there * self._there(c, words)
            kept = np.minimum(kept, there)
        return kept

    def _filters(self, t: int, level: int) -> list[Action]:
        """The filters of a tensor that count for its accesses at a level: those there and further out."""
        found = [a for a in self.places.actions if a.target == t and a.place.storage is not None and a.kind.any()]
        return [a for a in found if self.layout.holder(t, a.place.storage or 0) <= level]

    def _there(self, c: int, words: Array) -> Array:
        """(n,) chance that so many words of a leader are not all empty; that of one word where shapes matter."""
        occupancy = self.layout.occupancies[c]
        if occupancy.by_shape:
            return np.full(words.shape, self.densities[c])
        volumes, which = np.unique(words.astype(np.int64), return_inverse=True)
        chance = [self.densities[c] if n == 1 else 1.0 - float(occupancy.empty((int(n),))) for n in volumes]
        return np.maximum(np.array(chance)[which], self.densities[c])

    def _needed(self, t: int, level: int, words: Array, stays: Array | float = np.inf) -> Array:
        """(n,) accesses of a tensor at a level that hands out no fewer than `words` (n,), compressed and filtered.

        One by one the computes would make `one_by_one`. Where x share an access, their loops are in the leader tile, but
        for loops outside the blocks that the filter looks at: at an inner level, all inside the tile then are, `stays`.
        """
        lay = self.layout
        least = words
        alone = [int(d) for d in np.flatnonzero(~lay.relevant[t])]  # over these dimensions a word stays or is shared
        for action in self._filters(t, level):
            share: Array = np.ones_like(words)
            for c in action.leaders:
                moves = sum(dim in alone for rank in lay.ranks[c] for dim, _ in rank) == len(alone)
                if moves and all(sum(dim in alone for dim, _ in rank) < 2 for rank in lay.ranks[c]):
                    together = np.maximum(1.0, np.minimum(self.one_by_one[t] / words, stays))
                    share = share * self._there(c, 2.0 ** (np.floor(8.0 * np.log2(together)) / 8.0))
                else:
                    share = share * self.densities[c]
            each = math.prod(self.densities[c] for c in action.leaders)
            least = np.minimum(least, np.minimum(words * share, self.one_by_one[t] * each))
        return np.maximum(0.0, least * min(1.0, self.densities[t]) * (1.0 - 1e-6) - 1.0)

    def _splits(self, level: int) -> Array | None:
        """(D, n) every way to share the instances below one instance of a level among the dimensions; None: too many."""
        lay = self.layout
        group = lay.spatial[level]
        found: Array = np.ones((lay.D, 1))
        if group is None:
            return found
        limit = lay.problem.mapping_levels[group].limit
        for d, size in enumerate(lay.sizes):
            usable = np.array([n for n in divisors(int(size)) if n <= limit], dtype=np.float64)
            if found.shape[1] * len(usable) > MOST_TILES:
                return None
            found = np.repeat(found, len(usable), axis=1)
            found[d] *= np.tile(usable, found.shape[1] // len(usable))
            found = found[:, found.prod(axis=0) <= limit]
        return found

    def _shares(self, level: int, splits: Array | None) -> Array:
        """(T, n) computes that a single access of each tensor can serve, for every split; sums of two dimensions that
        move a window together are at least n1 + n2 - 1 different ones (4.2)."""
        lay = self.layout
        if splits is None:  # the best for each tensor by itself
            limit = lay.problem.mapping_levels[lay.spatial[level] or 0].limit
            free = [
                [d for i, d in enumerate(lay.dims) if lay.windowed[t] or not lay.relevant[t, i]] for t in range(lay.T)
            ]
            return np.array([[_largest([limit], [lay.problem.sizes[d] for d in dims])] for dims in free])
        shares = np.empty((lay.T, splits.shape[1]))
        for t in range(lay.T):
            shares[t] = splits.prod(axis=0)
            for rank in lay.ranks[t]:
                shares[t] /= sum(splits[d] for d, _ in rank) - (len(rank) - 1)
        return shares

    def _outermost(self) -> tuple[Array, Array]:
        """Traffic of the outermost level, and what follows from it further in: pJ, cycles, for every tile (`moved_words`)."""
        lay = self.layout
        moved, stays = moved_words(lay)
        energy: Array = np.zeros(max(len(words) for words in moved))
        read, written = energy, energy
        for t in range(lay.T):
            child = lay.child(t, 0)
            words = np.maximum(moved[t], self.touched[t])
            energy = energy + self._between(t, words, stays[t])
            if t == lay.output:
                kept = float(self._kept(t, 0)[0]) * min(1.0, self.densities[t]) * (1.0 - 1e-9)
                again = np.maximum(0.0, (moved[t] - self.volumes[t]) * kept - 1.0)
                arrive = self._needed(t, 0, words)
                if self.fewer_updates:
                    once = self._needed(t, 0, np.full_like(words, self.touched[t]))
                    arrive = np.maximum(once, arrive / 2) if child is not None else np.zeros(1)
                    again = again / 2 if child is not None else np.zeros(1)
                fill = 0.0 if child is None else self._price(child, "fill")
                energy = energy + arrive * self._price(0, "update") + again * (self._price(0, "read") + fill)
                read, written = read + again, written + arrive
            else:
                sent = self._needed(t, 0, words)
                energy = energy + sent * (
                    self._price(0, "read") + (0.0 if child is None else self._price(child, "fill"))
                )
                read = read + sent
        return energy, self._transfer(0, read, written)

    def _between(self, t: int, words: Array, stays: Array) -> Array:
        """pJ of the levels between the outermost and the innermost one: no fewer words leave them than have come."""
        lay = self.layout
        energy: Array = np.zeros_like(words)
        for s in range(1, lay.S - 1):
            child = lay.child(t, s)
            if not lay.stored[t, s] or (child is None and t == lay.output and self.fewer_updates):
                continue
            least = np.full_like(words, self.touched[t]) if t == lay.output and self.fewer_updates else words
            left = self._needed(t, s, least, stays if s == 1 else 1.0)
            if t == lay.output:
                energy = energy + left * self._price(s, "update")
            else:
                energy = energy + left * (
                    self._price(s, "read") + (0.0 if child is None else self._price(child, "fill"))
                )
        return energy

    def _innermost(self) -> tuple[Array, Array]:
        """Reads of operands and updates of the output at the level next to the compute units: pJ, cycles, for every way to
        share its fan-out."""
        lay = self.layout
        level = lay.S - 1
        if level == 0:
            return np.zeros(1), np.zeros(1)  # the same accesses as the outermost level's
        instances = self.instances
        splits = self._splits(level)
        shares = self._shares(level, splits)
        energy: Array = np.zeros(shares.shape[1])
        read, written = energy, energy
        for t in range(lay.T):
            if not lay.stored[t, level]:
                continue
            kept = self._kept(t, level, splits)
            left = kept * min(1.0, self.densities[t])
            once = (
                self.volumes[t] * instances
            )  # an instance reads all partial sums back but the first of each word (4.3)
            accesses = self.computes / shares[t]
            again = np.maximum(accesses - once, 0.0) * left
            if t == lay.output and self.fewer_updates:
                left = np.minimum(1.0 - (1.0 - self.actual / self.computes) ** shares[t], kept)
                again = np.maximum(accesses * left * (1.0 - 1e-6) - once, 0.0)
            # one access may be lost to rounding per instance and action
            accesses, again = (np.maximum(0.0, x * (1.0 - 1e-6) - 4.0 * instances) for x in (accesses * left, again))
            if t == lay.output:
                energy = energy + accesses * self._price(level, "update") + again * self._price(level, "read")
                read, written = read + again / instances, written + accesses / instances
            else:
                energy = energy + accesses * self._price(level, "read")
                read = read + accesses / instances
        lanes = self.units if splits is None else np.minimum(self.units, splits.prod(axis=0) * instances)
        return energy, np.maximum(self._transfer(level, read, written), np.ceil(self.actual / lanes * (1.0 - 1e-9)))

    def _transfer(self, level: int, read: Array, written: Array) -> Array:
        """(n,) cycles that the words take."""
        chip = self.chip
        cycles: Array = np.zeros(np.broadcast(read, written).shape)
        limits = chip.read_bandwidth[level], chip.write_bandwidth[level], chip.bandwidth[level]
        for words, bandwidth in zip((read, written, read + written), limits, strict=True):
            cycles = np.maximum(cycles, np.floor(words / bandwidth * (1.0 - 1e-6)))  # 0 where it is not limited
        return cycles

    def _price(self, level: int, action: str) -> float:
        """pJ of one access."""
        return float(self.chip.energy_pj[PRICES.get(action, action)][level])


def _rounded(density: float) -> float:
    """What remains of a density after the worst rounding of itself and of the share of a filter on it."""
    return max(0.0, density - ROUNDING) * density / (density + ROUNDING) if density > 0.0 else 0.0
