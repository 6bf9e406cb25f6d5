"""Energies and cycles by level add up, and a cost model that tells less still has a breakdown."""

import csv
import json

import attrs
import numpy as np
import pytest
from sparsemap_plugins.reports.breakdown import breakdown_lines

from sparsemap import Detail, load_problem, search
from sparsemap.errors import SearchError
from sparsemap.pieces.contracts import parts, plain
from sparsemap.searching.breakdown import Breakdown
from sparsemap.searching.result import result_of
from sparsemap.spec.units import format_energy


@pytest.fixture(scope="module")
def problem():
    return load_problem("mm1", "cloud")


@pytest.fixture(scope="module")
def result(problem):
    return search(problem, budget=2000, searcher="random")


def breakdown(problem, result):
    detail = problem.evaluator.evaluate_designs(result.best.design.batch, detail=True).detail
    return Breakdown.of(problem, detail, result.best.energy_pj, result.best.cycles)


def export(problem, result, name, tmp_path):
    piece = problem.registry.build("exporter", name)
    (path,) = piece.write(result, problem, tmp_path)
    return path.read_text("utf-8")


def test_energies_add_up_to_the_energy_of_the_design(problem, result):
    found = breakdown(problem, result)
    spent = [row.energy_pj for row in found.rows] + list(found.charges.values())
    assert sum(spent) == pytest.approx(result.best.energy_pj)
    for row in found.rows[:-1]:
        assert sum(row.by_tensor.values()) == pytest.approx(row.energy_pj)
    assert [row.name for row in found.rows] == ["DRAM", "GLB", "PEB", "MAC"]


def test_what_no_level_spends_has_a_row_per_charge(problem, result):
    found = result.breakdown()
    lines = {line.split()[0]: line.split()[1:] for line in breakdown_lines(found, problem)}
    assert {"leakage", "network"} <= set(found.charges)
    for charge, spent_pj in found.charges.items():
        assert lines[charge][:3] == ["-", "-", "-"] and " ".join(lines[charge][3:5]) == format_energy(spent_pj)
    plain = load_problem("mm1", "cloud", cost_model="timeloop")
    assert search(plain, budget=300).breakdown().charges == {}


def test_energy_of_a_charge_that_it_does_not_report_is_in_a_row_of_its_own(problem, result):
    detail = attrs.evolve(result.best.detail, charges_pj={})
    found = Breakdown.of(problem, detail, result.best.energy_pj, result.best.cycles)
    assert found.charges == {"charges": pytest.approx(result.breakdown().charges_pj)}


def test_the_slowest_level_bounds_the_cycles(problem, result):
    assert max(row.cycles for row in breakdown(problem, result).rows) <= result.best.cycles  # the rest waits
    found = search(load_problem("mm1", "cloud", cost_model="timeloop"), budget=300).breakdown()
    assert max(row.cycles for row in found.rows) == found.cycles


def made(problem, level_cycles, compute_cycles):
    detail = Detail(level_cycles=np.array(level_cycles)[:, None], compute_cycles=np.array([compute_cycles]))
    return Breakdown.of(problem, detail, 1.0, max(*level_cycles, compute_cycles))


def test_what_limits_the_cycles_has_a_name(problem):
    assert made(problem, [90.0, 10.0, 10.0], 10.0).limit == "the bandwidth of DRAM"
    assert made(problem, [90.0, 90.0, 10.0], 10.0).limit == "the bandwidth of DRAM and GLB"
    assert made(problem, [10.0, 10.0, 10.0], 10.0).limit == "the MAC units"


def test_levels_that_are_fast_enough_keep_up(problem):
    lines = breakdown_lines(made(problem, [90.0, 10.0, 10.0], 10.0), problem)
    assert lines[1].split()[-1] == "90" and lines[2].endswith("keeps up") and lines[4].split()[-1] == "10"


def test_a_cost_model_without_detail_says_so(problem):
    found = Breakdown.of(problem, Detail(), 1.0, 2.0)
    assert found.limit == ""
    assert breakdown_lines(found, problem) == ["the cost model reports no energy and cycles by level"]


