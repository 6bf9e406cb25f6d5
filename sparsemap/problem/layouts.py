"""Layouts: designs with genes to choose the levels of each tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from ..pieces.contracts.base import Array
from .designs import PASSES, Designs
from .evaluation import Evaluation
from .problem import Problem

MOST = 256
"""Largest number of layouts with a bound for each."""
KEPT = 1024
"""Layouts of a problem with cached tables."""
Passed = frozenset[tuple[int, int]]
"""Pairs of a tensor and a level bypassed by the tensor."""


def by_layout(designs: Designs) -> Iterator[tuple[Array, Designs]]:
    """Groups designs by layout: rows of a group, and its designs."""
    own = [designs.columns[name].reshape(-1, len(designs)) for name in designs.own_hardware]
    if not own:
        if len(designs):
            yield np.arange(len(designs)), designs
        return
    _, which = np.unique(np.concatenate(own), axis=1, return_inverse=True)
    for i in range(which.max(initial=-1) + 1):
        rows = np.flatnonzero(which.ravel() == i)
        yield rows, designs.take(rows)


def layout_in(designs: Designs) -> tuple[Passed | None, Designs]:
    """The common layout of designs, and their other columns; None: bypasses as in the hardware."""
    rest = {name: column for name, column in designs.columns.items() if name not in designs.own_hardware}
    if PASSES not in designs.columns:
        return None, Designs(rest)
    at = np.argwhere(designs.columns[PASSES][..., 0])
    return frozenset((int(t), int(s)) for t, s in at), Designs(rest)


def evaluated_by_layout(designs: Designs, problem: Problem, detail: bool) -> Evaluation:
    """`evaluated`, layout by layout."""
    from .evaluator import evaluated

    parts, order = [], []
    for rows, some in by_layout(designs):
        passed, rest = layout_in(some)
        parts.append(evaluated(rest, with_layout(problem, passed), detail))
        order.append(rows)
    joined = Evaluation.join(parts)
    return joined if len(parts) == 1 else joined.take(np.argsort(np.concatenate(order), kind="stable"))


def unplaced(problem: Problem) -> Problem:
    """The problem with every tensor in the outermost level: its genes have the same meaning wherever tensors reside."""
    if not any(problem.homes):
        return problem
    plain = attrs.evolve(problem.workload, resides={}, resident_words={}, slides={})
    return problem.remember((unplaced,), lambda: problem.variant(workload=plain))


def with_layout(problem: Problem, passed: Passed | None) -> Problem:
    """The problem with the hardware of a layout, in the same space. A tensor is never bypassed at the level of its
    residence."""
    if passed is not None:
        passed = frozenset((t, s) for t, s in passed if s > problem.homes[t])
        if problem.passed is not None:
            passed = None if passed <= problem.passed else problem.passed | passed
    if passed is None:
        return problem
    known: dict[Passed, Problem] = problem.remember((with_layout,), dict)
    if (found := known.get(passed)) is None:
        found = known[passed] = _made(problem, passed)
        while len(known) > KEPT:
            known.pop(next(iter(known)), None)
    return found


def _made(problem: Problem, passed: Passed) -> Problem:
    rows: list[Any] = []
    for s, level in enumerate(problem.hardware.levels):
        own = problem.levels[s].memory.bypass
        names = (f"name:{problem.tensors[t].name}" for t, at in sorted(passed) if at == s)
        rows.append({**level, "bypass": [*own, *(name for name in names if name not in own)]})
    found = attrs.evolve(problem, hardware=attrs.evolve(problem.hardware, levels=tuple(rows)), passed=passed)
    found.__dict__ |= {"space": problem.space, **problem.known("loops", "technology", "chip")}
    return found


def layouts(problem: Problem) -> tuple[Problem, ...]:
    """The problem with every hardware its genes can express; empty for too many."""
    segments = [one for one in problem.space.segments.values() if PASSES in one.provides]
    genes = [segment.genes(problem) for segment in segments]
    values = [high - low + 1 for one in genes for low, high in zip(one.low.tolist(), one.high.tolist(), strict=True)]
    if math.prod(values) > MOST:
        return ()
    grid, start = np.indices(values).reshape(len(values), math.prod(values)), 0
    columns: dict[str, Array] = {}
    for segment, one in zip(segments, genes, strict=True):
        columns |= segment.decode(grid[start : start + len(one.low)] + one.low[:, None], problem)
        start += len(one.low)
    return tuple(with_layout(problem, layout_in(some)[0]) for _, some in by_layout(Designs(columns)))
