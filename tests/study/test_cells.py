"""Cells of a study: what they are called, and where their files go."""

import pickle
from pathlib import Path

import pytest
import toml

from sparsemap import SpecError, load_design, load_problem, run_study
from sparsemap.pieces.study_spec import Study
from sparsemap.study.cells import NUMBERS, cells_of, variants_of
from sparsemap.study.study import csv_text, markdown_text


def test_files_of_one_name_in_two_folders_are_two_workloads(tmp_path):
    study = Study(name="s", workloads=("a/mm.toml", "b/mm.toml", "mm1", "mm1"), hardware=("edge",))
    cells = cells_of(study, tmp_path)
    assert [cell.workload for cell in cells] == ["a-mm", "b-mm", "mm1"]
    assert len({cell.folder for cell in cells}) == 3


def test_tables_show_missing_numbers_as_such():
    row = {"workload": "a|b", "hardware": "h", "searcher": "s", "seed": 0} | dict.fromkeys(NUMBERS)
    assert markdown_text([row]).splitlines()[2].startswith("| a\\|b ")
    assert csv_text([row]).splitlines()[1] == "a|b,h,s,0,,,,,"


def test_a_key_that_no_file_can_hold_is_named(tmp_path):
    study = Study(name="s", workloads=("mm1",), hardware=("edge",), objective={"type": "pareto", "a\nb": 1})
    with pytest.raises(SpecError, match=r"objective: .*cannot be written as a key"):
        cells_of(study, tmp_path)


def test_variants_are_called_what_they_are():
    hardware = ("edge", {"extends": "edge", "clock": "2 GHz"}, {"extends": "edge", "name": "own"}, "edge")
    assert [label for label, _ in variants_of(hardware)] == ["edge", "edge-clock-2-GHz", "own"]
    assert [label for label, _ in variants_of(((), ("a", "b")))] == ["own", "a+b"]
    assert [label for label, _ in variants_of(({"name": {"a": 1}},))] == ["name--a-1"]  # told where it is read


def test_a_cell_that_fails_is_a_warning_with_its_reason_where_nobody_hears_of_progress(tmp_path, caplog):
    study = {"kind": "study", "name": "few", "workloads": ["mm77x"], "hardware": ["edge"], "budget": 60}
    (outcome,) = run_study(study, out=tmp_path)
    assert outcome.state == "failed"
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", f"1 of 1 cells: {outcome.cell.name} failed: {outcome.error}")
    ]
    assert "no workload 'mm77x'" in outcome.error


def test_a_study_may_be_a_table_or_a_file_and_its_designs_can_be_read(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    study = {"kind": "study", "name": "few", "workloads": ["mm1"], "hardware": ["edge"], "budget": 60}
    with caplog.at_level("INFO", "sparsemap"):
        (outcome,) = run_study(study, out="out")
    assert "1 of 1 cells: mm1 on edge with sparsemap, seed 0 done" in caplog.text
    Path("few.toml").write_text(toml.dumps(study), "utf-8")
    assert [again.state for again in run_study("few.toml", out="out")] == ["kept"]
    result = load_design("out/mm1--edge--sparsemap--seed0")
    assert result.found.edp == outcome.numbers["edp"] and "DRAM" in result.report("loop-nest")
    assert pickle.loads(pickle.dumps(result)).found.edp == result.found.edp


def test_a_workload_may_be_a_table_of_the_study():
    own = {"name": "mine", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 8, "k": 8, "n": 8}}
    study = Study(name="one", workloads=("mm1", own), hardware=("edge",), budget=5)
    first, second = cells_of(study, Path("out"))
    assert (first.workload, second.workload) == ("mm1", "mine") and second.folder.endswith(
        "mine--edge--sparsemap--seed0"
    )
    assert load_problem(second.parts["workload"], "edge").sizes == {"m": 8, "k": 8, "n": 8}
