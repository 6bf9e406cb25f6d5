"""The evaluator: decode, cost model and objective block by block, with a check of every result."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import attrs
import numpy as np

from ..errors import EvaluationError
from ..pieces.boundary import described, guarded, locked, numbers, wrong
from ..pieces.contracts import CostModel
from ..pieces.contracts.base import Genomes, Scores
from .costs import BASIC
from .designs import Designs
from .evaluation import Detail, Evaluation
from .problem import Problem

BLOCK = 4096
"""Designs per block: their arrays stay in cache."""
MOST_REASONS = 64
"""Bits of `Evaluation.reasons`."""

np.empty(3 << 20)  # freed at once: from then on glibc keeps freed memory of 48 MiB for the next block's arrays


_PROPOSING = ContextVar("proposing", default=False)


@contextmanager
def proposing() -> Iterator[None]:
    """Forbids evaluation inside the block, for a running searcher: a searcher yields genomes, counted by the driver."""
    token = _PROPOSING.set(True)
    try:
        yield
    finally:
        _PROPOSING.reset(token)


@attrs.define(eq=False)
class Evaluator:
    """Decode, cost model and objective for a problem, in blocks; results do not depend on the block size.

    Exceptions and broken contracts of plugins become a `PluginError`."""

    problem: Problem
    block: int = BLOCK

    def evaluate(self, genomes: Genomes) -> Evaluation:
        """Evaluates genomes (B, G) of integers; `EvaluationError` for a wrong shape or a gene out of bounds."""
        return self.evaluate_checked(self.problem.space.check(genomes))

    def evaluate_checked(self, genomes: Genomes, designs: Designs | None = None) -> Evaluation:
        """Evaluates genomes already checked to be within bounds; pass their `designs` if already decoded."""
        starts = range(0, len(genomes), self.block) or range(1)
        parts = []
        for rows in (slice(start, start + self.block) for start in starts):
            if designs is None:
                block = self.problem.space.decoded(genomes[rows])
            else:
                block = designs.take(rows) if len(starts) > 1 else designs
            parts.append(self.evaluate_designs(block))
            if parts[-1].reason_names != parts[0].reason_names:
                raise wrong(self.problem.cost_model, "evaluate", "named other reasons for another batch")
        return attrs.evolve(Evaluation.join(parts), genomes=checksum(genomes))

    def evaluate_designs(self, designs: Designs, detail: bool = False) -> Evaluation:
        """Evaluates decoded designs in a single block, also in every scenario of the problem. `EvaluationError` if
        called by a searcher, outside its budget."""
        if _PROPOSING.get():
            text = "a searcher evaluates designs by yielding their genomes, which count against its budget"
            raise EvaluationError(text)
        found = evaluated(designs, self.problem, detail)
        if self.problem.scenarios:
            from .scenarios import with_scenarios

            found = with_scenarios(found, designs, self.problem, detail)
        return attrs.evolve(found, objective=self.problem.judge, problem=self.problem.title)

    def score(self, evaluation: Evaluation, opening: bool = False) -> Scores:
        """(B,) float64 by the problem's objective, or its opening; invalid designs and NaN are infinity."""
        scores = self._judged("opening" if opening else "score", "scores", evaluation)
        return np.where(evaluation.valid & ~np.isnan(scores), scores, np.inf)

    def values(self, evaluation: Evaluation) -> np.ndarray:
        """(B, M) float64 by the problem's objective; rows of invalid designs and rows with NaN are infinity."""
        values = self._judged("values", "values", evaluation, len(self.problem.objective.names))
        return np.where((evaluation.valid & ~np.isnan(values).any(axis=1))[:, None], values, np.inf)

    def _judged(self, method: str, what: str, evaluation: Evaluation, *columns: int) -> np.ndarray:
        """(B, *columns) float64, result of a method of the objective."""
        objective = self.problem.judge
        with guarded(objective, method), np.errstate(all="ignore"):
            found = getattr(objective, method)(locked(evaluation.on(self.problem.chip)))
        return numbers(objective, method, what, found, (len(evaluation), *columns)).astype(np.float64)


def checksum(genomes: Genomes) -> int:
    """Checksum for `Evaluation.genomes`."""
    return zlib.crc32(np.ascontiguousarray(genomes).data)


def evaluated(designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
    """Checked evaluation of designs by the problem's cost model, without scenarios. Designs with a bypass column are
    evaluated layout by layout, with a `detail` only for a single layout."""
    if designs.own_hardware and len(designs):
        from .layouts import evaluated_by_layout

        return evaluated_by_layout(designs, problem, detail)
    model = problem.cost_model
    with guarded(model, "evaluate"), np.errstate(over="ignore", invalid="ignore"):  # `checked` names what is infinite
        evaluation = model.evaluate(locked(designs), problem, detail)
    return checked(evaluation, len(designs), model).on(problem.chip)


def checked(evaluation: Evaluation, count: int, model: CostModel, method: str = "evaluate") -> Evaluation:
    """Result of a cost model for `count` designs, checked against the contract."""
    if not isinstance(evaluation, Evaluation):
        raise wrong(model, method, f"returned {described(evaluation)}, expected an Evaluation")
    if not isinstance(evaluation.detail, Detail | None):
        raise wrong(model, method, f"returned {described(evaluation.detail)} for 'detail', expected a Detail")
    costs = evaluation.costs
    expected = model.costs if method == "evaluate" else BASIC
    if not isinstance(costs, Mapping) or not {*expected} <= costs.own.keys() <= {*model.costs}:
        found = ", ".join(map(str, costs.own)) if isinstance(costs, Mapping) else described(costs)
        raise wrong(model, method, f"returned the costs {found}, expected {', '.join(model.costs)}")
    for name in costs.own:
        numbers(model, method, name, costs[name], (count,))
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
    valid = reasons == 0
    with np.errstate(all="ignore"):
        good = np.logical_and.reduce([(costs[name] >= 0) & (costs[name] < np.inf) for name in costs.own])
        good &= costs["edp"] < np.inf
    bad = np.flatnonzero(valid & ~good)
    if bad.size:
        text = " and ".join(f"{name} {costs[name][bad[0]]:g}" for name in costs.own)
        text = f"returned {text} for a valid design, expected numbers from 0 on with a finite product"
        raise wrong(model, method, text)
    return evaluation
