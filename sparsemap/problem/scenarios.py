"""Scenarios: variants of a problem, such as other densities, on which the same designs are evaluated as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..pieces.boundary import wrong
from .designs import Designs
from .evaluation import Evaluation

if TYPE_CHECKING:
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


def with_scenarios(
    found: Evaluation,
    designs: Designs,
    problem: Problem,
    evaluate: Callable[[Designs, Problem, bool], Evaluation],
    detail: bool = False,
) -> Evaluation:
    """What `found` says of designs, with what they are worth in every scenario, and with the reasons why they are invalid
    in one that they must fit. Designs that are invalid by then are not evaluated in the next scenario."""
    reasons = found.reasons
    extra: dict[str, Any] | None = dict(found.detail) if found.detail is not None else None
    parts: dict[str, Evaluation] = {}
    for name, scenario in problem.scenarios.items():
        if scenario.problem.workload is problem.workload and scenario.problem.cost_model is problem.cost_model:
            parts[name] = attrs.evolve(found, detail=None)  # the problem itself
            continue
        rows = np.flatnonzero(reasons == 0)
        energy_pj, cycles, told = np.full(len(found), np.inf), np.full(len(found), np.inf), reasons.copy()
        if len(rows):
            part = evaluate(designs if len(rows) == len(found) else designs.take(rows), scenario.problem, detail)
            if part.reason_names != found.reason_names:
                raise wrong(problem.cost_model, "evaluate", "named other reasons for another scenario")
            energy_pj[rows], cycles[rows], told[rows] = part.energy_pj, part.cycles, part.reasons
            if extra is not None and scenario.must_fit:
                _add_needed(extra, part, rows, name)
        parts[name] = Evaluation(energy_pj, cycles, told, found.reason_names)
        if scenario.must_fit:
            reasons = np.where(reasons == 0, parts[name].reasons, reasons)
    valid = reasons == 0
    energy_pj, cycles = (np.where(valid, values, np.inf) for values in (found.energy_pj, found.cycles))
    return attrs.evolve(found, energy_pj=energy_pj, cycles=cycles, reasons=reasons, detail=extra, scenarios=parts)


def _add_needed(extra: dict[str, Any], part: Evaluation, rows: np.ndarray, name: str) -> None:
    """Adds what designs lack in a scenario to the `needed` of a detail."""
    lacking = (part.detail or {}).get("needed")
    if lacking is None or "needed" not in extra:
        return
    needed = [list(lacks) for lacks in extra["needed"]]
    for row, lacks in zip(rows, lacking, strict=True):
        if not needed[row]:
            needed[row] = [(reason, n, has, f"{text}   at {name}" if text else "") for reason, n, has, text in lacks]
    extra["needed"] = needed
