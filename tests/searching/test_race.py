"""A search tries other sizes of the dimensions, under one budget, and the best of them goes on."""

import json
import math
import os
import re
import shutil
import signal
from itertools import pairwise

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from crashes import in_process, outcome, search_quietly

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.searching.budget import RACED
from sparsemap.searching.folder import finished
from sparsemap.searching.race import OTHERS, Race
from sparsemap.searching.run import started
from sparsemap.spec import toml_text

REGISTRY = load()
LEVELS = [
    {"name": "DRAM", "class": "dram", "bandwidth": "2 GB/s"},
    {"name": "GLB", "class": "sram", "capacity": "4 KB", "fanout": 7, "gate_skip": True},
    {"name": "PEB", "class": "sram", "capacity": "128 B", "fanout": 5, "gate_skip": True},
]
CHIP = {
    "name": "odd",
    "technology": "12nm-recommended",
    "levels": LEVELS,
    "compute": {"name": "MAC", "gate_skip": True},
}
DIMS = {"m": 34, "k": 46, "n": 62}
PRODUCT = {
    "name": "p", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": DIMS, "density": {"P": 0.3, "Q": 0.5}
}  # fmt: skip
BUDGET = 900


@pytest.fixture(scope="module")
def problem():
    return load_problem(PRODUCT, CHIP, registry=REGISTRY)


@pytest.fixture(scope="module")
def result(problem):
    return search(problem, BUDGET)


def test_other_sizes_are_larger_unlike_the_usual_ones_and_all_different(problem):
    others = problem.space.other_sizes
    assert len(others) >= OTHERS
    assert all(sizes[dim] >= DIMS[dim] for sizes in others for dim in DIMS)
    every = [tuple(sizes.values()) for sizes in (problem.sizes, *others)]
    assert len(set(every)) == len(every)


def test_all_designs_count_against_one_budget_and_the_history_has_them_all(result):
    assert result.evaluations == result.budget == BUDGET == sum(row["designs"] for row in result.raced)
    assert len(result.raced) == 1 + OTHERS and result.raced[0]["designs"] >= RACED
    assert result.history[-1].evaluations == BUDGET
    counts = [row.evaluations for row in result.history]
    assert counts == sorted(set(counts))
    scores = [row.best_score for row in result.history]
    assert scores == sorted(scores, reverse=True) and scores[-1] == result.best.score


def test_the_best_sizes_are_those_of_the_result(problem, result):
    best = min(result.raced, key=lambda row: row["score"])
    assert best["score"] == result.best.score and best["sizes"] == result.best.problem.sizes
    assert dict(result.padded) == {dim: (DIMS[dim], size) for dim, size in best["sizes"].items() if size != DIMS[dim]}
    assert result.best.score < result.raced[0]["score"]
    assert result.why_padded == f"best of {1 + OTHERS} sizes searched"
    assert result.bound == result.best.problem.bound <= result.best.score
    assert result.valid_fraction == pytest.approx(sum(row.valid for row in result.history) / BUDGET)


def test_a_larger_budget_begins_with_the_same_designs_and_is_never_worse(problem, result):
    fewer, none = search(problem, 650), search(problem, RACED)
    assert none.raced == () and fewer.best.score >= result.best.score
    for one in (fewer, none):
        assert one.history[:-1] == result.history[: len(one.history) - 1]  # the last batch is cut


def test_the_design_file_holds_the_sizes(result, tmp_path):
    result.write(tmp_path)
    loaded = design_file.load(tmp_path / "design.toml", registry=REGISTRY)
    assert loaded.problem.sizes == result.best.problem.sizes
    there = loaded.problem.evaluator.evaluate_designs(loaded.batch)
    assert there.edp[0] == pytest.approx(result.best.edp, rel=1e-12)
    rows = json.loads((tmp_path / "result.json").read_text())["raced"]
    assert [row["designs"] for row in rows] == [row["designs"] for row in result.raced]


