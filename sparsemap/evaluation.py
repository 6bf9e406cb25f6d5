"""What a cost model says about a batch, and the evaluator that runs decode, cost model and objective block by block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .designs import Designs
from .errors import EvaluationError

if TYPE_CHECKING:
    from .problem import Problem

Array = np.ndarray

BLOCK = 4096
"""Designs per block: large enough to hide the cost of a NumPy call, small enough for its temporaries to stay in cache."""


@attrs.frozen(eq=False)
class Evaluation:
    """Energy, cycles and validity of B designs."""

    energy_pj: Array
    """(B,) float64, pJ; infinity where the design is invalid."""
    cycles: Array
    """(B,) float64, clock cycles; infinity where the design is invalid."""
    reasons: Array
    """(B,) uint64, bit set over `reason_names`; 0: valid."""
    reason_names: tuple[str, ...]
    detail: Mapping[str, Any] | None = None
    """On request: traffic, metadata and energies by level and tensor, batch last."""

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def valid(self) -> Array:
        """(B,) bool."""
        return self.reasons == 0

    @property
    def edp(self) -> Array:
        """Energy-delay product, (B,) pJ * cycles."""
        return self.energy_pj * self.cycles

    def reasons_of(self, row: int) -> tuple[str, ...]:
        bits = int(self.reasons[row])
        return tuple(name for i, name in enumerate(self.reason_names) if bits >> i & 1)

    def reject_counts(self) -> dict[str, int]:
        """How many designs each reason rejects; a design may count for several."""
        counts = {
            name: int(np.count_nonzero((self.reasons >> np.uint64(i)) & np.uint64(1)))
            for i, name in enumerate(self.reason_names)
        }
        return {name: count for name, count in counts.items() if count}

    @staticmethod
    def join(parts: list[Evaluation]) -> Evaluation:
        if len(parts) == 1:
            return parts[0]
        return Evaluation(
            np.concatenate([p.energy_pj for p in parts]),
            np.concatenate([p.cycles for p in parts]),
            np.concatenate([p.reasons for p in parts]),
            max((p.reason_names for p in parts), key=len),  # a block with bad results has one name more
        )


@attrs.define(eq=False)
class Evaluator:
    """Decode, cost model and objective for one problem, in blocks; results do not depend on the block size."""

    problem: Problem
    block: int = BLOCK

    def evaluate(self, genomes: Array) -> Evaluation:
        """Evaluates genomes (B, G) int64; `EvaluationError` if their shape or a gene is out of bounds."""
        genomes = self.problem.space.check(genomes)
        parts = [self._block(genomes[i : i + self.block]) for i in range(0, len(genomes), self.block)]
        return Evaluation.join(parts) if parts else self._block(genomes)

    def evaluate_designs(self, designs: Designs, detail: bool = False) -> Evaluation:
        """Evaluates decoded designs in one block."""
        return guard(self.problem.cost_model.evaluate(designs, self.problem, detail), len(designs), self.problem)

    def score(self, evaluation: Evaluation) -> Array:
        """(B,) float64 by the problem's objective; invalid designs and NaN are infinity."""
        with np.errstate(all="ignore"):
            scores = np.asarray(self.problem.objective.score(evaluation), dtype=np.float64)
        if scores.shape != evaluation.reasons.shape:
            raise EvaluationError(
                f"objective '{self.problem.objective.name}' returned shape {scores.shape}, "
                f"expected {evaluation.reasons.shape}"
            )
        return np.where(evaluation.valid & ~np.isnan(scores), scores, np.inf)

    def values(self, evaluation: Evaluation) -> Array:
        """(B, M) float64 by the problem's objective; rows of invalid designs and of those with NaN are infinity."""
        objective = self.problem.objective
        with np.errstate(all="ignore"):
            values = np.asarray(objective.values(evaluation), dtype=np.float64)
        expected = (len(evaluation), len(objective.names))
        if values.shape != expected:
            raise EvaluationError(
                f"objective '{objective.name}' returned values of shape {values.shape}, expected {expected}"
            )
        return np.where((evaluation.valid & ~np.isnan(values).any(axis=1))[:, None], values, np.inf)

    def _block(self, genomes: Array) -> Evaluation:
        return self.evaluate_designs(self.problem.space.decode(genomes))


def guard(evaluation: Evaluation, count: int, problem: Problem) -> Evaluation:
    """Checks what a cost model returned; designs with NaN, infinite or negative results become invalid ("bad-result")."""
    name = problem.cost_model.name
    for field in ("energy_pj", "cycles", "reasons"):
        value = getattr(evaluation, field)
        if getattr(value, "shape", None) != (count,):
            raise EvaluationError(
                f"cost model '{name}': {field} has shape {getattr(value, 'shape', None)}, expected ({count},)"
            )
    valid = evaluation.reasons == 0
    sane = (evaluation.energy_pj >= 0) & (evaluation.cycles >= 0)
    sane &= (evaluation.energy_pj < np.inf) & (evaluation.cycles < np.inf)
    if not (valid & ~sane).any():
        return evaluation
    names = evaluation.reason_names
    bad = f"bad-result:{name}"
    if bad not in names:
        names = (*names, bad)
    reasons = evaluation.reasons | np.where(valid & ~sane, np.uint64(1) << np.uint64(names.index(bad)), np.uint64(0))
    return attrs.evolve(
        evaluation,
        energy_pj=np.where(reasons == 0, evaluation.energy_pj, np.inf),
        cycles=np.where(reasons == 0, evaluation.cycles, np.inf),
        reasons=reasons,
        reason_names=names,
    )
