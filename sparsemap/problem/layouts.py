"""Designs that say what their hardware is: which levels keep a tensor, and the values of its `choices`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from ..errors import EvaluationError
from ..pieces.contracts.base import Array
from ..spec.unstructuring import unstructure
from .constraints import broken_by
from .costs import DERIVED, Costs
from .designs import PASSES, SIZES, Designs
from .evaluation import Evaluation
from .problem import Problem

MOST = 256
"""The most layouts of which each is bounded."""
KEPT = 1024
"""Layouts of a problem whose tables are kept."""


@attrs.frozen
class OwnHardware:
    """What the hardware of a design is, besides what all have."""

    passed: frozenset[tuple[int, int]] | None = None
    """Tensors and levels that they pass by; None: as the hardware says."""
    sizes: tuple[int, ...] | None = None
    """Of each key of `choices`, the place of its value; None: as the hardware says."""


def by_layout(designs: Designs) -> Iterator[tuple[Array, Designs]]:
    """Rows of the designs that say the same of their hardware, and these designs."""
    own = [designs.columns[name].reshape(-1, len(designs)) for name in designs.own_hardware]
    if not own:
        if len(designs):
            yield np.arange(len(designs)), designs
        return
    _, which = np.unique(np.concatenate(own), axis=1, return_inverse=True)
    for i in range(which.max(initial=-1) + 1):
        rows = np.flatnonzero(which.ravel() == i)
        yield rows, designs.take(rows)


def layout_in(designs: Designs) -> tuple[OwnHardware, Designs]:
    """What designs of one layout say of their hardware, and the rest of their columns."""
    columns = designs.columns
    rest = {name: column for name, column in columns.items() if name not in designs.own_hardware}
    found = OwnHardware()
    if PASSES in columns:
        at = np.argwhere(columns[PASSES][..., 0])
        found = attrs.evolve(found, passed=frozenset((int(t), int(s)) for t, s in at))
    if SIZES in columns:
        found = attrs.evolve(found, sizes=tuple(map(int, columns[SIZES][:, 0])))
    return found, Designs(rest)


def evaluated_by_layout(designs: Designs, problem: Problem, detail: bool) -> Evaluation:
    """`evaluated`, layout by layout. Where sizes vary, the hardware's constraints hold."""
    from .evaluator import evaluated

    parts, order = [], []
    for rows, some in by_layout(designs):
        layout, rest = layout_in(some)
        one = with_layout(problem, layout)
        found = evaluated(rest, one, detail)
        parts.append(found if layout.sizes is None else _constrained(found, one, problem))
        order.append(rows)
    joined = Evaluation.join(parts)
    return joined if len(parts) == 1 else joined.take(np.argsort(np.concatenate(order), kind="stable"))


def _constrained(found: Evaluation, one: Problem, problem: Problem) -> Evaluation:
    """An evaluation on a chip of its own, which keeps all costs of that chip, with the constraints that it breaks."""
    rules = problem.hardware.constraints
    names = (*found.reason_names, *(f"constraint:{rule}" for rule in rules))
    if len(names) > 64:
        raise EvaluationError(f"{len(names)} reasons for invalid designs, at most 64 fit: too many constraints")
    reasons = found.reasons.copy()
    for i, broken in enumerate(
        broken_by(rules, one.chip, found.costs, problem.files.get("hardware", "")), len(found.reason_names)
    ):
        reasons |= np.where(broken & found.valid, np.uint64(1) << np.uint64(i), np.uint64(0))
    own = {name: np.where(reasons == 0, found.costs[name], np.inf) for name in (*found.costs.own, *DERIVED)}
    return attrs.evolve(found, costs=Costs(own), reasons=reasons, reason_names=names)


def unplaced(problem: Problem) -> Problem:
    """A problem with every tensor in the outermost level: the genes that it has mean the same wherever tensors reside."""
    if not any(problem.homes):
        return problem
    plain = attrs.evolve(problem.workload, resides={}, resident_words={}, slides={})
    return problem.remember((unplaced,), lambda: problem.variant(workload=plain))


def with_layout(problem: Problem, layout: OwnHardware) -> Problem:
    """A problem with the hardware that a layout says, and the space of the given one. Where a tensor resides, it does not
    pass by."""
    passed = layout.passed
    if passed is not None:
        passed = frozenset((t, s) for t, s in passed if s > problem.homes[t])
        if problem.passed is not None:
            passed = None if passed <= problem.passed else problem.passed | passed
    sizes = layout.sizes if problem.sized is None else None
    if passed is None and sizes is None:
        return problem
    known: dict[OwnHardware, Problem] = problem.remember((with_layout,), dict)
    key = OwnHardware(passed, sizes)
    if (found := known.get(key)) is None:
        found = known[key] = _made(problem, key)
        while len(known) > KEPT:
            known.pop(next(iter(known)), None)
    return found


def _made(problem: Problem, layout: OwnHardware) -> Problem:
    same = ["loops"]
    hardware, given = problem.hardware, problem.levels
    if layout.sizes is not None:
        hardware = sized(problem, layout.sizes)
    else:
        same += ["technology", "chip"]
    if layout.passed is not None:
        rows: list[Any] = []
        for s, level in enumerate(hardware.levels):
            own = given[s].memory.bypass
            names = (f"name:{problem.tensors[t].name}" for t, at in sorted(layout.passed) if at == s)
            rows.append({**level, "bypass": [*own, *(name for name in names if name not in own)]})
        hardware = attrs.evolve(hardware, levels=tuple(rows))
    found = attrs.evolve(
        problem,
        hardware=hardware,
        passed=problem.passed if layout.passed is None else layout.passed,
        sized=problem.sized if layout.sizes is None else layout.sizes,
    )
    found.__dict__ |= {"space": problem.space, **problem.known(*same)}
    return found


def sized(problem: Problem, sizes: tuple[int, ...]) -> Any:
    """The hardware with the values of its `choices` at these places, one chip."""
    from .hardware_space import fixed_table, with_value

    hardware, file = problem.hardware, problem.files.get("hardware", "")
    table = fixed_table(hardware)
    for place, (key, values) in zip(sizes, hardware.choices.items(), strict=True):
        table = with_value(table, key, values[place], file)
    if hardware.units is not None:
        table["units"] = unstructure(hardware.units)
    return problem.registry.build("hardware", table, file)


def layouts(problem: Problem) -> tuple[Problem, ...]:
    """A problem with every hardware that its genes may ask for; none where these are too many."""
    segments = [one for one in problem.space.segments.values() if {PASSES, SIZES} & {*one.provides}]
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
