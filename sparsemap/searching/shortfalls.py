"""Missing resources of the rejected design nearest to being valid."""

from __future__ import annotations

import math

import attrs
import numpy as np

from ..errors import PluginError
from ..pieces.boundary import guarded
from ..pieces.contracts.base import Array
from ..problem.evaluation import Evaluation
from ..problem.problem import Problem
from .archive import Archive

CLOSEST = 64
"""Rejected designs kept until the first valid design."""


@attrs.frozen
class Shortfall:
    """A reason against the rejected design nearest to being valid."""

    reason: str
    """Name such as "capacity:GLB"."""
    needed: float = math.nan
    available: float = math.nan
    text: str = ""
    """Missing amount, in the units of the resource."""

    def __str__(self) -> str:
        if self.text or math.isnan(self.needed):
            return self.text or self.reason
        needed, available = (f"{x:,.0f}" if x >= 100 else f"{x:.4g}" for x in (self.needed, self.available))
        return f"{self.reason}  (needs {needed}, has {available})"


def closest(genomes: Array, evaluation: Evaluation, known: Array | None, fewest: int) -> tuple[Array | None, int]:
    """(n, G) rejected genomes with the fewest reasons, and the number of reasons, from a batch and from `known` genomes
    with `fewest` reasons."""
    bits = np.arange(64, dtype=np.uint64)
    reasons = (evaluation.reasons[:, None] >> bits & np.uint64(1)).sum(axis=1).astype(np.int64)
    here = int(reasons.min())
    if here > fewest:
        return known, fewest
    rows = genomes[reasons == here][:CLOSEST]
    if here == fewest and known is not None:
        rows = np.concatenate([known, rows])[:CLOSEST]
    return rows.copy(), here


def shortfalls_of(problem: Problem, archive: Archive) -> tuple[Shortfall, ...]:
    """Missing resources of the rejected design nearest to being valid: fewest reasons, then the smallest
    needed/available."""
    if archive.closest is None:
        return ()
    try:
        with guarded(problem.cost_model, "evaluate"):
            return _lacking(problem, archive.closest)
    except PluginError:  # for these designs: all that is known is what they were rejected for
        return tuple(Shortfall(name) for name in list(archive.rejects)[:1])


def _lacking(problem: Problem, genomes: Array) -> tuple[Shortfall, ...]:
    evaluation = problem.evaluator.evaluate_designs(problem.space.decode(genomes), detail=True)
    needed = (evaluation.detail and evaluation.detail.needed) or ()
    meanings = problem.cost_model.reasons(problem)
    found = []
    for row in range(len(evaluation)):
        lacks = [Shortfall(n, float(x), float(y), text) for n, x, y, text in (needed[row] if row < len(needed) else ())]
        known = {lack.reason for lack in lacks}
        rest = [name for name in evaluation.reasons_of(row) if name not in known]
        lacks += [Shortfall(name, text=f"{name}: {meanings[name]}" if name in meanings else "") for name in rest]
        ratios = [lack.needed / max(lack.available, 1e-9) for lack in lacks if not math.isnan(lack.needed)]
        worst = max(ratios, default=0.0)
        found.append((worst, row, tuple(lacks)))
    return min(found)[2]
