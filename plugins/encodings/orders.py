"""Loop orders as Cantor codes (Section IV-C, Eq. 1): nearby codes share their outer loops."""

from __future__ import annotations

from collections.abc import Mapping
from math import factorial
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Array, Genes
from sparsemap.problem.designs import Designs

from .steps import Column, CompiledSegment

MAX_DIMS = 20
"""20! is the largest factorial that an int64 gene can hold."""


@attrs.frozen(kw_only=True)
class Cantor(CompiledSegment):
    """One gene per mapping level, 1..D!: the loop order of that level. Code 1 is the order of the workload (MKN).

    Provides `order` (L, D, B) int8, dimension indices from the outermost to the innermost loop.
    """

    type_name: ClassVar[str] = "cantor"
    provides: ClassVar[tuple[str, ...]] = ("order",)
    canonical_needs: ClassVar[tuple[str, ...]] = ("bounds",)
    max_dims: ClassVar[int] = MAX_DIMS
    plain: ClassVar[str] = "plain_orders"

    def genes(self, problem: Problem) -> Genes:
        dims, levels = len(problem.dims), problem.mapping_levels
        if dims > self.max_dims:
            text = f"'{self.type_name}' encodes orders of up to {self.max_dims} dimensions, the workload has {dims}"
            raise SpecError.at(problem.files.get("space", ""), self.path(), text)
        names = tuple(f"order.{level.name}" for level in levels)
        high = np.full(len(levels), factorial(dims), dtype=np.int64)
        return Genes(names, np.ones(len(levels), dtype=np.int64), high)

    def explain(self, problem: Problem) -> str:
        return "one Cantor code per mapping level"

    def record(self, problem: Problem) -> tuple[Any, ...] | None:
        return "orders", np.array([len(problem.mapping_levels), len(problem.dims)], dtype=np.int64)

    def column(self, problem: Problem) -> Column:
        return "order", (len(problem.mapping_levels), len(problem.dims)), np.int8

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        return self.step("decode", problem, (genes.T,), (genes, problem))

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        if "order" not in designs.columns:
            return None
        from .transfer import moved_order

        order = moved_order(designs.columns["order"], source, target)
        return self.encode(Designs({"order": order}), target)

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """One level's order changes: two of its loops swap places, or it takes the order of another level."""
        once = np.ones((1, genes.shape[1]), dtype=np.int64)
        return self.step("vary", problem, (genes.T, once, rng), (genes, problem, rng))

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Loops with bound one do nothing: they come last, in the order of the workload."""
        return self.step("canonical", problem, (genes.T, columns["bounds"]), (genes, problem, columns))

    def encode(self, designs: Designs, problem: Problem) -> Array:
        return self.step("encode", problem, (designs.columns["order"],), (designs, problem))

    def coded(self, order: Array, problem: Problem, bounds: Array | None = None) -> Array:
        """The genes of orders, where the steps are those in NumPy, as `encode_order` has them."""
        from .plain_orders import encode_order

        return encode_order(order, bounds)
