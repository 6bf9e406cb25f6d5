"""The evaluator: decode, cost model and objective block by block, with a check of what each returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from ..pieces.boundary import described, guarded, numbers, wrong
from ..pieces.contracts import CostModel
from ..pieces.contracts.base import Genomes, Scores
from .designs import Designs
from .evaluation import Detail, Evaluation

if TYPE_CHECKING:
    from .problem import Problem

BLOCK = 4096
"""Designs per block: their arrays stay in cache."""
MOST_REASONS = 64
"""Bits of `Evaluation.reasons`."""

np.empty(3 << 20)  # freed at once: from then on glibc keeps freed memory of 48 MiB for the next block's arrays


@attrs.define(eq=False)
class Evaluator:
    """Decode, cost model and objective for one problem, in blocks; results do not depend on the block size.

    A plugin that raises, or breaks its contract, is a `PluginError`.
    """

    problem: Problem
    block: int = BLOCK

    def evaluate(self, genomes: Genomes) -> Evaluation:
        """Evaluates genomes (B, G) of integers; `EvaluationError` if their shape or a gene is out of bounds."""
        return self.evaluate_checked(self.problem.space.check(genomes))

    def evaluate_checked(self, genomes: Genomes, designs: Designs | None = None) -> Evaluation:
        """Evaluates genomes that are known to be within bounds, and their designs where these are known as well."""
        starts = range(0, len(genomes), self.block) or range(1)
        parts = []
        for rows in (slice(start, start + self.block) for start in starts):
            if designs is None:
                block = self.problem.space.decode(genomes[rows])
            else:
                block = designs.take(rows) if len(starts) > 1 else designs
            parts.append(self.evaluate_designs(block))
            if parts[-1].reason_names != parts[0].reason_names:
                raise wrong(self.problem.cost_model, "evaluate", "named other reasons for another batch")
        return Evaluation.join(parts)

    def evaluate_designs(self, designs: Designs, detail: bool = False) -> Evaluation:
        """Evaluates decoded designs in one block, in every scenario of the problem as well."""
        found = evaluated(designs, self.problem, detail)
        if not self.problem.scenarios:
            return found
        return _with_scenarios(found, designs, self.problem, detail)

    def score(self, evaluation: Evaluation) -> Scores:
        """(B,) float64 by the problem's objective; invalid designs and NaN are infinity."""
        scores = self._judged("score", "scores", evaluation)
        return np.where(evaluation.valid & ~np.isnan(scores), scores, np.inf)

    def values(self, evaluation: Evaluation) -> np.ndarray:
        """(B, M) float64 by the problem's objective; rows of invalid designs and of those with NaN are infinity."""
        values = self._judged("values", "values", evaluation, len(self.problem.objective.names))
        return np.where((evaluation.valid & ~np.isnan(values).any(axis=1))[:, None], values, np.inf)

    def _judged(self, method: str, what: str, evaluation: Evaluation, *columns: int) -> np.ndarray:
        """(B, *columns) float64, what a method of the objective returns."""
        objective = self.problem.judge
        with guarded(objective, method), np.errstate(all="ignore"):
            found = getattr(objective, method)(evaluation)
        return numbers(objective, method, what, found, (len(evaluation), *columns)).astype(np.float64)


def evaluated(designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
    """What the cost model of a problem says about designs, if it is what the contract says; without scenarios."""
    model = problem.cost_model
    with guarded(model, "evaluate"), np.errstate(over="ignore", invalid="ignore"):  # `checked` names what is infinite
        evaluation = model.evaluate(designs, problem, detail)
    return checked(evaluation, len(designs), model)


def _with_scenarios(found: Evaluation, designs: Designs, problem: Problem, detail: bool) -> Evaluation:
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
        energy_pj, cycles, told = np.full(len(found), np.inf), np.full(len(found), np.inf), reasons.copy()
        if len(rows):
            part = evaluated(designs if len(rows) == len(found) else designs.take(rows), scenario.problem, detail)
            if part.reason_names != found.reason_names:
                raise wrong(problem.cost_model, "evaluate", "named other reasons for another scenario")
            energy_pj[rows], cycles[rows], told[rows] = part.energy_pj, part.cycles, part.reasons
            if extra is not None and scenario.must_fit:
                extra = _with_needed(extra, part, rows, name)
        parts[name] = Evaluation(energy_pj, cycles, told, found.reason_names)
        if scenario.must_fit:
            reasons = np.where(reasons == 0, parts[name].reasons, reasons)
    valid = reasons == 0
    energy_pj, cycles = (np.where(valid, values, np.inf) for values in (found.energy_pj, found.cycles))
    return attrs.evolve(found, energy_pj=energy_pj, cycles=cycles, reasons=reasons, detail=extra, scenarios=parts)


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


def checked(evaluation: Evaluation, count: int, model: CostModel, method: str = "evaluate") -> Evaluation:
    """What a cost model returned for `count` designs, if it is what the contract says."""
    if not isinstance(evaluation, Evaluation):
        raise wrong(model, method, f"returned {described(evaluation)}, expected an Evaluation")
    if not isinstance(evaluation.detail, Detail | None):
        raise wrong(model, method, f"returned {described(evaluation.detail)} for 'detail', expected a Detail")
    energy_pj, cycles = (
        numbers(model, method, name, getattr(evaluation, name), (count,)) for name in ("energy_pj", "cycles")
    )
    reasons = numbers(model, method, "reasons", evaluation.reasons, (count,), "u")
    if reasons.dtype != np.uint64:
        raise wrong(model, method, f"returned 'reasons' of type {reasons.dtype}, expected uint64")
    names = evaluation.reason_names
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise wrong(model, method, f"returned {described(names)} for 'reason_names', expected a tuple of texts")
    if len(names) > MOST_REASONS or len(set(names)) < len(names):
        raise wrong(model, method, f"named {len(names)} reasons, expected at most {MOST_REASONS}, all different")
    if len(names) < MOST_REASONS and (reasons >> np.uint64(len(names))).any():
        raise wrong(model, method, f"set a bit of 'reasons' without a name; it names {len(names)} reasons")
    with np.errstate(all="ignore"):
        good = (energy_pj >= 0) & (cycles >= 0) & (energy_pj * cycles < np.inf)
    bad = np.flatnonzero((reasons == 0) & ~good)
    if bad.size:
        text = f"returned energy_pj {energy_pj[bad[0]]:g} and cycles {cycles[bad[0]]:g} for a valid design"
        raise wrong(model, method, f"{text}, expected numbers from 0 on with a finite product")
    return evaluation
