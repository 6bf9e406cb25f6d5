"""Budgets that count all designs, and budgets that count the valid ones."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from toy_problem import toy_problem

from sparsemap import Budget, Search, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.searching.budget import PROPOSALS
from sparsemap.searching.folder import finished, search_into
from sparsemap.study.study import run_study

LIMIT = 5.0
"""Of the toy problem: about a third of its random designs is valid."""


def valid(total):
    return Budget(total, count="valid")


def test_a_budget_of_valid_designs_leaves_invalid_ones_out_and_ends_at_the_last_valid_one():
    result = search(toy_problem(limit=LIMIT), valid(300), searcher="random")
    assert result.evaluations == 300 and result.count == "valid" and not result.given_up
    assert result.proposed > 450
    assert result.valid_fraction == 300 / result.proposed
    assert result.history[-1].evaluations == sum(row.valid for row in result.history) == 300


def test_the_designs_are_those_that_a_budget_of_all_would_have_proposed():
    one = search(toy_problem(limit=LIMIT), valid(300), searcher="random")
    other = search(toy_problem(limit=LIMIT), one.proposed, searcher="random")
    assert (one.best.genome == other.best.genome).all()
    assert one.rejects == other.rejects and other.evaluations == other.proposed


@pytest.mark.parametrize("searcher", ["sparsemap", "islands", "sparsemap-paper", "es-pfce"])
def test_any_searcher_can_have_such_a_budget(searcher):
    assert search(toy_problem(limit=LIMIT), valid(150), searcher=searcher).evaluations == 150


def test_a_problem_without_hope_ends_and_says_why():
    result = search(toy_problem(limit=0.5), valid(3), searcher="random")
    assert result.best is None and result.evaluations == 0
    assert result.proposed == 3 * PROPOSALS
    assert result.given_up == (
        "given up after 3,000 designs, 1,000 for each of the budget of 3 valid ones: 0 are valid"
    )
    assert max(result.rejects.values()) == 3000


def test_scores_that_a_program_tells_count_where_they_are_finite():
    run = Search(toy_problem(), "random", valid(5))
    genomes = run.ask()
    run.tell(np.where(np.arange(len(genomes)) % 2 == 0, np.inf, 1.0))
    assert run.finished
    assert (run.budget.spent, run.budget.proposed) == (5, 10)


def test_a_stopped_search_goes_on_and_one_with_the_other_count_is_another_search(tmp_path):
    problem = toy_problem(limit=LIMIT)
    whole = search(problem, valid(3000), searcher="random")

    def stop(snapshot):
        if snapshot.evaluations > 1000:
            raise KeyboardInterrupt

    assert search_into(tmp_path, problem, valid(3000), 0, "random", stop).interrupted
    again = search_into(tmp_path, problem, valid(3000), 0, "random")
    assert again.history_csv() == whole.history_csv()
    assert finished(tmp_path, problem, "random", valid(3000), 0)
    assert not finished(tmp_path, problem, "random", 3000, 0)


def test_studies_and_the_command_take_the_count(tmp_path):
    args = ["search", "matmul-32x64x48", "edge", "--space", "sparseloop-mapper", "--searcher", "random"]
    table = json.loads(CliRunner().invoke(cli, [*args, "--budget", "5", "--count", "valid", "--json"]).stdout)
    assert (table["evaluations"], table["count"]) == (5, "valid") and table["proposed"] > 5
    study = {"name": "s", "workloads": ["matmul-32x64x48"], "hardware": ["edge"], "searchers": ["random"]}
    piece = load().build("study", {**study, "space": "sparseloop-mapper", "budget": 5, "count": "valid"})
    (outcome,) = run_study(piece, out=tmp_path)
    assert outcome.numbers["evaluations"] == 5 and outcome.numbers["valid_fraction"] == table["valid_fraction"]