def test_bypassed_tensors_have_no_energy_at_a_level():
    problem = load_problem("conv1", "scnn-like")
    detail = Detail(energy_pj=np.ones((3, 4, 1)))
    found = Breakdown.of(problem, detail, 1.0, 2.0)
    assert list(found.rows[1].by_tensor) == ["P", "Z"]
    assert "-" in breakdown_lines(found, problem)[2].split()


def test_summary_has_numbers_design_energies_and_reasons(problem, result, tmp_path):
    text = export(problem, result, "summary", tmp_path)
    for part in (
        "mm1 on cloud",
        "EDP ",
        "limited by ",
        "2,000 designs",
        "GLB ── ",
        "total ",
        "rejected designs by reason",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_summary_of_a_design_that_no_search_found_has_no_line_about_a_search(problem, result, tmp_path):
    text = export(problem, result_of(problem, result.best), "summary", tmp_path)
    assert "search" not in text and "rejected" not in text


def test_summary_names_what_was_padded(tmp_path):
    table = {
        "name": "odd", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 31, "k": 8, "n": 8},
        "density": {"P": 0.5, "Q": 0.5},
    }  # fmt: skip
    problem = load_problem(table, "cloud")
    text = export(problem, search(problem, budget=300), "summary", tmp_path)
    assert "padded   m 31 -> 32" in text


def test_csv_has_a_line_per_level_and_tensor(problem, result, tmp_path):
    rows = list(csv.DictReader(export(problem, result, "csv", tmp_path).splitlines()))
    assert [(row["level"], row["tensor"]) for row in rows][:3] == [("DRAM", "P"), ("DRAM", "Q"), ("DRAM", "Z")]
    assert sum(float(row["energy_pj"]) for row in rows) == pytest.approx(result.best.energy_pj)


def test_json_has_result_design_and_levels(problem, result, tmp_path):
    table = json.loads(export(problem, result, "json", tmp_path))
    assert table["edp"] == result.best.edp and table["bound"] == result.bound and table["limit"].startswith("the ")
    assert table["design"]["mapping"].keys() == {level.name for level in problem.mapping_levels}
    assert [level["name"] for level in table["levels"]] == ["DRAM", "GLB", "PEB", "MAC"]


def test_a_result_without_design_has_nothing_to_write(problem, result, tmp_path):
    import attrs

    with pytest.raises(SearchError, match="no valid design"):
        export(problem, attrs.evolve(result, best=None), "loop-nest", tmp_path)


def test_best_draws_itself(result):
    assert result.report("loop-nest").startswith("DRAM ──")


def test_a_front_is_listed_by_objective(problem, tmp_path):
    problem = load_problem("mm1", "cloud", objective="pareto:energy,delay", registry=problem.registry)
    result = search(problem, budget=1000, searcher="random")
    lines = export(problem, result, "summary", tmp_path).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("front of "))
    assert lines[start + 1].split() == ["energy", "(pJ)", "delay", "(cycles)"]
    assert lines[start + 2].split()[0] == "1"


def test_files_hold_no_marks_and_marks_change_no_text(problem, result, tmp_path):
    marked = problem.registry.get("exporter", "summary").text(result, problem)
    styles = {style for _, style in parts(marked)}
    assert {"strong", "faint", "heading", "name"} <= styles
    assert export(problem, result, "summary", tmp_path) == plain(marked) == "".join(text for text, _ in parts(marked))
    assert not any(ord(sign) < 32 for sign in plain(marked) if sign != "\n")


def test_a_score_and_a_bound_have_their_unit(problem, tmp_path):
    problem = load_problem("mm1", "cloud", objective="energy", registry=problem.registry)
    lines = search(problem, budget=500, searcher="random").report("summary").splitlines()
    score, bound = (next(line for line in lines if line.startswith(word)) for word in ("score", "bound"))
    assert " pJ   energy" in score and " pJ, proven for these sizes in space full: " in bound