def test_the_command_prints_the_best_sizes_and_the_reason(tmp_path):
    (tmp_path / "chip.toml").write_text(toml_text.dumps({"kind": "hardware", **CHIP}))
    (tmp_path / "p.toml").write_text(toml_text.dumps({"kind": "workload", **PRODUCT}))
    args = "search", str(tmp_path / "p.toml"), str(tmp_path / "chip.toml"), "--budget", str(BUDGET)
    done = CliRunner().invoke(cli, args)
    assert re.search(rf"padded   .*34 -> .*\(best of {1 + OTHERS} sizes searched\)", done.stdout), done.output


@pytest.fixture(scope="module")
def undisturbed(problem, tmp_path_factory):
    """The folder of a search that nothing disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    search_quietly(folder, problem, BUDGET)
    return folder


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("designs", [RACED - 100, RACED + 50, BUDGET - 50])
def test_killed_among_other_sizes_it_ends_with_the_same_result(designs, problem, undisturbed, tmp_path):
    def kill(snapshot):
        if snapshot.evaluations >= designs:
            os.kill(os.getpid(), signal.SIGKILL)

    process = in_process(search_quietly, tmp_path, problem, BUDGET, "sparsemap", kill)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    search_quietly(tmp_path, problem, BUDGET)
    assert outcome(tmp_path) == outcome(undisturbed)


def test_a_result_in_a_folder_is_known_again_and_a_lost_design_is_noticed(problem, undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "copy")
    assert finished(folder, problem, "sparsemap", BUDGET, 7)
    (folder / "design.toml").unlink()
    assert not finished(folder, problem, "sparsemap", BUDGET, 7)


def test_an_interrupted_race_has_the_best_design_so_far(problem):
    def stop(snapshot):
        if snapshot.evaluations > RACED + 150:
            raise KeyboardInterrupt

    found = search(problem, BUDGET, progress=stop)
    assert found.interrupted and RACED + 150 < found.evaluations < BUDGET
    assert found.best.score == min(row["score"] for row in found.raced)


def test_progress_never_goes_back_and_names_the_whole_budget(problem):
    seen = []
    search(problem, BUDGET, progress=seen.append)
    assert [one.budget for one in seen] == [BUDGET] * len(seen)
    assert [one.evaluations for one in seen] == sorted({one.evaluations for one in seen})
    assert all(a.best_score >= b.best_score for a, b in pairwise(seen))


@pytest.mark.parametrize(
    ("searcher", "budget", "change"),
    [
        ("random", BUDGET, {}),
        ("sparsemap", RACED, {}),
        ("sparsemap", BUDGET, {"raced": False}),
        ("sparsemap", BUDGET, {"space": "paper"}),
        ("sparsemap", BUDGET, {"cost_model": "timeloop"}),
        ("nsga2", BUDGET, {"objective": "pareto:energy_pj,cycles"}),
    ],
)
def test_searches_that_cannot_pause_or_whose_sizes_are_given_do_not_race(searcher, budget, change):
    more = {key: value for key, value in change.items() if key != "raced"}
    given = load_problem(PRODUCT, CHIP, registry=REGISTRY, **more)
    given = attrs.evolve(given, raced=False) if "raced" in change else given
    assert not isinstance(started(given, searcher, budget, 0, None, 0), Race)


def test_a_race_ends_where_the_best_sizes_have_no_further_design():
    small = {**PRODUCT, "dims": {"m": 2, "k": 9, "n": 1}}
    space = {"extends": "full", "formats": {"candidates": ["uncompressed"]}, "gate-skip": {"candidates": ["none"]}}
    given = load_problem(small, CHIP, space, registry=REGISTRY)
    found = search(given, 100_000)
    assert found.evaluations < 100_000 and not found.interrupted


def test_an_executed_race_ranks_designs_of_the_best_sizes(problem):
    found = search(problem, BUDGET, execute=2)
    assert len(found.executed) == 2 and found.best.problem.sizes == found.executed[1].best.problem.sizes
    assert all(math.isfinite(one.score) for one in found.executed)


def test_a_problem_in_chosen_sizes_is_another_search(problem):
    other = problem.laid_out(problem.space.other_sizes[0])
    assert (
        started(problem, "sparsemap", BUDGET, 0, None, 0).identity != started(other, None, BUDGET, 0, None, 0).identity
    )
    assert other.space.other_sizes == [] and np.isfinite(search(other, 60).best.score)
