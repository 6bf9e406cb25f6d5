"""Joint nonzeros of tensors of actual data (section 7.5): counted, where other tensors are taken as independent."""

from __future__ import annotations

import math
from collections.abc import Collection

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .layout import Layout


@attrs.frozen(eq=False)
class JointNonzeros:
    """Counts over two or more tensors of actual data."""

    layout: Layout
    tensors: frozenset[int]
    shares: dict[frozenset[int], float] = attrs.field(factory=dict)

    def share(self, tensors: Collection[int]) -> float:
        """Share of all computes with a nonzero in each of these tensors."""
        key = frozenset(tensors) & self.tensors
        if key not in self.shares:
            arrays = [self._over_loops(t) for t in sorted(key)]
            dims = {d for _, axes in arrays for d in axes}
            both: float = np.einsum(*(part for pair in arrays for part in pair), [], optimize=True) if key else 1.0
            self.shares[key] = float(both) / math.prod(self.layout.sizes[d] for d in dims)
        return self.shares[key]

    def _over_loops(self, t: int) -> tuple[Array, list[int]]:
        """The tensor as an array over the dimensions moving it, and the list of these dimensions."""
        lay = self.layout
        words = lay.occupancies[t].draw(np.random.default_rng(0)).astype(np.float64)
        axes, positions = list[int](), list[Array]()
        for terms in lay.ranks[t]:
            place = np.zeros((), np.int64)
            for d, factor in terms:
                place = np.add.outer(place, factor * np.arange(int(lay.sizes[d])))
                axes.append(d)
            positions.append(place.ravel())
        return words[np.ix_(*positions)].reshape([int(lay.sizes[d]) for d in axes]), axes
