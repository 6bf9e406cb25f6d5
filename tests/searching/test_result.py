"""Results: what they hold, and the files that they become."""

import csv
import json
import math
import re
import sys
from html import escape

import numpy as np
import pytest
from toy_problem import toy_problem

from sparsemap import SearchError, load_problem, search
from sparsemap.searching.result import DESIGN_FILE, HISTORY_FILE, RESULT_FILE, TIMING_FILE, result_of
from sparsemap.searching.written import read_result


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


def test_writing_gives_files_that_read_back(tmp_path, without_design):
    result = search(toy_problem(), 500, searcher="random")
    paths = result.write(tmp_path / "new" / "folder")
    assert [path.name for path in paths] == [DESIGN_FILE, HISTORY_FILE, TIMING_FILE, RESULT_FILE]
    table = json.loads(json.dumps(result.to_dict(paths[3].parent)))
    assert read_result(paths[3]) == read_result(paths[3].parent) == table
    with open(paths[1], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert int(rows[-1]["evaluations"]) == 500
    assert float(rows[-1]["best_score"]) == result.best.score
    with open(paths[2], newline="", encoding="utf-8") as file:
        times = list(csv.DictReader(file))
    assert [row["evaluations"] for row in times] == [row["evaluations"] for row in rows]
    assert 0 <= float(times[0]["seconds"]) <= float(times[-1]["seconds"])


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
    assert [path.name for path in result.write(tmp_path, overwrite=True)] == [HISTORY_FILE, TIMING_FILE, RESULT_FILE]
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
        evaluations, best, valid, mean, energy_pj, cycles = line.split(",")
        assert {"energy_pj": float(energy_pj), "cycles": float(cycles)} == row.costs
        assert (int(evaluations), float(best), int(valid)) == (row.evaluations, row.best_score, row.valid)
        assert mean == "" if math.isnan(row.mean_score) else float(mean) == row.mean_score


def test_a_result_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(SearchError, match=r"result\.json"):
        read_result(tmp_path)


@pytest.fixture(scope="module")
def found():
    return search(load_problem("matmul-32x64x48", "edge-16gbps"), budget=300, seed=0)


def test_results_designs_and_problems_say_what_they_are_in_a_line_with_units(found):
    best = r"EDP \d\.\d{3}e\+\d\d pJ \* cycles, \S+ [nu]J, [\d,]+ cycles"
    result = rf"Result\(matmul-32x64x48 on edge-16gbps: {best}, within \d\.\d\dx of the optimum for these sizes; "
    result += r"300 designs, \d+ % valid, "
    assert re.fullmatch(result + r"sparsemap, seed 0\)", repr(found))
    assert re.fullmatch(rf"Best\(matmul-32x64x48 on edge-16gbps: {best}\)", repr(found.best))
    problem = "Problem(matmul-32x64x48 on edge-16gbps, space full, cost model physical, objective edp)"
    assert repr(found.best.problem) == problem
    nothing = result_of(found.best.problem, None, evaluations=7, searcher="random", valid_fraction=0.0)
    assert repr(nothing).startswith("Result(matmul-32x64x48 on edge-16gbps: no valid design among 7;")


def test_notebooks_show_the_report_and_the_problem(found):
    assert found._repr_html_() == f"<pre style='line-height:1.25'>{escape(found.report('summary'))}</pre>"
    assert "cycles" in found.best._repr_html_() and found.best._repr_html_().startswith("<pre")
    assert (
        "<th>levels</th><td>DRAM unlimited x 1, GLB 128 KB x 1, PEB 1 KB x 256</td>" in found.best.problem._repr_html_()
    )
    nothing = result_of(found.best.problem, None, evaluations=7)
    assert "no valid design among 7" in nothing._repr_html_()


def test_what_an_exporter_writes_is_exported_and_one_without_a_text_says_so(found, tmp_path):
    paths = found.export("timeloop", tmp_path / "made")
    assert {path.name for path in paths} >= {"README.md", "expected.json"} and all(path.is_file() for path in paths)
    with pytest.raises(
        SearchError, match=r"'timeloop' writes files and has no text: Result.export\('timeloop', FOLDER\)"
    ):
        found.report("timeloop")


def test_the_breakdown_adds_up_and_is_in_the_file_of_the_result(found):
    breakdown, table = found.breakdown(), found.to_dict()
    assert breakdown.to_dict() == found.best.breakdown().to_dict()
    assert (table["limit"], table["levels"]) == (breakdown.limit, breakdown.to_dict()["levels"])
    spent = [level["energy_pj"] for level in table["levels"]] + list(table["charges"].values())
    assert math.isclose(sum(spent), found.best.energy_pj, rel_tol=1e-9)
    assert [level["name"] for level in table["levels"]] == ["DRAM", "GLB", "PEB", "MAC"]
    assert set(table["levels"][0]["by_tensor"]) == {"P", "Q", "Z"}


def test_history_is_arrays_and_data_frames(found):
    arrays = found.arrays()
    assert arrays["evaluations"][-1] == 300 and arrays["evaluations"].dtype == np.int64
    assert arrays["best_score"][-1] == found.best.score and (np.diff(arrays["best_score"]) <= 0).all()
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(found.to_pandas(), pandas.DataFrame(arrays))
    levels = found.breakdown().to_pandas()
    assert list(levels.columns) == ["P", "Q", "Z", "energy_pj", "cycles"]
    assert list(levels.index)[:4] == ["DRAM", "GLB", "PEB", "MAC"]  # then charges and waiting
    assert levels["energy_pj"].sum() == pytest.approx(found.best.energy_pj)
    assert levels.loc["GLB", ["P", "Q", "Z"]].sum() == pytest.approx(levels.loc["GLB", "energy_pj"])


def test_without_pandas_the_line_to_type_is_told(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SearchError, match=r"to_pandas\(\) needs the package 'pandas'.*\[pandas\]"):
        found.to_pandas()
