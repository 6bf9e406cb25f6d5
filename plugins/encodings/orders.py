"""Loop orders as Cantor codes (Section IV-C, Eq. 1): nearby codes share their outer loops."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from math import factorial
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, SpecError
from sparsemap.pieces.contracts import Array, Genes, Segment
from sparsemap.problem.designs import Designs

from .tile_moves import compiled

TABLE_DIMS = 8
"""Up to 8! = 40,320 orders are looked up in a table; beyond, they are computed."""
MAX_DIMS = 20
"""20! is the largest factorial that an int64 gene can hold."""


def order_table(dims: int) -> Array:
    """All orders by Cantor code minus one, shape (D, D!) int8: row 0 is the outermost loop."""
    return np.ascontiguousarray(np.array(list(permutations(range(dims))), dtype=np.int8).T)


def decode_order(codes: Array, dims: int) -> Array:
    """Cantor codes, shape (L, B), 1..D!, to orders (L, D, B) int8, with factorial-base arithmetic."""
    rest = codes - 1
    order = np.empty((codes.shape[0], dims, codes.shape[1]), dtype=np.int8)
    for place in range(dims):
        digit, rest = np.divmod(rest, factorial(dims - 1 - place))
        order[:, place] = digit
    for place in range(dims - 2, -1, -1):  # ranks among the unused dimensions become the dimensions themselves
        later = order[:, place + 1 :]
        later += later >= order[:, place, None]
    return order


def encode_order(order: Array, bounds: Array | None = None) -> Array:
    """Orders (L, D, B) to Cantor codes (L, B) int64: Eq. 1, `sum (a_i - 1) * (D - i)! + 1`.

    `bounds` (L, D, B): loops with bound one come last, in the order of the workload.
    """
    levels, dims, batch = order.shape
    codes, weights = np.ones((levels, batch), dtype=np.int64), [factorial(dims - 1 - place) for place in range(dims)]
    if compiled is not None and compiled.codes(codes, order, bounds, np.array(weights)) is not None:
        return codes
    if bounds is not None:
        busy = np.take_along_axis(bounds, order.astype(np.intp), axis=1) > 1.0
        later = np.where(busy, np.arange(dims, dtype=np.int8)[:, None], np.int8(dims) + order)
        order = np.take_along_axis(order, np.argsort(later, axis=1), axis=1)
    for place, weight in enumerate(weights):
        codes += np.count_nonzero(order[:, place + 1 :] < order[:, place, None], axis=1) * weight
    return codes


@attrs.frozen(kw_only=True)
class Cantor(Segment):
    """One gene per mapping level, 1..D!: the loop order of that level. Code 1 is the order of the workload (MKN).

    Provides `order` (L, D, B) int8, dimension indices from the outermost to the innermost loop.
    """

    type_name: ClassVar[str] = "cantor"
    provides: ClassVar[tuple[str, ...]] = ("order",)
    canonical_needs: ClassVar[tuple[str, ...]] = ("bounds",)
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

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        dims = len(problem.dims)
        if dims > TABLE_DIMS:
            return {"order": decode_order(genes, dims)}
        table = problem.shared.remember((order_table, dims), lambda: order_table(dims))
        order = table.take(genes - 1, axis=1, mode="clip")  # (D, L, B)
        return {"order": np.ascontiguousarray(order.swapaxes(0, 1))}

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
        (levels, batch), dims, changed = genes.shape, len(problem.dims), genes.copy()
        if dims < 2:
            return changed
        rows = np.arange(batch)
        level = rng.integers(0, levels, size=(batch,))
        first = rng.integers(0, dims, size=batch)
        second = (first + rng.integers(1, dims, size=batch)) % dims
        order = self.decode(genes[level, rows][None], problem)["order"]
        order[0, first, rows], order[0, second, rows] = order[0, second, rows], order[0, first, rows]
        changed[level, rows] = self.coded(order, problem)[0]
        copied = np.flatnonzero(rng.random(batch) < 0.2)
        changed[level[copied], copied] = genes[rng.integers(0, levels, size=copied.size), copied]
        return changed

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Loops with bound one do nothing: they come last, in the order of the workload."""
        return self.coded(self.decode(genes, problem)["order"], problem, columns["bounds"])

    def encode(self, designs: Designs, problem: Problem) -> Array:
        order = designs.columns["order"]
        expected = np.arange(len(problem.dims))
        wrong = (np.sort(order, axis=1) != expected[:, None]).any(axis=1)
        if wrong.any():
            level, row = (int(i) for i in np.argwhere(wrong)[0])
            name, found = problem.mapping_levels[level].name, order[level, :, row].tolist()
            text = f"the loop order of {name} is {found}, expected each of {expected.tolist()} once"
            raise DesignError(f"design {row}: {text}")
        return self.coded(order, problem)

    def coded(self, order: Array, problem: Problem, bounds: Array | None = None) -> Array:
        """The genes of orders, as `encode_order` has them."""
        return encode_order(order, bounds)
