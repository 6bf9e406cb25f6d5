"""The verdict on a search: proved, converged, or still improving with a suggested budget."""

import json
import math

import pytest
from click.testing import CliRunner

from sparsemap import SearchError, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.searching.archive import Row
from sparsemap.searching.budget import MOST
from sparsemap.searching.convergence import FEWEST, convergence_of
from sparsemap.searching.folder import finished


def history(*best):
    """Rows of 100 designs."""
    return [Row(100 * (i + 1), score, 100, score) for i, score in enumerate(best)]


@pytest.mark.parametrize(
    ("scores", "gap", "state", "text"),
    [
        ((9, 8, 8, 8, 8, 8, 8, 8, 8, 8), 1.5, "converged", "converged: no gain of 1 % after 200 designs"),
        ((9, 8.05, 8, 8, 8, 8, 8, 8, 8, 8), None, "converged", "converged: no gain of 1 % after 200 designs"),
        ((9, 9, 8, 8, 8, 8, 8, 8, 8, 8), 1.5, "improving", "improving: 11 % in the last 800 designs; try a budget of 4,000"),
        ((9, 9, 8, 8, 8, 8, 8, 8, 8, 8), 1.01, "proved", "proved: within 1.01x of the best design of these sizes"),
        ((8, 8, 8, 8, 8), None, "improving", "too few designs to tell; try a budget of 2,000"),
        ((math.inf, 9, 8, 8, 8), None, "improving", "improving: nothing valid in the first 100 designs; try a budget of 2,000"),
        ((90, 80, 8, 7, 7), None, "improving", "improving: 12.9x in the last 400 designs; try a budget of 2,000"),
    ],
)  # fmt: skip
def test_the_first_fifth_decides_and_a_bound_decides_more(scores, gap, state, text):
    found = convergence_of(history(*scores), gap)
    assert (found.state, found.text) == (state, text)


def test_nothing_is_said_of_few_designs_or_without_a_valid_one():
    assert convergence_of([], None) is None
    assert convergence_of([Row(FEWEST - 1, 5.0, 1, 5.0)], None) is None
    assert convergence_of(history(math.inf, math.inf, math.inf), None) is None


def test_a_single_batch_is_the_first_and_the_last():
    assert convergence_of([Row(500, 5.0, 500, 6.0)], None).state == "improving"


def test_results_and_summaries_have_the_verdict():
    problem = load_problem("mm12", "edge", registry=load())
    found = search(problem, 400)
    assert found.convergence.text in found.report("summary")
    assert found.to_dict()["convergence"]["state"] == found.convergence.state
    front = search(load_problem("mm12", "edge", objective="pareto:energy_pj,cycles", registry=load()), 300)
    assert front.convergence is None and "convergence" not in front.to_dict()


def test_an_automatic_budget_ends_once_the_search_has_converged(tmp_path):
    problem = load_problem("mm12", "edge", registry=load())
    found = search(problem, "auto", out=tmp_path)
    assert found.convergence.state in ("converged", "proved")
    assert 2_000 <= found.evaluations < found.budget == MOST and not found.interrupted
    plain = search(problem, found.evaluations)
    assert plain.best.score == found.best.score and plain.history[:-1] == found.history[: len(plain.history) - 1]
    assert finished(tmp_path, problem, "sparsemap", "auto", 0) and not finished(tmp_path, problem, "sparsemap", MOST, 0)


def test_an_automatic_budget_needs_a_searcher_that_does_not_plan_by_the_budget():
    with pytest.raises(SearchError, match=r"budget 'auto' needs a searcher .* found 'random'"):
        search(load_problem("mm12", "edge", registry=load()), "auto", searcher="random")


def test_the_command_takes_an_automatic_budget():
    done = CliRunner().invoke(cli, ["search", "mm12", "edge", "--budget", "auto", "--quiet", "--json"])
    assert json.loads(done.stdout)["convergence"]["state"] in ("converged", "proved")
    wrong = CliRunner().invoke(cli, ["search", "mm12", "edge", "--budget", "many"])
    assert wrong.exit_code == 2 and "'many' is not a valid integer" in wrong.output
