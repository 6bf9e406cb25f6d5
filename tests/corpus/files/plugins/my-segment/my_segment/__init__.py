"""A single gene for the loop order of all mapping levels."""
from pathlib import Path

from itertools import permutations

import attrs
import numpy as np
from sparsemap import Genes, Segment, hookimpl


@attrs.frozen(kw_only=True)
class MySegment(Segment):
    """One gene: the loop order that all mapping levels share. Provides `order` (L, D, B)."""

    type_name = "my-segment"
    provides = ("order",)

    def genes(self, problem):
        return Genes(("order.all",), np.array([0]), np.array([len(self.orders(problem)) - 1]))

    def decode(self, genes, problem):
        order = self.orders(problem)[genes[0]].T
        return {"order": np.repeat(order[None], len(problem.mapping_levels), axis=0)}

    def explain(self, problem):
        return "the loop order of all mapping levels"

    def orders(self, problem):
        dims = range(len(problem.dims))
        return problem.remember((MySegment.orders,), lambda: np.array(list(permutations(dims)), np.int8))


@hookimpl
def register_segments():
    return [MySegment]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
