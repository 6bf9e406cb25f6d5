"""The best designs of a search, executed and ranked by what they need."""

from __future__ import annotations

import json

import attrs
import pytest
from click.testing import CliRunner

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.errors import SearchError
from sparsemap.searching.executed import APART
from sparsemap.searching.folder import search_into

EDGE = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 8, "k": 16, "n": 8}, "density": {"P": 0.7, "Q": 0.8}}


@pytest.fixture(scope="module")
def problem():
    return load_problem({"name": "small", **EDGE}, "edge-16gbps")


@pytest.fixture(scope="module")
def result(problem):
    return search(problem, budget=60, seed=1, execute=2)


def test_the_best_designs_are_ranked_by_their_corrected_scores(result) -> None:
    first, second = result.executed
    assert result.best is first.best and first.score <= second.score
    low, high = sorted(one.best.score for one in result.executed)
    assert high > low * (1.0 + APART)
    for one in result.executed:
        energy, cycles = one.execution.needed("energy_pj"), one.execution.needed("cycles")
        assert one.score == pytest.approx(one.best.score * energy * cycles)
        assert 0.5 < energy < 2.0 and 0.5 < cycles < 2.0


def test_the_report_says_claimed_executed_and_where_they_differ(result) -> None:
    text = result.report("summary")
    assert "executed over claimed" in text and "corrected score" in text and "differs most in" in text


def test_the_claims_are_those_of_a_search_that_executes_nothing(problem, result) -> None:
    plain = search(problem, budget=60, seed=1)
    assert plain.best.score == min(one.best.score for one in result.executed) and not plain.executed


def test_what_a_claim_leaves_out_is_named(problem) -> None:
    left = tuple(one for one in problem.cost_model.charges if one.type_name != "leakage")
    hole = problem.variant(cost_model=attrs.evolve(problem.cost_model, charges=left))
    (one,) = search(hole, budget=60, seed=1, execute=1).executed
    assert one.execution.needed("energy_pj") > 1.02 and one.execution.needed("cycles") == pytest.approx(1.0, rel=0.1)
    assert "leakage" in one.execution.parts and one.score > one.best.score


def test_what_cannot_be_executed_keeps_its_claim() -> None:
    sparse = EDGE | {"density": {"P": 0.02, "Q": 0.02}}
    (one,) = search(load_problem({"name": "sparse", **sparse}, "edge-16gbps"), budget=60, seed=0, execute=1).executed
    assert one.refused.startswith("too sparse") and one.score == one.best.score


def test_one_objective_at_a_time() -> None:
    problem = load_problem({"name": "small", **EDGE}, "edge-16gbps", objective="pareto:energy,delay")
    with pytest.raises(SearchError, match="one objective"):
        search(problem, budget=50, execute=2)


def test_the_command_prints_them_as_data(problem, tmp_path) -> None:
    (tmp_path / "small.toml").write_text(
        'kind = "workload"\nname = "small"\ntype = "einsum"\neinsum = "Z[m, n] = P[m, k] * Q[k, n]"\n'
        "dims = { m = 8, k = 16, n = 8 }\ndensity = { P = 0.7, Q = 0.8 }\n"
    )
    words = ["search", str(tmp_path / "small.toml"), "edge-16gbps", "--budget", "30", "--execute", "1", "-q"]
    table = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert {"claimed", "corrected", "executed_over_claimed", "parts", "sizes"} <= set(table["executed"][0])


def test_a_search_with_files_has_them(problem, tmp_path) -> None:
    search_into(tmp_path, problem, 60, 0, execute=1)
    assert len(json.loads((tmp_path / "result.json").read_text())["executed"]) == 1
