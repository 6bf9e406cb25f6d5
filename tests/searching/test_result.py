"""Results: what they hold, and the files that they become."""

import csv
import json
import math

import numpy as np
import pytest
from toy_problem import toy_problem

from sparsemap import SearchError, search
from sparsemap.searching.result import DESIGN_FILE, HISTORY_FILE, RESULT_FILE, read_result


@pytest.fixture
def without_design(monkeypatch):
    """The toy problem has columns that a design file cannot hold."""
    monkeypatch.setattr("sparsemap.problem.design_file.dump", lambda design, numbers, _: {"score": dict(numbers)})


def test_a_result_says_what_was_searched_and_with_what():
    result = search(toy_problem(), 500, seed=7, searcher="es-pfce")
    table = result.to_dict()
    assert table["workload"] == "toy"
    assert table["hardware"] == "toy-hardware"
    assert table["searcher"] == "es-pfce"
    assert table["objective"] == "toy-edp"
    assert (table["seed"], table["evaluations"], table["budget"]) == (7, 500, 500)
    assert table["versions"]["numpy"] == np.__version__
    assert set(table["versions"]) == {"sparsemap", "numpy", "python", "plugins"}
    assert table["edp"] == table["energy_pj"] * table["cycles"] == result.best.edp


def test_the_best_design_evaluates_to_the_numbers_it_carries():
    best = search(toy_problem(), 500, searcher="random").best
    evaluation = best.problem.evaluator.evaluate(best.genome)
    assert (evaluation.energy_pj[0], evaluation.cycles[0]) == (best.energy_pj, best.cycles)
    assert best.problem.evaluator.score(evaluation)[0] == best.score
    assert len(best.design.batch) == 1


def test_writing_gives_three_files_that_read_back(tmp_path, without_design):
    result = search(toy_problem(), 500, searcher="random")
    paths = result.write(tmp_path / "new" / "folder")
    assert [path.name for path in paths] == [DESIGN_FILE, HISTORY_FILE, RESULT_FILE]
    assert read_result(paths[2]) == read_result(paths[2].parent) == json.loads(json.dumps(result.to_dict()))
    with open(paths[1], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert int(rows[-1]["evaluations"]) == 500
    assert float(rows[-1]["best_score"]) == result.best.score


def test_two_runs_of_one_seed_write_identical_files_apart_from_seconds(tmp_path, without_design):
    for name in "ab":
        search(toy_problem(), 800, seed=3).write(tmp_path / name)
    for file in (DESIGN_FILE, HISTORY_FILE):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    texts = [(tmp_path / name / RESULT_FILE).read_text("utf-8").splitlines() for name in "ab"]
    assert [a for a, b in zip(*texts, strict=True) if a != b and '"seconds"' not in a] == []


def test_a_search_without_a_valid_design_writes_no_design_and_removes_an_old_one(tmp_path):
    (tmp_path / DESIGN_FILE).write_text("old", "utf-8")
    result = search(toy_problem(limit=0.5), 50, searcher="random")
    assert [path.name for path in result.write(tmp_path)] == [HISTORY_FILE, RESULT_FILE]
    assert not (tmp_path / DESIGN_FILE).exists()
    table = read_result(tmp_path)
    assert table["edp"] is None
    assert table["shortfalls"][0]["reason"] == "capacity:GLB"
    assert (tmp_path / HISTORY_FILE).read_text("utf-8").splitlines()[1] == "50,,0,"


def test_among_rejected_designs_the_one_that_lacks_least_is_reported():
    result = search(toy_problem(limit=1.9), 300, searcher="random")
    assert [(s.reason, s.needed) for s in result.shortfalls] == [("capacity:GLB", 2.0)]


def test_numbers_survive_the_csv_bit_for_bit():
    result = search(toy_problem(), 300, searcher="es-lhs")
    lines = result.history_csv().splitlines()[1:]
    for line, row in zip(lines, result.history, strict=True):
        evaluations, best, valid, mean = line.split(",")
        assert (int(evaluations), float(best), int(valid)) == (row.evaluations, row.best_score, row.valid)
        assert mean == "" if math.isnan(row.mean_score) else float(mean) == row.mean_score


def test_a_result_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(SearchError, match=r"result\.json"):
        read_result(tmp_path)
