"""Genomes in blocks become energies, cycles and reasons; what is no genome is refused."""

from functools import cache

import numpy as np
import pytest
from toy_problem import toy_problem, toy_registry

from sparsemap import EvaluationError, evaluate, load_problem, search

SEARCHERS = toy_registry().names("searcher")


@pytest.mark.parametrize("searcher", SEARCHERS)
@pytest.mark.parametrize("block", [1, 13])
def test_the_block_size_of_the_evaluator_changes_nothing(searcher, block):
    problem = toy_problem()
    assert problem.evaluator.block > 120
    problem.evaluator.block = block
    assert search(problem, 120, 2, searcher).history_csv() == usual(searcher)


@cache
def usual(searcher):
    return search(toy_problem(), 120, 2, searcher).history_csv()


def test_wrong_genomes_of_a_user_are_an_error_of_evaluation():
    with pytest.raises(EvaluationError, match=r"gene 'order.a' is 9, expected 1\.\.6"):
        toy_problem().evaluator.evaluate(np.full((1, 8), 9))


def test_an_evaluation_is_scored_by_any_objective_or_expression():
    problem = load_problem("mm1", "edge")
    found = evaluate(problem, problem.space.sample(300, np.random.default_rng(0)))
    for scored in (found.score(), found.score(problem.objective)):
        assert np.array_equal(scored, problem.evaluator.score(found))
    assert np.array_equal(found.take([3, 1]).score(), found.score()[[3, 1]])
    assert np.array_equal(found.score("energy * delay"), found.score("edp"))
    assert np.array_equal(found.score("seconds")[found.valid], found.cycles[found.valid] / problem.clock_hz)
    with pytest.raises(EvaluationError, match="no quantity 'secnods'; did you mean 'seconds'"):
        found.score("secnods * 2")
