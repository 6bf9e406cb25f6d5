"""Scenarios: variants of a problem, such as other densities, on which the same designs are evaluated as well."""

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
    """One variant of a problem."""

    problem: Problem
    """A `Problem.variant`, whose objective scores a design in this scenario alone."""
    must_fit: bool = True
    """Whether a design that is invalid in this scenario is invalid."""
    weight: float = 1.0
    """How much the scenario counts; 0: not at all, but designs may have to fit it."""


def with_scenarios(found: Evaluation, designs: Designs, problem: Problem, detail: bool) -> Evaluation:
    """What `found` says of designs, with what they are worth in every scenario, and with the reasons why they are invalid
    in one that they must fit. Designs that are invalid by then are not evaluated in the next scenario."""
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
    """A detail with the resources that designs lack in a scenario."""
    lacking = None if part.detail is None else part.detail.needed
    if lacking is None or extra.needed is None:
        return extra
    needed = [list(lacks) for lacks in extra.needed]
    for row, lacks in zip(rows, lacking, strict=True):
        if not needed[row]:
            needed[row] = [(reason, n, has, f"{text}   at {name}" if text else "") for reason, n, has, text in lacks]
    return attrs.evolve(extra, needed=needed)
