"""What callers in Python give a search, checked where it is not what the fast paths expect."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import EvaluationError, SearchError, shortened
from ..pieces.contracts.base import Array
from ..problem.problem import Problem


def refuse(problem: Any, seed: Any) -> None:
    """`SearchError` for what is no problem or no seed."""
    if not isinstance(problem, Problem):
        text = "expected a Problem, as load_problem(WORKLOAD, HARDWARE) makes it"
        raise SearchError(f"search: the problem is {shortened(problem)}, {text}")
    check_seed(seed)


def check_seed(seed: Any) -> None:
    """`SearchError` for what is no seed."""
    if not (isinstance(seed, int | np.integer) and seed >= 0):
        raise SearchError(f"search: the seed is {shortened(seed)}, expected a whole number, at least 0")


def plain_scores(scores: Any, count: int) -> Array:
    """Scores (count,) float64 that were told; `EvaluationError` if they are none."""
    try:
        found = np.array(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise EvaluationError(f"tell: scores are {shortened(scores)}, expected {count} numbers") from None
    if found.shape != (count,):
        raise EvaluationError(f"tell: scores have shape {found.shape}, expected ({count},)")
    if np.isnan(found).any():
        row = int(np.flatnonzero(np.isnan(found))[0])
        raise EvaluationError(f"tell: score {row} is nan, expected a number, or infinity for an invalid design")
    return found
