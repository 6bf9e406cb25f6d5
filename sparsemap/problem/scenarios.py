"""Scenarios: variants of a problem, such as other densities, for additional evaluations of the same designs."""

from __future__ import annotations

import attrs
import numpy as np

from ..pieces.boundary import wrong
from .designs import Designs
from .evaluation import Detail, Evaluation
from .evaluator import evaluated
from .problem import Problem


@attrs.frozen
class Scenario:
    """A variant of a problem."""

    problem: Problem
    """A `Problem.variant` with an objective for this scenario alone."""
    must_fit: bool = True
    """Whether a design invalid in this scenario counts as invalid."""
    weight: float = 1.0
    """Weight of the scenario; 0: without weight, but designs may still have to fit."""


def with_scenarios(found: Evaluation, designs: Designs, problem: Problem, detail: bool) -> Evaluation:
    """Evaluation of the nominal designs plus costs and rejection reasons per scenario. Failing a scenario with
    `must_fit` makes a design invalid; invalid designs are not evaluated in further scenarios."""
    reasons = found.reasons
    extra = found.detail
    parts: dict[str, Evaluation] = {}
    for name, scenario in problem.scenarios.items():
        if scenario.problem.workload is problem.workload and scenario.problem.cost_model is problem.cost_model:
            parts[name] = attrs.evolve(found, detail=None)  # the problem itself
            continue
        rows = np.flatnonzero(reasons == 0)
        costs, told = found.costs.each(lambda column: np.full(len(column), np.inf)), reasons.copy()
        if len(rows):
            part = evaluated(designs if len(rows) == len(found) else designs.take(rows), scenario.problem, detail)
            if part.reason_names != found.reason_names:
                raise wrong(problem.cost_model, "evaluate", "named other reasons for another scenario")
            told[rows] = part.reasons
            for cost, column in costs.own.items():
                column[rows] = part.costs[cost]
            if extra is not None and scenario.must_fit:
                extra = _with_needed(extra, part, rows, name)
        parts[name] = Evaluation(costs, told, found.reason_names)
        if scenario.must_fit:
            reasons = np.where(reasons == 0, parts[name].reasons, reasons)
    valid = reasons == 0
    costs = found.costs.each(lambda column: np.where(valid, column, np.inf))
    return attrs.evolve(found, costs=costs, reasons=reasons, detail=extra, scenarios=parts)


def _with_needed(extra: Detail, part: Evaluation, rows: np.ndarray, name: str) -> Detail:
    """The detail plus missing resources of designs in a scenario."""
    lacking = None if part.detail is None else part.detail.needed
    if lacking is None or extra.needed is None:
        return extra
    needed = [list(lacks) for lacks in extra.needed]
    for row, lacks in zip(rows, lacking, strict=True):
        if not needed[row]:
            needed[row] = [(reason, n, has, f"{text}   at {name}" if text else "") for reason, n, has, text in lacks]
    return attrs.evolve(extra, needed=needed)
