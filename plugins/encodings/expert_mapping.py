"""An expert's mapping, fixed during a search of formats (SAGE-like, Section V-D).

The mapping follows from sizes and hardware, as if all tensors were dense, and does not change with sparsity:

1. Fan-outs, from the innermost: the bounds with most used instances; among bounds within a tenth of the best, the fewest
   words per step. Outer fan-outs take dimensions of the stationary tensor, so that no partial sums (or copies) cross
   processing elements, unless more than half of the elements would be idle.
2. Loop orders: dimensions outside of the stationary tensor are innermost on every level.
3. Tiles: prime factors move between the temporal levels, each time the factor with the largest saving of energy of dense
   traffic, while the tiles fill at most half of every buffer; the rest is room for metadata or a second buffer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array
from sparsemap.primes import divisors, prime_factors

from .fixed import Constant
from .tiling import PrimeFactors

NEAR_BEST = 0.9
"""Share of the best use of a fan-out, from where fewer words count more."""
FILL = 0.5
"""Largest share of a buffer for dense tiles; more only if a single step needs more."""


@attrs.frozen(kw_only=True)
class ExpertMapping(Constant):
    """No genes; provides `order` and `bounds` of a mapping with one stationary tensor."""

    type_name: ClassVar[str] = "expert-mapping"
    provides: ClassVar[tuple[str, ...]] = ("order", "bounds")

    stationary: str = "role:Z"
    """The tensor with the longest stay, by role or name: `role:Z` output stationary, `role:Q` weight stationary."""

    def padded_sizes(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        return PrimeFactors().padded_sizes(sizes)

    def constants(self, problem: Problem) -> dict[str, Array]:
        stays = problem.tensor(self.stationary, problem.files.get("space", ""), self.path("stationary"))
        moving = problem.tensors[stays].dims
        inside = [i for i, dim in enumerate(problem.dims) if dim not in moving]
        outside = [i for i, dim in enumerate(problem.dims) if dim in moving]
        order = np.array([*outside, *inside], dtype=np.int8)
        dense = DenseTraffic(problem, order)
        bounds = self._spread(problem, dense, outside)
        return {"order": np.tile(order, (len(bounds), 1)), "bounds": self._tiled(problem, dense, bounds)}

    def _spread(self, problem: Problem, dense: DenseTraffic, relevant: list[int]) -> Array:
        """(L, D) with the spatial bounds set, and the remaining factors in the outermost level."""
        sizes = np.array([problem.sizes[dim] for dim in problem.dims], dtype=np.float64)
        bounds = np.ones((len(problem.mapping_levels), len(sizes)))
        spatial = [i for i, level in enumerate(problem.mapping_levels) if level.spatial]
        for place in reversed(spatial):
            left = sizes / bounds.prod(axis=0)
            found = spatial_bounds(left, problem.mapping_levels[place].limit)
            trials = np.repeat(bounds[:, :, None], len(found), axis=2)
            trials[place] = found.T
            fits = dense.fits(trials, FILL)
            fits = fits if fits.any() else dense.fits(trials, 1.0)
            fits[0] |= not fits.any()  # the first uses one instance: nothing smaller is left to try
            found, trials = found[fits], trials[:, :, fits]
            used = found.prod(axis=1)
            if place != spatial[-1]:
                fixed = np.delete(found, relevant, axis=1).prod(axis=1) == 1
                if used[fixed].max() > 0.5 * used.max():
                    used = np.where(fixed, used, 0.0)
            words = np.where(used >= NEAR_BEST * used.max(), dense.words(trials, place), np.inf)
            bounds = trials[:, :, int(np.lexsort((-used, words))[0])]
        bounds[0] *= sizes / bounds.prod(axis=0)
        return bounds

    def _tiled(self, problem: Problem, dense: DenseTraffic, bounds: Array) -> Array:
        """Move prime factors between temporal levels until no single move helps."""
        temporal = [i for i, level in enumerate(problem.mapping_levels) if not level.spatial]
        best = dense.energy(bounds[:, :, None])[0]
        while True:
            trials = []
            for source in temporal:
                for dim, bound in enumerate(bounds[source].tolist()):
                    for prime in dict.fromkeys(prime_factors(round(bound))):
                        for target in temporal:
                            trial = bounds.copy()
                            trial[source, dim] /= prime
                            trial[target, dim] *= prime
                            trials.append(trial)
            if not trials:
                return bounds
            moved = np.stack(trials, axis=2)
            energy = np.where(dense.fits(moved, FILL), dense.energy(moved), np.inf)
            chosen = int(energy.argmin())
            if not energy[chosen] < best * (1 - 1e-9):
                return bounds
            best, bounds = energy[chosen], moved[:, :, chosen]


def spatial_bounds(sizes: Array, limit: int) -> Array:
    """All bounds dividing the sizes, with a product up to `limit`, (n, D) float64; the first is all ones."""
    found = np.ones((1, 0))
    for size in sizes.astype(np.int64).tolist():
        factors = np.array([divisor for divisor in divisors(size) if divisor <= limit], dtype=np.float64)
        found = np.concatenate([np.repeat(found, len(factors), axis=0), np.tile(factors, len(found))[:, None]], axis=1)
        found = found[found.prod(axis=1) <= limit]
    return found


class DenseTraffic:
    """A rough dense estimate for choosing a mapping by hand: fitting tiles, and the energy of their transfers.

    No cost model: windows do not overlap, nothing is compressed or skipped. Bounds are (L, D, C) float64 for C mappings
    with the same loop order on every level."""

    def __init__(self, problem: Problem, order: Array) -> None:
        self.problem = problem
        copies = problem.cost_model.copies(problem)
        self.copies = np.ones((len(problem.tensors), len(problem.levels))) if copies is None else copies
        """(T, S) copies of a tile in a level."""
        self.order = order
        """(D,) dimensions from the outermost to the innermost loop of every level."""
        self.groups = problem.mapping_levels
        index = {dim: i for i, dim in enumerate(problem.dims)}
        self.moves = [[index[dim] for dim in tensor.dims] for tensor in problem.tensors]

    def volume(self, t: int, extents: Array) -> Array:
        """Words of the box of tensor t over extents (D, C)."""
        shape = self.problem.tensors[t].shape(dict(zip(self.problem.dims, extents, strict=True)))
        return np.broadcast_to(math.prod(shape), extents.shape[1:])

    def tile(self, bounds: Array, storage: int) -> Array:
        """(D, C) extents of the tile of one instance of a storage level."""
        inside = [i for i, group in enumerate(self.groups) if group.storage >= storage]
        return bounds[inside].prod(axis=0)

    def words(self, bounds: Array, place: int) -> Array:
        """(C,) words of a step of a fan-out with everything inside; the output counts twice, read and written."""
        extents = bounds[place:].prod(axis=0)
        tensors = enumerate(self.problem.tensors)
        return sum((1.0 + tensor.output) * self.volume(t, extents) for t, tensor in tensors)  # type: ignore[return-value]

    def fits(self, bounds: Array, share: float) -> Array:
        """(C,) bool: whether the tiles of all levels fill at most a share of the capacity."""
        fitting, widths = np.ones(bounds.shape[2], dtype=bool), self.problem.widths(self.problem.chip)
        for level in self.problem.levels:
            if level.capacity_bits is not None:
                extents = self.tile(bounds, level.index)
                stored = [t for t in range(len(self.problem.tensors)) if self.problem.stores(t, level.index)]
                tiles = {t: self.problem.resident.get((t, level.index), self.volume(t, extents)) for t in stored}
                words = sum(words * self.copies[t, level.index] * widths[t, level.index] for t, words in tiles.items())
                fitting &= words * level.word_bits <= share * level.capacity_bits
        return fitting

    def energy(self, bounds: Array) -> Array:
        """(C,) pJ of all transfers between storage levels."""
        total = np.zeros(bounds.shape[2])
        for t, tensor in enumerate(self.problem.tensors):
            stored = [s for s in range(len(self.problem.levels)) if self.problem.stores(t, s)]
            whole = self.volume(t, bounds.prod(axis=0)) if tensor.output else 0.0
            for parent, child in pairwise(stored):
                each = self.volume(t, self.tile(bounds, child)) * self._fetches(bounds, t, child)
                sent, received = each * self._distinct(bounds, t, parent, child), each * self._instances(bounds, child)
                price = self.problem.energy_pj
                if tensor.output:  # partial sums go back and forth, all but their first reading
                    total += sent * price(parent, "write") + received * price(child, "read")
                    again = np.maximum(sent - whole, 0.0)
                    total += again * price(parent, "read") + again / sent * received * price(child, "write")
                else:
                    total += sent * price(parent, "read") + received * price(child, "write")
        return total

    def _fetches(self, bounds: Array, t: int, child: int) -> Array:
        """(C,) changes of a child's tile: all steps outside, without the innermost run of loops of other tensors."""
        fetches, run = np.ones(bounds.shape[2]), np.ones(bounds.shape[2], dtype=bool)
        for i in reversed(range(len(self.groups))):
            if self.groups[i].storage < child and not self.groups[i].spatial:
                for d in reversed(self.order.tolist()):
                    if d in self.moves[t]:
                        run &= bounds[i, d] == 1.0
                    fetches *= np.where(run, 1.0, bounds[i, d])
        return fetches

    def _instances(self, bounds: Array, child: int) -> Array:
        """(C,) used instances of a level."""
        outside = [i for i, group in enumerate(self.groups) if group.spatial and group.storage < child]
        return bounds[outside].prod(axis=(0, 1))

    def _distinct(self, bounds: Array, t: int, parent: int, child: int) -> Array:
        """(C,) tiles sent at a time: one for all children with the same tile, from every instance of the parent."""
        between = [i for i, group in enumerate(self.groups) if group.spatial and parent <= group.storage < child]
        return self._instances(bounds, parent) * bounds[np.ix_(between, self.moves[t])].prod(axis=(0, 1))
