"""What accesses next to the compute units cost at least, for certificates (`unavoidable`): all ways to share the innermost
fan-out that a tile has room for are tried, one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from .unavoidable import OneTensor, Unavoidable

LESS = 1.0 - 2e-6
"""Of counts that are rounded on the way."""


@attrs.define(eq=False)
class NextToUnits:
    """Of the innermost level."""

    known: Unavoidable
    found: dict[tuple[tuple[int, ...], ...], float] = attrs.field(factory=dict)
    """By what loops over the units may be."""

    @cached_property
    def computes(self) -> float:
        return float(math.prod(self.known.ends.values()))

    @cached_property
    def actual(self) -> float:
        """Those that no filter removes."""
        left = math.prod(own.density for own in self.known.tensors) * (1.0 - 1e-5)
        return max(0.0, self.computes * left - 4.0)

    def least_pj(self, tile: Sequence[int]) -> float:
        """pJ where the innermost level holds tiles with these extents: no loop over the units is longer."""
        lanes = int(self.known.problem.chip.fanout[len(self.known.problem.levels) - 1])
        options = [[n for n in range(1, min(size, lanes) + 1) if size % n == 0] for size in tile]
        key = tuple(map(tuple, options))
        if key not in self.found:
            ways = (way for way in itertools.product(*options) if math.prod(way) <= lanes)
            self.found[key] = min(self._of_way(way) for way in ways)
        return self.found[key]

    def _of_way(self, way: Sequence[int]) -> float:
        problem, pj = self.known.problem, 0.0
        last, price = len(problem.levels) - 1, problem.chip.energy_pj
        instances = float(problem.chip.instances[last])
        for t, own in enumerate(self.known.tensors):
            if not last or not problem.stores(t, last):
                continue
            read = self.computes * own.density * own.others * self.known.taken[t]
            served = self.actual if own.tensor.output else read
            count = max(0.0, served * LESS / self._served(own, way) - 4.0 * instances)
            pj += count * float(price["write" if own.tensor.output else "read"][last])
            if own.tensor.output:  # an instance reads each sum back but for the first time
                pj += max(0.0, count - own.once * instances - 4.0 * instances) * float(price["read"][last])
        return pj

    def _served(self, own: OneTensor, way: Sequence[int]) -> float:
        """Computes that one access serves at most: those of a step, over the different words that they need."""
        bounds = dict(zip(self.known.problem.dims, way, strict=True))
        words = math.prod(sum(bounds[dim] - 1 for dim, _ in rank) + 1 for rank in own.tensor.ranks)
        return math.prod(way) / words
