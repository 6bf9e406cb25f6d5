"""Loop orders in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from math import factorial
from typing import TYPE_CHECKING

import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array
from sparsemap.problem.designs import Designs

if TYPE_CHECKING:
    from .orders import Cantor


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
    if bounds is not None:
        busy = np.take_along_axis(bounds, order.astype(np.intp), axis=1) > 1.0
        later = np.where(busy, np.arange(dims, dtype=np.int8)[:, None], np.int8(dims) + order)
        order = np.take_along_axis(order, np.argsort(later, axis=1), axis=1)
    for place, weight in enumerate(weights):
        codes += np.count_nonzero(order[:, place + 1 :] < order[:, place, None], axis=1) * weight
    return codes


def decode(segment: Cantor, genes: Array, problem: Problem) -> Mapping[str, Array]:
    return {"order": decode_order(genes, len(problem.dims))}


def vary(segment: Cantor, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
    (levels, batch), dims, changed = genes.shape, len(problem.dims), genes.copy()
    if dims < 2:
        return changed
    rows = np.arange(batch)
    level = rng.integers(0, levels, size=(batch,))
    first = rng.integers(0, dims, size=batch)
    second = (first + rng.integers(1, dims, size=batch)) % dims
    order = segment.decode(genes[level, rows][None], problem)["order"]
    order[0, first, rows], order[0, second, rows] = order[0, second, rows], order[0, first, rows]
    changed[level, rows] = segment.coded(order, problem)[0]
    copied = np.flatnonzero(rng.random(batch) < 0.2)
    changed[level[copied], copied] = genes[rng.integers(0, levels, size=copied.size), copied]
    return changed


def canonical(segment: Cantor, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
    return segment.coded(segment.decode(genes, problem)["order"], problem, columns["bounds"])


def encode(segment: Cantor, designs: Designs, problem: Problem) -> Array:
    order = designs.columns["order"]
    expected = np.arange(len(problem.dims))
    wrong = (np.sort(order, axis=1) != expected[:, None]).any(axis=1)
    if wrong.any():
        level, row = (int(i) for i in np.argwhere(wrong)[0])
        name, found = problem.mapping_levels[level].name, order[level, :, row].tolist()
        text = f"the loop order of {name} is {found}, expected each of {expected.tolist()} once"
        raise DesignError(f"design {row}: {text}")
    return segment.coded(order, problem)
