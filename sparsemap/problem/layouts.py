"""Layouts: designs with genes to choose the levels of each tensor, and the number formats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from ..pieces.contracts.base import Array
from .designs import NUMBERS, PASSES, Designs
from .evaluation import Evaluation
from .problem import Problem
from .tables import Tables

MOST = 256
"""Largest number of layouts with a bound for each."""
KEPT = 1024
"""Layouts of a problem with cached tables."""
Passed = frozenset[tuple[int, int]]
"""Pairs of a tensor and a level bypassed by the tensor."""


@attrs.frozen
class DesignLayout:
    """What the genes of a design choose of its hardware and of the workload's widths."""

    passed: Passed | None = None
    """None: bypasses as in the hardware."""
    numbers: tuple[int, ...] = ()
    """Candidate number format by tensor; -1: the workload's width. Empty: all as in the workload."""


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


def layout_in(designs: Designs) -> tuple[DesignLayout, Designs]:
    """The common layout of designs, and their other columns."""
    rest = {name: column for name, column in designs.columns.items() if name not in designs.own_hardware}
    numbers = tuple(designs.columns[NUMBERS][..., 0].tolist()) if NUMBERS in designs.columns else ()
    if PASSES not in designs.columns:
        return DesignLayout(None, numbers), Designs(rest)
    at = np.argwhere(designs.columns[PASSES][..., 0])
    return DesignLayout(frozenset((int(t), int(s)) for t, s in at), numbers), Designs(rest)


def evaluated_by_layout(designs: Designs, problem: Problem, detail: bool) -> Evaluation:
    """`evaluated`, layout by layout."""
    from .evaluator import evaluated

    parts, order = [], []
    for rows, some in by_layout(designs):
        layout, rest = layout_in(some)
        parts.append(evaluated(rest, with_layout(problem, layout), detail))
        order.append(rows)
    joined = Evaluation.join(parts)
    return joined if len(parts) == 1 else joined.take(np.argsort(np.concatenate(order), kind="stable"))


def unplaced(problem: Problem) -> Problem:
    """The problem with every tensor in the outermost level: its genes have the same meaning wherever tensors reside."""
    if not any(problem.homes):
        return problem
    plain = attrs.evolve(problem.workload, resides={}, resident_words={}, slides={})
    return problem.remember((unplaced,), lambda: problem.variant(workload=plain))


def with_layout(problem: Problem, layout: DesignLayout) -> Problem:
    """The problem with the hardware and the widths of a layout, in the same space. A tensor is never bypassed at the
    level of its residence."""
    if any(number >= 0 for number in layout.numbers):
        known_numbers: dict[tuple[int, ...], Problem] = problem.remember((DesignLayout, NUMBERS), dict)
        if (own := known_numbers.get(layout.numbers)) is None:
            own = known_numbers[layout.numbers] = _in_numbers(problem, layout.numbers)
        problem = own
    passed = layout.passed
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


def _in_numbers(problem: Problem, numbers: tuple[int, ...]) -> Problem:
    formats, table = problem.candidates("number-format"), problem.workload.word_bits
    chosen = {t: formats[number].name for t, number in enumerate(numbers) if number >= 0}
    given = table.items() if isinstance(table, Mapping) else ()
    others = {text: bits for text, bits in given if problem.lacks(text) or problem.tensor(text) not in chosen}
    bits = others | {f"name:{problem.tensors[t].name}": name for t, name in chosen.items()}
    workload, passed = attrs.evolve(problem.workload, word_bits=bits), problem.passed or frozenset()
    found = attrs.evolve(problem, workload=workload, passed=passed, shared=Tables())
    found.__dict__ |= {"space": problem.space, **problem.known("loops", "technology")}
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
    """The problem with every layout its genes can express; empty for too many."""
    segments = [one for one in problem.space.segments.values() if {PASSES, NUMBERS} & {*one.provides}]
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
