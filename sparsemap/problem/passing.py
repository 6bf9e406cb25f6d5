"""Designs that say which levels keep a tensor: each is one of the hardware whose `bypass` says so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from ..pieces.contracts import Segment
from ..pieces.contracts.base import Array
from .designs import PASSES, Designs
from .evaluation import Evaluation
from .problem import Problem

MOST = 256
"""The most layouts of which each is bounded."""
Passed = frozenset[tuple[int, int]]
"""Tensors and levels that they pass by."""


def by_layout(designs: Designs) -> Iterator[tuple[Array, Designs]]:
    """Rows of the designs in which the same tensors pass by the same levels, and these designs."""
    if PASSES not in designs.columns:
        if len(designs):
            yield np.arange(len(designs)), designs
        return
    _, which = np.unique(designs.columns[PASSES].reshape(-1, len(designs)), axis=1, return_inverse=True)
    for i in range(which.max(initial=-1) + 1):
        rows = np.flatnonzero(which.ravel() == i)
        yield rows, designs.take(rows)


def passed_in(designs: Designs) -> tuple[Passed, Designs]:
    """What passes by in designs of one layout, and the rest of their columns."""
    at = np.argwhere(designs.columns[PASSES][..., 0])
    rest = {name: column for name, column in designs.columns.items() if name != PASSES}
    return frozenset((int(t), int(s)) for t, s in at), Designs(rest)


def evaluated_by_layout(designs: Designs, problem: Problem, detail: bool) -> Evaluation:
    """`evaluated`, layout by layout."""
    from .evaluator import evaluated

    parts, order = [], []
    for rows, some in by_layout(designs):
        passed, rest = passed_in(some)
        parts.append(evaluated(rest, passing(problem, passed), detail))
        order.append(rows)
    joined = Evaluation.join(parts)
    return joined if len(parts) == 1 else joined.take(np.argsort(np.concatenate(order), kind="stable"))


def unplaced(problem: Problem) -> Problem:
    """A problem with every tensor in the outermost level: the genes that it has mean the same wherever tensors reside."""
    if not any(problem.homes):
        return problem
    plain = attrs.evolve(problem.workload, resides={}, resident_words={}, slides={})
    return problem.remember((unplaced,), lambda: problem.variant(workload=plain))


def passing(problem: Problem, passed: Passed) -> Problem:
    """A problem where tensors pass by further levels: with the hardware that says so, and the space of the given one. Where a
    tensor resides, it does not pass by."""
    passed = frozenset((t, s) for t, s in passed if s > problem.homes[t])
    if problem.passed is not None and passed <= problem.passed:
        return problem

    def made() -> Problem:
        rows: list[Any] = []
        for s, level in enumerate(problem.hardware.levels):
            given = problem.levels[s].memory.bypass
            names = (f"name:{problem.tensors[t].name}" for t, at in sorted(passed) if at == s)
            rows.append({**level, "bypass": [*given, *(name for name in names if name not in given)]})
        hardware = attrs.evolve(problem.hardware, levels=tuple(rows))
        found = attrs.evolve(problem, hardware=hardware, passed=(problem.passed or frozenset()) | passed)
        found.__dict__ |= {"space": problem.space, **problem.known("loops", "technology", "chip")}
        return found

    return problem.remember((passing, passed), made)


def layouts(problem: Problem, segment: Segment) -> tuple[Problem, ...]:
    """A problem with every choice of what passes by that the genes of a segment have; none where these are too many."""
    genes = segment.genes(problem)
    values = genes.high - genes.low + 1
    if math.prod(values.tolist()) > MOST:
        return ()
    grid = np.indices(values).reshape(len(values), math.prod(values.tolist())) + genes.low[:, None]
    designs = Designs(segment.decode(grid, problem))
    return tuple(passing(problem, passed_in(some)[0]) for _, some in by_layout(designs))
