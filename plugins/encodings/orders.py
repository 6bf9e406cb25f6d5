"""Loop orders as Cantor codes (Section IV-C, Eq. 1): nearby codes share their outer loops."""

from __future__ import annotations

from collections.abc import Mapping
from math import factorial
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, SpecError
from sparsemap.pieces.contracts import Array, Genes, Segment
from sparsemap.problem.designs import Designs

from .choices import below, loops_of, stationary
from .inner import functions

MAX_DIMS = 20
"""20! is the largest factorial within an int64 gene."""


@attrs.frozen(kw_only=True)
class Cantor(Segment):
    """One gene per mapping level, 1..D!: the loop order of this level. Code 1 is the order of the workload (MKN).

    Provides `order` (L, D, B) int8, dimension indices from the outermost to the innermost loop."""

    type_name: ClassVar[str] = "cantor"
    provides: ClassVar[tuple[str, ...]] = ("order",)
    canonical_needs: ClassVar[tuple[str, ...]] = ("bounds",)
    obeys_stationary: ClassVar[bool] = True
    max_dims: ClassVar[int] = MAX_DIMS

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

    def codes(self, genes: Array, problem: Problem) -> Array:
        """The Cantor codes (L, B) of genes."""
        return genes

    def coded(self, codes: Array, problem: Problem) -> Array:
        """The genes (L, B) of Cantor codes."""
        return codes

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        codes, dims = np.ascontiguousarray(self.codes(genes, problem), dtype=np.int64), len(problem.dims)
        order = np.empty((len(codes), dims, codes.shape[1]), dtype=np.int8)
        functions.orders_of(codes, order)
        return {"order": stays.orders(order) if (stays := stationary(problem)) else order}

    def transfer(
        self, designs: Designs, source: Problem, target: Problem, rng: np.random.Generator, fill: bool
    ) -> Array | None:
        from .transfer import moved_order

        order = moved_order(designs, source, target)
        return None if order is None else self.encode(Designs({"order": order}), target)

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """Change the order of one level: swap two of its loops, or copy the order of another level."""
        (levels, batch), dims = genes.shape, len(problem.dims)
        codes = np.array(self.codes(genes, problem), dtype=np.int64, order="C")
        if dims < 2:
            return genes.copy()
        level, first, step = below([[levels], [dims], [dims - 1]], (3, batch), rng)
        kind = rng.random(batch)
        source = below(levels, (int(np.count_nonzero(kind < functions.COPIED)),), rng)
        functions.vary_orders(codes, level, first, step, kind, source, np.empty((1, dims, 1), dtype=np.int8))
        return self.coded(codes, problem)

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Move loops with bound one, which have no effect, to the end, in the order of the workload."""
        order = self.decode(genes, problem)["order"] if stationary(problem) else None
        codes = np.array(self.codes(genes, problem) if order is None else self._codes(order), dtype=np.int64, order="C")
        functions.busy_first(codes, loops_of(columns, problem), np.empty((1, len(problem.dims), 2), dtype=np.int8))
        return self.coded(codes, problem)

    def encode(self, designs: Designs, problem: Problem) -> Array:
        order, expected = designs.columns["order"], np.arange(len(problem.dims))
        wrong = (np.sort(order, axis=1) != expected[:, None]).any(axis=1)
        if wrong.any():
            level, row = (int(i) for i in np.argwhere(wrong)[0])
            name, found = problem.mapping_levels[level].name, order[level, :, row].tolist()
            text = f"the loop order of {name} is {found}, expected each of {expected.tolist()} once"
            raise DesignError(f"design {row}: {text}")
        stays = stationary(problem)
        return self.coded(self._codes(stays.orders(order) if stays else order), problem)

    def _codes(self, order: Array) -> Array:
        codes = np.empty((len(order), order.shape[2]), dtype=np.int64)
        functions.codes_of(np.ascontiguousarray(order, dtype=np.int8), codes)
        return codes
