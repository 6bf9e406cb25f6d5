"""A rough dense estimate for choosing a mapping by hand: which tiles fit, and the energy of moving them.

Much simpler than a cost model, and no substitute for one: windows do not overlap, nothing is compressed or skipped.
Bounds are (L, D, C) float64 with C mappings to compare; all of them have the same loop order on every level.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts import Array

if TYPE_CHECKING:
    from sparsemap.problem.problem import Problem


class DenseTraffic:
    """Dense tiles and their traffic on one problem."""

    def __init__(self, problem: Problem, order: Array) -> None:
        self.problem = problem
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
        """(C,) words that one step of a fan-out and all inside it needs; the output counts twice, read and written."""
        extents = bounds[place:].prod(axis=0)
        return sum(
            (2.0 if tensor.output else 1.0) * self.volume(t, extents) for t, tensor in enumerate(self.problem.tensors)
        )  # type: ignore[return-value]

    def fits(self, bounds: Array, share: float) -> Array:
        """(C,) bool: the tiles of all levels fill no more than a share of their capacity."""
        fitting = np.ones(bounds.shape[2], dtype=bool)
        for level in self.problem.levels:
            if level.capacity_bits is not None:
                extents = self.tile(bounds, level.index)
                stored = [t for t in range(len(self.problem.tensors)) if self.problem.stores(t, level.index)]
                needed = sum(self.volume(t, extents) for t in stored) * level.word_bits
                fitting &= needed <= share * level.capacity_bits
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
        """(C,) how often the tile of a child changes: all steps outside, but for the innermost run that leaves it."""
        fetches, run = np.ones(bounds.shape[2]), np.ones(bounds.shape[2], dtype=bool)
        for i in reversed(range(len(self.groups))):
            if self.groups[i].storage < child and not self.groups[i].spatial:
                for d in reversed(self.order.tolist()):
                    if d in self.moves[t]:
                        run &= bounds[i, d] == 1.0
                    fetches *= np.where(run, 1.0, bounds[i, d])
        return fetches

    def _instances(self, bounds: Array, child: int) -> Array:
        """(C,) instances of a level that are used."""
        outside = [i for i, group in enumerate(self.groups) if group.spatial and group.storage < child]
        return bounds[outside].prod(axis=(0, 1))

    def _distinct(self, bounds: Array, t: int, parent: int, child: int) -> Array:
        """(C,) tiles sent out at a time: one for all children that share it, from every instance of the parent."""
        between = [i for i, group in enumerate(self.groups) if group.spatial and parent <= group.storage < child]
        return self._instances(bounds, parent) * bounds[np.ix_(between, self.moves[t])].prod(axis=(0, 1))
