"""Every design of a class, listed from loops, formats and mechanisms and not from genes, for certificates (`certificate`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from sparsemap import Problem
from sparsemap.errors import SearchError
from sparsemap.pieces.contracts import Array
from sparsemap.problem.designs import Designs

MOST = 20_000_000
"""Designs of a class that are evaluated at most."""
BLOCK = 4096


def best_of_class(problem: Problem, tile: Sequence[int], innermost: str) -> float:
    """The least score of all designs with this tile inside the outermost level and this loop innermost around it."""
    choices = _choices(problem)
    mappings = list(_mappings(problem, tile, innermost))
    count = len(mappings) * len(choices[0])
    if count > MOST:
        raise SearchError(f"a class that was tried has {count:,} designs here, more than {MOST:,}")
    per, best = max(1, BLOCK // len(choices[0])), math.inf
    for start in range(0, len(mappings), per):
        bounds, order = (np.stack(part, axis=-1) for part in zip(*mappings[start : start + per], strict=True))
        times, kept = bounds.shape[-1], len(choices[0])
        designs = Designs({
            "bounds": np.repeat(bounds.astype(np.float64), kept, axis=-1),
            "order": np.repeat(order.astype(np.int8), kept, axis=-1),
            "formats": np.tile(choices[0].T.reshape(*_slots(problem), kept), times).astype(np.int8),
            "mechanisms": np.tile(choices[1].T, times).astype(np.int8),
        })  # fmt: skip
        for rows in np.array_split(np.arange(len(designs)), -(-len(designs) // BLOCK)):
            some = problem.evaluator.evaluate_designs(designs.take(rows))
            best = min(best, float(problem.evaluator.score(some).min()))
    return best


def _slots(problem: Problem) -> tuple[int, int]:
    """Tensors, and slots of each."""
    formats = problem.space.decode(problem.space.low[None]).columns["formats"]
    return formats.shape[0], formats.shape[1]


def _choices(problem: Problem) -> tuple[Array, Array]:
    """Every string of formats (n, T * R) with every string of mechanisms (n, A)."""
    tensors, slots = _slots(problem)
    formats = itertools.product(range(len(problem.candidates("format"))), repeat=tensors * slots)
    mechanisms = itertools.product(range(len(problem.candidates("mechanism"))), repeat=len(problem.places))
    pairs = list(itertools.product(formats, mechanisms))
    return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])


def _mappings(problem: Problem, tile: Sequence[int], innermost: str) -> Iterator[tuple[Array, Array]]:
    """Bounds and order (L, D) of every mapping of the class; loops with bound 1 come last, in one order."""
    dims, levels = problem.dims, problem.mapping_levels
    per_dim = [
        [(problem.sizes[d] // e, *rest) for rest in _factors(e, len(levels) - 1)]
        for d, e in zip(dims, tile, strict=True)
    ]
    for columns in itertools.product(*per_dim):
        bounds = np.array(columns).T
        if any(level.spatial and bounds[i].prod() > level.limit for i, level in enumerate(levels)):
            continue
        orders = []
        for i, level in enumerate(levels):
            busy = [d for d in range(len(dims)) if bounds[i, d] > 1]
            idle = [d for d in range(len(dims)) if bounds[i, d] == 1]
            every = [busy] if level.spatial else itertools.permutations(busy)
            orders.append([(*some, *idle) for some in every])
        around = [d for d in range(len(dims)) if bounds[0, d] > 1]
        for chosen in itertools.product(*orders):
            if not around or dims[chosen[0][len(around) - 1]] == innermost:
                yield bounds, np.array(chosen)


def _factors(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a number as a product of so many in order."""
    if parts == 0:
        if number == 1:
            yield ()
        return
    for first in (n for n in range(1, number + 1) if number % n == 0):
        for rest in _factors(number // first, parts - 1):
            yield (first, *rest)
