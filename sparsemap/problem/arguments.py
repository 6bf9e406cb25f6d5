"""Checks of arguments from Python callers of a search or a space, run after a fast path has refused them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import EvaluationError, SearchError, shortened
from ..pieces.contracts import Objective
from ..pieces.contracts.base import Array, Genomes
from ..spec.expressions import Expression
from .costs import ALIASES
from .problem import Problem

if TYPE_CHECKING:
    from .evaluation import Evaluation
    from .space import Space


def refuse(problem: Any, seed: Any) -> None:
    """`SearchError` unless given a problem and a seed."""
    if not isinstance(problem, Problem):
        text = "expected a Problem, as load_problem(WORKLOAD, HARDWARE) makes it"
        raise SearchError(f"search: the problem is {shortened(problem)}, {text}")
    check_seed(seed)


def check_seed(seed: Any) -> None:
    """`SearchError` unless given a seed."""
    if not (isinstance(seed, int | np.integer) and seed >= 0):
        raise SearchError(f"search: the seed is {shortened(seed)}, expected a whole number, at least 0")


def refuse_genomes(space: Space, genomes: Array) -> NoReturn:
    """`EvaluationError` for genomes other than (B, G) integers within the bounds of a space."""
    if genomes.ndim != 2 or genomes.shape[1] != len(space):
        raise EvaluationError(f"genomes have shape {genomes.shape}, expected (B, {len(space)})")
    if genomes.dtype.kind not in "iu":
        raise EvaluationError(f"genomes have type {genomes.dtype}, expected integers")
    row, gene = (int(i) for i in np.argwhere((genomes < space.low) | (genomes > space.high))[0])
    raise EvaluationError(
        f"genome {row}: gene '{space.names[gene]}' is {int(genomes[row, gene])}, "
        f"expected {int(space.low[gene])}..{int(space.high[gene])}"
    )


def refuse_draw(rng: Any, count: Any) -> NoReturn:
    """`EvaluationError` for a wrong generator of random numbers, or a wrong number of genomes."""
    if not isinstance(rng, np.random.Generator):
        raise EvaluationError(f"rng is {shortened(rng)}, expected a Generator, as np.random.default_rng(SEED) makes it")
    raise EvaluationError(f"count is {shortened(count)}, expected a whole number, at least 0")


def refuse_told(evaluation: Evaluation, problem: Problem, genomes: Genomes) -> NoReturn:
    """`EvaluationError` for an evaluation, given to `tell`, of other genomes."""
    if evaluation.problem not in ("", problem.title):
        raise EvaluationError(f"tell: the evaluation is of {evaluation.problem}, expected one of {problem.title}")
    if len(evaluation) != len(genomes):
        raise EvaluationError(f"tell: {len(evaluation)} designs were evaluated, expected {len(genomes)}")
    raise EvaluationError("tell: the evaluation is of other genomes than those that ask() gave last")


def plain_scores(scores: Any, count: int) -> Array:
    """Scores (count,) float64 given to `tell`; `EvaluationError` for anything else."""
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


def scores_by(evaluation: Evaluation, objective: Any) -> Array:
    """(B,) scores of an evaluation by an objective, or by an expression of costs; `EvaluationError` for anything else."""
    if isinstance(objective, str):
        try:
            expression = Expression.parse(objective, {*evaluation.costs, *ALIASES})
        except ValueError as error:
            raise EvaluationError(f"score: {error}; expected an objective, or an expression of costs") from None
        return expression({name: evaluation.costs[name] for name in expression.names})
    if not isinstance(objective, Objective):
        given = shortened(objective)
        raise EvaluationError(f"score: found {given}, expected an objective, or an expression of costs")
    return objective.score(evaluation)
