"""Variants of a design in other loop orders, and their grouping by equal cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import factorial

import numpy as np

from ..pieces.contracts.base import Array
from .designs import Designs
from .evaluation import Evaluation
from .problem import Problem

MOST = 5040
"""Largest number of orders, 7!; beyond, as many random orders."""
ALIKE = 1e-9
"""Relative difference between scores counted as equal."""


def orders_of(dims: Sequence[int], total: int) -> Array:
    """(n, `total`) int8: `dims` in all orders, outermost first, followed by the other dimensions."""
    rest = [dim for dim in range(total) if dim not in dims]
    if factorial(len(dims)) <= MOST:
        found = list(permutations(dims))
    else:
        rng = np.random.default_rng(0)
        found = list(dict.fromkeys(tuple(rng.permutation(dims).tolist()) for _ in range(MOST)))
    return np.array([[*order, *rest] for order in found], dtype=np.int8)


def reordered(problem: Problem, design: Designs, orders: Array, level: int | None = None) -> Evaluation:
    """A design (a batch of one) with each of these orders (n, D), at all mapping levels or only at `level`."""
    columns = dict(design.take(np.zeros(len(orders), dtype=np.int64)).columns)
    changed = np.array(columns["order"])
    changed[slice(None) if level is None else level] = orders.T
    columns["order"] = np.ascontiguousarray(changed)
    return problem.evaluator.evaluate_designs(Designs(columns))


def classes(scores: Array) -> list[Array]:
    """Rows of equal scores (n,), the best group first; infinite scores are left out."""
    rows = np.argsort(scores, kind="stable")[: np.isfinite(scores).sum()]
    starts = np.flatnonzero(np.diff(scores[rows]) > ALIKE * scores[rows][:-1]) + 1
    return [np.sort(group) for group in np.split(rows, starts) if len(group)]
