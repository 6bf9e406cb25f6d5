"""Execution of the best designs of a search: claimed costs are corrected by executed costs, then designs are ranked
again."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import SearchError
from ..pieces.boundary import guarded
from ..pieces.contracts.base import Array
from ..problem.designs import Design
from ..problem.evaluation import Evaluation
from ..problem.problem import Problem
from .best import Best
from .driver import Search
from .result import Result

if TYPE_CHECKING:
    from .race import Race

LEADING = 16
"""Largest number of best designs kept."""
APART = 1e-3
"""Least relative difference between scores of designs counted as different."""


@attrs.define
class Leading:
    """The best designs with scores `APART`, the best first, and their costs."""

    genomes: list[Array] = attrs.field(factory=list)
    scores: list[float] = attrs.field(factory=list)
    costs: list[dict[str, float]] = attrs.field(factory=list)

    def add(self, genomes: Array, scores: Array, evaluation: Evaluation) -> None:
        worst = self.scores[-1] if len(self.scores) == LEADING else math.inf
        rows = np.flatnonzero(scores < worst)
        for row in rows[np.argsort(scores[rows], kind="stable")]:
            score = float(scores[row])
            at = bisect_left(self.scores, score)
            if at == LEADING:
                return
            if at and score < self.scores[at - 1] * (1.0 + APART):
                continue
            while at < len(self.scores) and self.scores[at] < score * (1.0 + APART):
                self._remove(at)
            self.scores.insert(at, score)
            self.genomes.insert(at, genomes[row].copy())
            self.costs.insert(at, dict(evaluation.costs.of(int(row)).own))
            self._remove(LEADING)

    def _remove(self, at: int) -> None:
        for part in (self.scores, self.genomes, self.costs):
            del part[at : at + 1]


@attrs.frozen
class Execution:
    """A design executed on sampled tensors, perhaps with shortened loops."""

    claimed: Mapping[str, float]
    """`energy_pj` and `cycles` of the executed design by the cost model."""
    executed: Mapping[str, float]
    """`energy_pj` and `cycles` by execution."""
    parts: Mapping[str, tuple[float, float]]
    """Difference by part of the cost model, relative to the claimed energy and cycles; the largest first."""
    sizes: Mapping[str, int]
    """Sizes of dimensions in the execution."""

    def needed(self, cost: str) -> float:
        """Executed over claimed cost."""
        return self.executed[cost] / self.claimed[cost] if self.claimed[cost] else 1.0


@attrs.frozen(eq=False)
class ExecutedDesign:
    """A best design of a search, with corrected costs."""

    best: Best
    execution: Execution | None
    """None if the execution was refused, see `refused`; the claim then stands."""
    refused: str = ""

    @property
    def costs(self) -> dict[str, float]:
        """The design's own costs, scaled by executed over claimed."""
        found = dict(self.best.own_costs)
        for cost in self.execution.claimed if self.execution else ():
            found[cost] *= self.execution.needed(cost) if self.execution else 1.0
        return found

    @property
    def score(self) -> float:
        """Score of the corrected costs."""
        costs = {name: np.array([cost]) for name, cost in self.costs.items()}
        return float(self.best.problem.evaluator.score(Evaluation(costs, np.zeros(1, np.uint64), ()))[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found: dict[str, Any] = {"claimed": {**self.best.own_costs, "score": self.best.score}}
        found |= {"corrected": {**self.costs, "score": self.score}, "genome": self.best.genome.tolist()}
        if self.execution is None:
            return found | {"refused": self.refused}
        return found | {
            "executed_over_claimed": {cost: self.execution.needed(cost) for cost in self.execution.claimed},
            "parts": {name: list(shares) for name, shares in self.execution.parts.items()},
            "sizes": dict(self.execution.sizes),
        }


def executed_design(design: Design, seed: int) -> Execution | str:
    """Execution of a design of a file on sampled tensors, or the reason for a refusal."""
    found = design.problem.evaluator.evaluate_designs(design.batch)
    costs = {"energy_pj": float(found.energy_pj[0]), "cycles": float(found.cycles[0])}
    score = float(design.problem.evaluator.score(found)[0])
    best = Best(design.problem, design.problem.space.encode(design.batch)[0], costs, score)
    hook = design.problem.registry.hook
    told = hook and hook.execute_design(best=best, seed=seed)
    assert told is None or isinstance(told, Execution | str)
    return "no loaded plugin executes designs" if told is None else told


def executed(run: Search | Race, result: Result, count: int) -> Result:
    """The result with the best `count` distinct designs executed and ranked by corrected score; the first becomes the
    best. `SearchError` if no plugin can execute designs."""
    problem = run.problem
    if result.best is None or run.interrupted or run.archive.leading is None:
        return result
    known = run.archive.leading
    leading = list(zip(known.genomes, known.costs, known.scores, strict=True))[:count]
    found = [_executed(Best(problem, *row), run.seed) for row in leading]
    found.sort(key=lambda one: one.score)  # stable: designs that are as good stay in the order of their claims
    return attrs.evolve(result, best=found[0].best, executed=tuple(found))


def check(problem: Problem) -> None:
    """`SearchError` if the designs of a problem cannot be executed and ranked."""
    hook = problem.registry.hook
    if hook is None or not hook.execute_design.get_hookimpls():
        raise SearchError("no loaded plugin executes designs")
    if problem.scenarios or len(problem.objective.names) > 1:
        raise SearchError("designs are executed for one objective and one set of densities; leave --execute out")


def _executed(best: Best, seed: int) -> ExecutedDesign:
    with guarded("hook", "execute_design"):
        told = best.problem.registry.hook.execute_design(best=best, seed=seed)
    return ExecutedDesign(best, None, told) if isinstance(told, str) else ExecutedDesign(best, told)
