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
* *Next level.* Those words are filled once at least, and the first write of an output cannot be avoided either.
* *Innermost level.* Each compute reads its operands and updates its output there; one access serves the computes that the
  innermost fan-out shares it with. All ways to share the fan-out among the dimensions are tried.
* *Cycles.* Computes over the largest number of units that the factors of the sizes can fill, and the words of the outermost
  level over its bandwidth, and the words of the innermost level over its own.

Charges add to this, but for one that leaves out updates of the output which do not happen. Then a level next to the
compute units has the fewest that keep every compute: C / R * (1 - (1 - actual/C)^R) where R of them share one. And of a
word that is visited V times the sums that are not zero yet are at least d (V + 1) / 2, since 1 - (1 - d)^f >= d f.

Energies add; cycles are the largest of their bounds; so any objective that grows with both is bounded by its value here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from sparsemap.pieces.contracts.base import Array
from sparsemap.primes import divisors

from .actions import PlaceTables
from .layout import Layout

MOST_TILES = 1 << 18
"""Where a problem has more tiles, or ways to share a fan-out, none is tried: this bounds time and memory."""
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


class LowerBound:
    """Energy in pJ and cycles that no design of the problem can beat."""

    def __init__(self, layout: Layout, places: PlaceTables, fewer_updates: bool = False) -> None:
        self.layout = layout
        self.fewer_updates = fewer_updates
        problem = layout.problem
        self.densities = [occupancy.density for occupancy in layout.occupancies]
        sizes = {dim: problem.sizes[dim] for dim in layout.dims}
        self.computes = float(np.prod([float(n) for n in sizes.values()]))
        limits = [m.limit for m in problem.mapping_levels if m.spatial]
        self.units = _largest(limits, sizes.values())
        self.volumes = [float(np.prod([float(n) for n in t.shape(problem.sizes)])) for t in layout.tensors]
        self.touched = [self._touched(t) for t in range(layout.T)]
        self.kept = [self._kept(t, places) for t in range(layout.T)]
        self.outer_kept = [self._kept(t, places, 0) for t in range(layout.T)]
        self.actual = max(0.0, np.floor(self.computes * self._effectual(places) * (1.0 - 1e-9)) - 4.0)
        outermost, innermost = self._outermost(), self._innermost()
        self.energy_pj = self.actual * layout.mac[0] + outermost[0] + innermost[0]
        self.cycles = max(1.0 if self.actual > 0 else 0.0, np.ceil(self.actual / self.units * (1.0 - 1e-9)))
        self.cycles = float(max(self.cycles, outermost[1], innermost[1]))
        self.energy_pj = float(self.energy_pj * (1.0 - 1e-9))

    def _effectual(self, places: PlaceTables) -> float:
        """Share of the computes that take place whatever is filtered."""
        operands = self.layout.operands
        if len(operands) == 2:
            pairs = zip(operands, reversed(operands), strict=True)
            return math.prod(_rounded(min(self.densities[t], self.kept[u])) for t, u in pairs)
        filters = [action for action in places.actions if action.target in operands and action.kind.any()]
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

    def _kept(self, t: int, places: PlaceTables, level: int | None = None) -> float:
        """Share of the accesses of a tensor that no filter can remove.

        Filters of several levels nest (7.2): together they remove what the strongest of them does, on tiles of one word.
        """
        kept = 1.0
        for action in places.actions:
            place = action.place.storage
            if action.target != t or place is None or not action.kind.any():
                continue
            if level is None or self.layout.holder(t, place) == level:
                kept = min(kept, math.prod(self.densities[leader] for leader in action.leaders))
        return kept

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

    def _shares(self, level: int) -> Array:
        """(T, n) computes that a single access of each tensor can serve, for every split; sums of two dimensions that
        move a window together are at least n1 + n2 - 1 different ones (4.2)."""
        lay = self.layout
        splits = self._splits(level)
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

    def _outermost(self) -> tuple[float, float]:
        """Traffic of the outermost level and of the fills of the next one that no tile avoids: pJ, cycles."""
        lay = self.layout
        moved = self._moved()
        energy: Array = np.zeros(1)
        read, written = energy, energy

        def left(t: int, words: Array) -> Array:
            return np.maximum(0.0, words * min(1.0, self.densities[t]) * self.outer_kept[t] * (1.0 - 1e-9) - 1.0)

        for t in range(lay.T):
            child = lay.child(t, 0)
            fill = 0.0 if child is None else lay.energies[child]["fill"]
            words = left(t, np.maximum(moved[t], self.touched[t]))
            if t == lay.output:
                again = left(t, np.maximum(moved[t] - self.volumes[t], 0.0))
                if self.fewer_updates:
                    once = left(t, np.full(1, self.touched[t]))
                    words = np.maximum(once, words / 2) if child is not None else np.zeros(1)
                    again = again / 2 if child is not None else np.zeros(1)
                energy = energy + words * lay.energies[0]["update"] + again * (lay.energies[0]["read"] + fill)
                read, written = read + again, written + words
            else:
                energy = energy + words * (lay.energies[0]["read"] + fill)
                read = read + words
        return float(energy.min()), self._transfer(0, read, written)

    def _moved(self) -> list[Array]:
        """Per tensor, words that the outermost level exchanges with the next one, without compression, for every tile
        that fits and every loop that may be innermost around it, (N,); 0 where it is not known."""
        lay = self.layout
        moved = [np.zeros(1) for _ in range(lay.T)]
        plain = [not lay.holes[t] for t in range(lay.T)]
        options = [np.array(divisors(int(size)), dtype=np.float64) for size in lay.sizes]
        tiles = float(np.prod([float(len(option)) for option in options]))
        if lay.S < 2 or lay.spatial[0] is not None or tiles > MOST_TILES:
            return moved
        extents = np.stack([grid.ravel() for grid in np.meshgrid(*options, indexing="ij")])
        widths = [
            [1.0 + sum(c * (extents[dim] - 1.0) for dim, c in rank) for rank in lay.ranks[t]] for t in range(lay.T)
        ]
        words = [np.prod([np.ones(extents.shape[1]), *boxes], axis=0) for boxes in widths]
        room = lay.levels[1].capacity_bits
        if room is not None:
            needed = sum(self._least(t, words[t]) for t in range(lay.T) if lay.stored[t, 1] and plain[t])
            fits = needed <= np.floor(room / lay.levels[1].word_bits)
            if not fits.any():
                return moved  # nor does any design
            extents, words = extents[:, fits], [w[fits] for w in words]
            widths = [[w[fits] for w in boxes] for boxes in widths]
        loops = lay.sizes[:, None] / extents
        busy = loops > 1.0
        possible = [np.flatnonzero(busy[d] | ~busy.any(axis=0)) for d in range(lay.D)]
        for t in range(lay.T):
            if not plain[t] or lay.child(t, 0) != 1:
                continue
            by_loop = self._delivered(t, words[t], widths[t], extents, loops)
            moved[t] = np.concatenate([by[rows] for by, rows in zip(by_loop, possible, strict=True)])
        return moved

    def _delivered(self, t: int, words: Array, widths: list[Array], extents: Array, loops: Array) -> list[Array]:
        """Per dimension whose loop is the innermost around a tile of `words` (N,): the least that is delivered (4.1).

        If the loop moves the tensor, each of its steps brings what it uncovers. So may the other loop along the same
        rank of a window, where its step is the same; all further loops deliver the tile anew. If the loop does not move
        it, the loops that do deliver all words, but for one of two along a rank: its step may be none.
        """
        lay = self.layout
        anew = np.ones_like(words)
        for rank in lay.ranks[t]:
            along = np.array([loops[d] for d, _ in rank])
            busiest, idlest = along.max(axis=0), along.min(axis=0)
            anew = anew * np.where(idlest > 1.0, idlest, busiest)
        found = [words * anew for _ in lay.dims]
        for rank, width in zip(lay.ranks[t], widths, strict=True):
            along = np.array([loops[d] for d, _ in rank]).prod(axis=0)
            for d, c in rank:
                uncovered = words * np.minimum(1.0, c * extents[d] / width)
                found[d] = loops.prod(axis=0) / along * (words + (along - 1.0) * uncovered)
        return found

    def _least(self, t: int, words: Array) -> Array:
        """Words of data that tiles of so many words need at least, whether compressed or not."""
        occupancy = self.layout.occupancies[t]
        if occupancy.by_shape or not hasattr(occupancy, "largest_many"):
            return np.floor(words * min(1.0, self.densities[t]) * (1.0 - 1e-9))  # the mean: no largest one is smaller
        return np.minimum(words, occupancy.largest_many(words.astype(np.int64)))

    def _innermost(self) -> tuple[float, float]:
        """Reads of operands and updates of the output at the level next to the compute units: pJ, cycles."""
        lay = self.layout
        level = lay.S - 1
        if level == 0:
            return 0.0, 0.0  # the same accesses as the outermost level's
        limits = [m.limit for m in lay.problem.mapping_levels if m.spatial and m.storage < level]
        instances = _largest(limits, lay.problem.sizes.values())
        shares = self._shares(level)
        energy: Array = np.zeros(shares.shape[1])
        read, written = energy, energy

        def left(t: int, accesses: Array) -> Array:
            # one access may be lost to rounding per instance and action
            kept = accesses * min(1.0, self.densities[t]) * self.kept[t]
            return np.maximum(0.0, kept * (1.0 - 1e-6) - 4.0 * instances)

        for t in range(lay.T):
            if not lay.stored[t, level]:
                continue
            accesses = left(t, self.computes / shares[t])
            if t == lay.output and self.fewer_updates:
                happens = 1.0 - (1.0 - self.actual / self.computes) ** shares[t]
                updates = self.computes / shares[t] * np.minimum(happens, self.kept[t])
                accesses = np.maximum(0.0, updates * (1.0 - 1e-6) - 4.0 * instances)
                again = np.maximum(0.0, accesses - self.volumes[t] * instances)
                energy = energy + accesses * lay.energies[level]["update"] + again * lay.energies[level]["read"]
                read, written = read + again / instances, written + accesses / instances
            elif t == lay.output:
                # an instance reads all partial sums back but the first of each word it sees (4.3)
                again = left(t, np.maximum(self.computes / shares[t] - self.volumes[t] * instances, 0.0))
                energy = energy + accesses * lay.energies[level]["update"] + again * lay.energies[level]["read"]
                read, written = read + again / instances, written + accesses / instances
            else:
                energy = energy + accesses * lay.energies[level]["read"]
                read = read + accesses / instances
        return float(energy.min()), self._transfer(level, read, written)

    def _transfer(self, level: int, read: Array | float, written: Array | float) -> float:
        """Cycles that the words take, of several possibilities the shortest."""
        spec = self.layout.levels[level]
        cycles: Array = np.zeros(1)
        for words, bandwidth in (
            (read, spec.read_bandwidth),
            (written, spec.write_bandwidth),
            (read + written, spec.bandwidth),
        ):
            if bandwidth is not None:
                cycles = np.maximum(cycles, np.floor(np.asarray(words) / bandwidth * (1.0 - 1e-6)))
        return float(cycles.min())


def _rounded(density: float) -> float:
    """What remains of a density after the worst rounding of itself and of the share of a filter on it."""
    return max(0.0, density - ROUNDING) * density / (density + ROUNDING) if density > 0.0 else 0.0
