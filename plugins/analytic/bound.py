"""A lower bound on energy and on cycles for every design of a problem: the certificate of a search.

The bound adds costs that no mapping and no sparse strategy can avoid, by the rules of this model (fixed, without
quirks):

* *Computes.* Filters on leader tiles of one word remove most, 1 - the product of the leaders' densities. The share f_Q
  left by a filter on Q makes P denser by the same factor, up to 1 (7.3): f_Q * min(1, d_P / f_Q) = min(f_Q, d_P), or
  d_P if P alone leads. So actual >= C * min(d_P, f_Q) * min(d_Q, f_P). With any other number of operands the empty
  tiles of a leader remove a compute once, and make this leader denser by as much: actual >= C * the product of all d,
  times the density of an output leading an operand. Rounding to six decimals and the floors are given away below.
* *Outermost level.* Every word touched by some compute leaves this level once (operands) or arrives once (output).
* *Tiles of the next level.* Tensors too large for this level move more than once. All tiles are tried (`bound_tiles`).
  Tiles must fit at their largest occupancy, and one of the loops around is innermost: a tensor moved by this loop is
  delivered in every step (4.1), any other tensor at best as if all loops not moving it were innermost. Partial sums
  come back (4.3).
* *Levels between.* Words entering a level leave for the children at least once. All tiles held by all children together
  are tried inside every tile of the level, with the children needing the same words (`bound_links`, `bound_inner`).
* *Metadata.* A tensor moves either its nonzeros with metadata, or all its words: the cheaper of both, for energy, time
  and room (`bound_words`); at the outermost level by the cheapest hierarchy of ranks (`bound_formats`).
* *Filters.* An access serving several computes is needed if any of their leader words is nonzero (`bound_filters`): of
  N accesses made by computes one by one, N / x * P(a leader tile of x words is not empty) remain. This is least for the
  largest x, or, with several leaders, for 1.
* *Innermost level.* Each compute reads its operands and updates its output there; one access serves all computes
  sharing it over the innermost fan-out. All ways to share the fan-out among the dimensions are tried.
* *Cycles.* Unskippable computes over the compute units usable with the factors of the sizes (with each way to share the
  innermost fan-out, over the units of this way); the words of the outermost level and of the innermost level over their
  bandwidths. Computes and outermost transfers add up where the next level is not double-buffered (`overlap`).

Charges add to these costs, except for discounts: `holes` and `remainders` count only words and computes with data, and
`sums` counts fewer updates. With `sums`, a level next to the compute units has the fewest updates possible with all
computes kept: C / R * (1 - (1 - actual/C)^R), where R computes share an update. For a word visited V times, at least d
(V + 1) / 2 sums are nonzero, since 1 - (1 - d)^f >= d f; without filters, the count follows the model's formula.

A tile of the next level with the loop innermost around it is a class of designs. With a way to share the innermost
fan-out, a class has a pair of costs: energies add, cycles are the maximum. Every design is at or above one of these
pairs in both, so the minimum of an objective growing with both is a bound: a saving of energy may cost cycles."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sparsemap.inner.arrays import exp2s, log2, powers
from sparsemap.pieces.contracts.base import Array
from sparsemap.primes import divisors, largest_product

from .actions import SKIP, PlaceTables
from .bound_filters import LeastAccesses
from .bound_links import LeastLinks
from .bound_tiles import MOST_TILES, OuterTiles
from .bound_units import LeastUnits
from .bound_words import LeastWords
from .layout import Layout
from .prices import PRICES

MOST_PAIRS = 64
"""Largest number of undominated pairs of energy and cycles kept."""
TOLD_APART = 0.02
"""Share of the minimum energy by which numbers of children sharing words must differ to be listed separately."""
ROUNDING = 1e-6
"""Rounding error of densities and shares: six decimals before computes are counted (7.3)."""


def front(energy: Array, cycles: Array) -> tuple[Array, Array]:
    """Undominated pairs; if there are too many, neighbours are merged to the minimum of each cost."""
    most = energy[cycles == cycles.min()].min(), cycles[energy == energy.min()].min()
    some = (energy <= most[0]) & (cycles <= most[1])  # beyond the cheapest and the fastest all are beaten
    energy, cycles = energy[some], cycles[some]
    order = np.lexsort((cycles, energy))
    energy, cycles = energy[order], cycles[order]
    best = np.flatnonzero(cycles < np.minimum.accumulate(np.concatenate([[np.inf], cycles]))[:-1])
    groups = min(MOST_PAIRS, len(best))
    if not groups:
        return energy[:0], cycles[:0]
    ends = np.arange(groups + 1) * (len(best) // groups) + np.minimum(np.arange(groups + 1), len(best) % groups)
    return energy[best[ends[:-1]]], cycles[best[ends[1:] - 1]]


class LowerBound:
    """Pairs of energy in pJ and cycles, (n,) each: every design of the problem is at or above a pair in both."""

    def __init__(
        self, layout: Layout, places: PlaceTables, words: LeastWords, fewer_updates: bool = False, padding: bool = False
    ) -> None:
        self.layout, self.places, self.chip, self.words = layout, places, layout.problem.chip, words
        self.fewer_updates = fewer_updates
        problem = layout.problem
        self.accesses = LeastAccesses(layout, places, padding, words.known.options.stay)
        self.inside = [float(n) for n in layout.visited[0] * (layout.word_share if padding else 1.0)]
        """Per tensor, the minimum share of words in the tiles delivered: few tiles include the edges of a tensor."""
        self.padding = padding and any(there is not None for ranks in layout.gaps for there in ranks)
        self.densities, self.touched = self.accesses.densities, self.accesses.touched
        self.computes = float(layout.ends.prod())
        self.count_units(problem.sizes)
        self.volumes = words.once
        self.kept = [float(self.accesses.kept(t, layout.S)[0]) for t in range(layout.T)]
        self.actual = self._left_of_all(self._effectual())
        self.busy = max(self.actual, self._left_of_all(self._timed()))
        """Computes taking a cycle, carried out or gated."""
        self.prove()

    def count_units(self, sizes: Mapping[str, int]) -> None:
        """Set the largest number of instances and compute units usable with the factors of these sizes."""
        limits = [(m.storage, m.limit) for m in self.layout.problem.mapping_levels if m.spatial]
        inside = [[limit for storage, limit in limits if storage < s] for s in range(self.layout.S + 1)]
        self.sizes = sizes
        *self.instances, self.units = (largest_product(some, sizes.values()) for some in inside)

    def prove(self) -> None:
        """Compute the pairs, and the costs of the classes."""
        self.outer = OuterTiles.of(self.layout, self.words, self.inside)
        self.links = LeastLinks(self.words, self.accesses, self.inside, self.instances)
        self.ways = self._outermost()
        """K ways: by class, (N,) energy, cycles, and cycles with all else waiting; then pairs of energy and cycles (n,)
        common to all classes."""
        parts = []
        for energy, cycles, waiting, pj, steps in self.ways:
            if not waiting.any():
                energy, cycles, waiting = *front(energy, cycles), np.zeros(1)
            some = [self.joined(energy, cycles, waiting, pj[i : i + 1], steps[i : i + 1]) for i in range(len(pj))]
            parts += [front(a[:, 0], b[:, 0]) for a, b in some]
        self.energy_pj, self.cycles = front(*map(np.concatenate, zip(*parts, strict=True)))
        self.outer.forget()

    def joined(self, energy: Array, cycles: Array, waiting: Array, pj: Array, steps: Array) -> tuple[Array, Array]:
        """Pairs (N, n) of classes (N,) combined with the common costs `pj` and `steps` (n,)."""
        least = np.ceil(self.busy / self.units * (1.0 - 1e-9))
        computes, steps = self.actual * float(self.chip.mac_pj["compute"]), np.maximum(steps, least)
        energy = (computes + np.add.outer(energy, pj)) * (1.0 - 1e-9)
        return energy, np.maximum(np.maximum.outer(cycles, steps), np.add.outer(waiting, steps) * (1.0 - 1e-9))

    def by_class(self) -> tuple[Array, Array]:
        """(K * N,) minimum energy and cycles by class, from the minimum of each common cost."""
        every = ((a, b, c, pj.min(keepdims=True), steps.min(keepdims=True)) for a, b, c, pj, steps in self.ways)
        energy, cycles = map(np.concatenate, zip(*(self.joined(*some) for some in every), strict=True))
        return energy[:, 0], cycles[:, 0]

    def _effectual(self) -> float:
        """Share of the computes carried out under any filters."""
        operands = self.layout.operands
        if len(operands) == 2:
            pairs = zip(operands, reversed(operands), strict=True)
            return math.prod(_rounded(min(self.densities[t], self.kept[u])) for t, u in pairs)
        filters = [action for action in self.places.actions if action.target in operands and action.kind.any()]
        outputs = {c for action in filters for c in action.leaders if c not in operands}
        return math.prod(_rounded(self.densities[t]) for t in (*operands, *outputs))

    def _timed(self) -> float:
        """Share of the computes taking a cycle under any skips; 0 where this is no more than `_effectual`.

        Only filters on operands saving time, and a skip at the unit, let a compute pass without a cycle. Without a skip
        at the unit, at most the computes empty in all operands vanish (without `positions`)."""
        lay, places, options = self.layout, self.places, self.words.known.options
        if places.deals or (places.compute is not None and (places.compute.kind == SKIP).any()):
            return 0.0
        saves = [a for a in places.actions if (a.kind.astype(bool) & ~(a.passes & options.gate_time)).any()]
        left = dict.fromkeys(lay.operands, 1.0)
        for action in saves:
            if action.target in left:
                left[action.target] *= math.prod(_rounded(self.densities[c]) for c in action.leaders)
        return math.prod(left.values()) * (1.0 if options.positions else max(self.densities[t] for t in left))

    def _left_of_all(self, share: float) -> float:
        """Number of computes for a share of all, reduced by the largest rounding loss."""
        return max(0.0, float(np.floor(self.computes * share * (1.0 - 1e-9))) - 4.0)

    def _splits(self, level: int) -> Array | None:
        """(D, n) every way to share the instances below one instance of a level among the dimensions; None: too many."""
        lay = self.layout
        group = lay.spatial[level]
        found: Array = np.ones((lay.D, 1))
        if group is None:
            return found
        limit = lay.problem.mapping_levels[group].limit
        for d, size in enumerate(self.sizes.values()):
            usable = np.array([n for n in divisors(size) if n <= limit], dtype=np.float64)
            if found.shape[1] * len(usable) > MOST_TILES:
                return None
            found = np.repeat(found, len(usable), axis=1)
            found[d] *= np.tile(usable, found.shape[1] // len(usable))
            found = found[:, found.prod(axis=0) <= limit]
        return found

    def _shares(self, level: int, splits: Array | None) -> Array:
        """(T, n) largest number of computes served by a single access of each tensor, for every split. In windows, sums
        of two dimensions have at least n1 + n2 - 1 distinct values (4.2)."""
        lay = self.layout
        if splits is None:  # the best for each tensor by itself
            limit = lay.problem.mapping_levels[lay.spatial[level] or 0].limit
            free = [
                [d for i, d in enumerate(lay.dims) if lay.windowed[t] or not lay.relevant[t, i]] for t in range(lay.T)
            ]
            return np.array([[largest_product([limit], [self.sizes[d] for d in dims])] for dims in free])
        shares = np.empty((lay.T, splits.shape[1]))
        for t in range(lay.T):
            shares[t] = splits.prod(axis=0)
            for rank in lay.ranks[t]:
                shares[t] /= sum(splits[d] for d, _ in rank) - (len(rank) - 1)
        return shares

    def _taken(self, t: int, splits: Array | None) -> Array:
        """(n,) share of words among the positions accessed in tensor t next to the compute units; a word read by
        several units at once counts once, as in the model. Without `splits`, the share over the accesses of all
        computes."""
        lay = self.layout
        if not self.padding:
            return np.ones(1)
        from .charges.holes import share_at_once

        share = share_at_once(lay, t, np.ones((lay.D, 1)) if splits is None else splits)
        there = float(lay.visited[1][t] / lay.visited[0][t])  # in ranks without gaps
        return share * there

    def _outermost(self) -> list[tuple[Array, Array, Array, Array, Array]]:
        """By class, `leaving` plus the costs of inner links; and the common pairs."""
        lay, (energy, cycles, waiting) = self.layout, self.leaving()
        rests, found = self.innermost(float(energy.min())), np.zeros(1, dtype=np.int64)
        copies = [copies for copies, _ in rests]
        for s in range(1, lay.S - 1):
            one = math.prod([m.limit for m in lay.problem.mapping_levels if m.spatial and m.storage > s])
            least = max(1.0, float(cycles.min()))
            between, busy, found = self.links.between(s, self.outer, self._splits(s), self.busy / one, least, copies)
            energy, cycles = energy + between, np.maximum(cycles, busy)
        energy, cycles, waiting = np.broadcast_arrays(np.atleast_2d(energy), cycles, waiting)
        return [(*some, *rests[i][1]) for *some, i in zip(energy, cycles, waiting, found.tolist(), strict=True)]

    def leaving(self) -> tuple[Array, Array, Array]:
        """Traffic of the outermost level by class: pJ, cycles, and cycles during which inner levels wait, if the next
        level holds a single copy of every tile (`overlap`)."""
        energy, cycles = self.outer.by_class(self._leaving)
        lay, options = self.layout, self.words.known.options
        come = [t for t in range(lay.T) if lay.stored[t, 0]]
        stops = options.overlap and lay.S > 1 and lay.spatial[0] is None
        stops = stops and all(lay.child(t, 0) == 1 and self.words.copies[t, 1] == 1.0 for t in come)
        return energy, cycles, cycles if stops else np.zeros(1)

    def _leaving(self, outer: OuterTiles) -> tuple[Array, Array]:
        """As `leaving`, without waiting."""
        lay, accesses = self.layout, self.accesses
        energy: Array = np.zeros(len(outer.tile))
        read, written, small = energy, energy, np.zeros(1)
        tiles = lay.sizes[:, None] if outer.grid is None else outer.grid.extents[:, outer.tile]
        for t in range(lay.T):
            if not lay.stored[t, 0]:
                continue
            child, told = lay.child(t, 0), self.words.whole_bits(t, tiles)
            words = np.maximum(outer.moved[t], self.touched[t])
            inside = self.words.told_bits(t, outer.words[t]) if child == 1 else small
            fill = 0.0 if child is None else self.words.price(t, child, "fill", inside)
            get, time = self.words.price(t, 0, "read", told), self.words.time(t, 0, told)
            if t == lay.output and child is not None and self.fewer_updates and not accesses.filters(t, 0):
                pj, *words = self.links.sums(t, 0, child, np.maximum(outer.moved[t], self.volumes[t]), told, inside)
                energy, read, written = energy + pj, read + words[0], written + words[1]
            elif t == lay.output:
                kept = float(accesses.kept(t, 0)[0]) * min(1.0, self.densities[t]) * (1.0 - 1e-9)
                again = np.maximum(0.0, (outer.moved[t] - self.volumes[t]) * kept - 1.0)
                arrive = accesses.needed(t, 0, words)
                if self.fewer_updates:
                    once = accesses.needed(t, 0, np.full_like(words, self.touched[t]))
                    arrive = np.maximum(once, arrive / 2) if child is not None else np.zeros(1)
                    again = again / 2 if child is not None else np.zeros(1)
                leave = self.links.leave(t, child, inside)
                energy = energy + arrive * (self.words.price(t, 0, "update", told) + leave) + again * (get + fill)
                read, written = read + again * time, written + arrive * time
            else:
                sent = accesses.needed(t, 0, words)
                energy = energy + sent * (get + fill)
                read = read + sent * time
        return energy, self.links.transfer(0, read, written)

    def innermost(self, least: float, near: bool = True) -> list[tuple[float, tuple[Array, Array]]]:
        """Reads of operands and updates of the output at the level next to the compute units: pairs of pJ and cycles
        over all ways to share its fan-out, by the largest number of children of one level sharing a word of the output.

        An instance reads back all partial sums except the first of each word (4.3): the more children sum a word, the
        fewer reads. Numbers of children are listed separately where the difference matters relative to `least` pJ.
        `near`: include the costs of the children's tiles."""
        lay, level = self.layout, self.layout.S - 1
        if level == 0:
            return [(np.inf, (np.zeros(1), np.zeros(1)))]  # the same accesses as the outermost level's
        instances, splits = self.instances[level], self._splits(level)
        shares = self._shares(level, splits)
        energy: Array = np.zeros(shares.shape[1])
        read = written = sums = kept_sums = get_sums = energy
        whole, sum_words = list[tuple[Array, Array]](), 1.0
        for t in range(lay.T):
            if not lay.stored[t, level]:
                continue
            kept = self.accesses.kept(t, level, splits)
            left = kept * min(1.0, self.densities[t])
            reads = accesses = self.computes * self._taken(t, splits) / shares[t]
            if t == lay.output:
                sums, kept_sums = accesses, left
            if t == lay.output and self.fewer_updates:
                left = np.minimum(1.0 - powers(1.0 - self.actual / self.computes, shares[t]), kept)
                sums, kept_sums = accesses * left * (1.0 - 1e-6), np.ones_like(kept)
            # one access may be lost to rounding per instance and action
            accesses = np.maximum(0.0, accesses * left * (1.0 - 1e-6) - 4.0 * instances)
            width = float(self.words.width[t, level])
            wires = self.words.wires_pj(t, level, np.ones(1) if splits is None else shares[t])
            get = self._price(t, level, "read") + wires
            if t == lay.output:
                energy, get_sums = energy + accesses * (self._price(t, level, "update") + wires), get_sums + get
                written, sum_words = written + accesses * width / instances, width
            else:
                energy = energy + accesses * get
                read = read + accesses * width / instances
                whole.append((reads, kept))
        lanes = self.units if splits is None else np.minimum(self.units, splits.prod(axis=0) * instances)
        steps, found = np.ceil(self.busy / lanes * (1.0 - 1e-9)), list[tuple[float, tuple[Array, Array]]]()
        more: Array = np.full(shares.shape[1], np.inf)
        alike = bool(self.words.network and lay.S == 3 and lay.stored.all())
        alike = alike and not (lay.windowed[lay.output] or lay.holes[lay.output])
        for copies in exp2s(np.arange(math.ceil(log2(instances)) if alike else 0.0, -1.0, -1.0)):
            once = self.volumes[lay.output] * (min(copies, instances) if alike else instances)
            again = np.maximum(0.0, np.maximum(sums - once, 0.0) * kept_sums * (1.0 - 1e-6) - 4.0 * instances)
            pj = energy + again * get_sums
            if not found or pj.min() > found[-1][1][0][0] + TOLD_APART * least:
                cycles = np.maximum(self.links.transfer(level, read + again * sum_words / instances, written), steps)
                best = front(pj, cycles)
                found.append((float(copies) if found else np.inf, best))
                more = np.minimum(more, pj - best[0][::-1][np.searchsorted(best[1][::-1], cycles, side="right") - 1])
        if near and splits is not None and len(whole) == len(lay.operands):
            reads, left = (np.array(np.broadcast_arrays(*part)) for part in zip(*whole, strict=True))
            self.links.units = LeastUnits.of(self.words, self.accesses, splits, reads, left, more * (1.0 - 1e-9))
        return found[::-1]

    def _price(self, t: int, level: int, action: str) -> float:
        """pJ of one access to a tensor."""
        cluster = self.layout.problem.levels[level].memory.cluster
        return float(self.chip.energy_pj[PRICES.get(action, action)][level] * self.words.width[t, level]) / cluster


def _rounded(density: float) -> float:
    """Smallest density left after worst-case rounding of the density and of the share of a filter on it."""
    return max(0.0, density - ROUNDING) * density / (density + ROUNDING) if density > 0.0 else 0.0
