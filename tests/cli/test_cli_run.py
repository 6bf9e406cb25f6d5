"""`sparsemap run`: cells, resuming, tables, failures, and that workers change nothing."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli
from sparsemap.study import study as study_module

STUDY = """
kind = "study"
name = "small"
workloads = ["mm1", "mm3"]
hardware = ["cloud"]
searchers = ["random"]
seeds = [0, 1]
budget = 500
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    return tmp_path


def run(*args, code=0):
    done = CliRunner().invoke(cli, ["run", *map(str, args)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done


def rows(folder="out"):
    return list(csv.DictReader(Path(folder, "table.csv").read_text().splitlines()))


def test_every_cell_has_a_folder_and_a_row():
    run("study.toml", "--out", "out")
    names = {path.name for path in Path("out").iterdir() if path.is_dir()}
    assert names == {f"{w}--cloud--random--seed{s}" for w in ("mm1", "mm3") for s in (0, 1)}
    assert [(row["workload"], row["seed"]) for row in rows()] == [
        ("mm1", "0"),
        ("mm1", "1"),
        ("mm3", "0"),
        ("mm3", "1"),
    ]
    header = ["workload", "hardware", "searcher", "seed", "edp", "energy_pj", "cycles", "evaluations", "valid_fraction"]
    header += ["score", "seconds", "power_w", "edp_js", "area_mm2", "technology", "gap", "verdict"]
    assert list(rows()[0]) == header
    assert Path("out/table.md").read_text().startswith("| workload | hardware |")


def test_a_row_has_the_numbers_of_the_cell_in_full():
    run("study.toml", "--out", "out")
    result = json.loads(Path("out/mm1--cloud--random--seed1/result.json").read_text())
    assert float(rows()[1]["edp"]) == result["edp"] and float(rows()[1]["cycles"]) == result["cycles"]


def test_results_do_not_depend_on_the_number_of_workers():
    run("study.toml", "--out", "one")
    run("study.toml", "--out", "two", "--jobs", 2)
    assert Path("one/table.csv").read_text() == Path("two/table.csv").read_text()
    for name in ("design.toml", "history.csv"):
        cell = f"mm1--cloud--random--seed0/{name}"
        assert Path("one", cell).read_text() == Path("two", cell).read_text()


def test_finished_cells_are_kept():
    run("study.toml", "--out", "out")
    result = Path("out/mm1--cloud--random--seed0/result.json")
    result.write_text(result.read_text().replace('"seconds": ', '"seconds": 12345'))
    kept = result.read_text()
    Path("out/mm3--cloud--random--seed0/result.json").unlink()
    done = run("study.toml", "--out", "out")
    assert "4 cells, 3 kept from earlier" in done.stderr
    assert result.read_text() == kept
    assert Path("out/mm3--cloud--random--seed0/result.json").exists()


def test_cells_that_the_study_changes_are_run_again():
    run("study.toml", "--out", "out")
    Path("study.toml").write_text(STUDY.replace("500", "600"))
    run("study.toml", "--out", "out")
    assert {row["evaluations"] for row in rows()} == {"600"}


def test_cells_whose_files_change_are_run_again():
    layer = Path("layer.toml")
    text = (
        'kind = "workload"\nname = "layer"\neinsum = "Z[m, n] = P[m, k] * Q[k, n]"\n'
        "dims = {{ m = {m}, k = 8, n = 8 }}\ndensity = {{ P = 0.5, Q = 0.5 }}\n"
    )
    layer.write_text(text.format(m=8))
    Path("study.toml").write_text(STUDY.replace('["mm1", "mm3"]', '["layer.toml"]').replace("[0, 1]", "[0]"))
    run("study.toml", "--out", "out")
    first = rows()
    assert [row["workload"] for row in first] == ["layer"]
    layer.write_text(text.format(m=16))
    said = run("study.toml", "--out", "out", code=2).stderr
    assert "is of another search, layer on cloud; workload.dims.m is 8 there, 16 here. Choose another folder" in said
    assert rows() == first
    run("study.toml", "--out", "out", "--overwrite")
    assert rows()[0]["edp"] != first[0]["edp"]


def test_paths_are_relative_to_the_study(folder, monkeypatch):
    Path("there").mkdir()
    Path("there/chip.toml").write_text('kind = "hardware"\nname = "chip"\nextends = "cloud"\n')
    Path("there/study.toml").write_text(STUDY.replace('"cloud"', '"chip.toml"'))
    run("there/study.toml", "--out", "out")
    assert {row["hardware"] for row in rows()} == {"chip"}


def test_interrupted_and_damaged_cells_are_run_again():
    run("study.toml", "--out", "out")
    first, second = (Path(f"out/mm1--cloud--random--seed{seed}/result.json") for seed in (0, 1))
    first.write_text(json.dumps({**json.loads(first.read_text()), "interrupted": True}))
    second.write_text("{")
    done = run("study.toml", "--out", "out")
    assert "2 kept from earlier" in done.stderr
    assert json.loads(second.read_text())["evaluations"] == 500


def test_a_cell_that_fails_is_named_and_the_others_are_kept():
    lost = 'density = { P = 0.5, Q = { type = "data", file = "lost.npy" } }\n'
    Path("lost.toml").write_text(f'kind = "workload"\nname = "lost"\nextends = "mm3"\n{lost}')
    Path("study.toml").write_text(STUDY.replace('"mm3"', '"lost.toml"'))
    done = run("study.toml", "--out", "out", code=2)
    assert "lost on cloud with random, seed 0: " in done.stderr and "lost.npy: no such file" in done.stderr
    assert "2 of 4 cells failed" in done.stderr
    assert [row["edp"] != "" for row in rows()] == [True, True, False, False]
    assert not Path("out/lost--cloud--random--seed0/result.json").exists()


def test_a_study_with_mistakes_is_told_all_of_them_before_anything_runs_and_its_tables_stay():
    text = STUDY.replace('"cloud"', '"cloud", "edge"')
    Path("study.toml").write_text(text)
    assert CliRunner().invoke(cli, ["compare", "study.toml", "--out", "out"]).exit_code == 0
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    Path("study.toml").write_text(text.replace('"mm3"', '"mm33"').replace('"cloud"', '"clowd"'))
    for verb in ("run", "compare"):
        done = CliRunner().invoke(cli, [verb, "study.toml", "--out", "out"])
        assert done.exit_code == 2 and done.stderr.splitlines() == [
            "study.toml: workloads[1]: no workload 'mm33'; did you mean 'mm3'?",
            "study.toml: hardware[0]: no hardware 'clowd'; did you mean 'cloud'?",
        ]
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


def test_ctrl_c_keeps_finished_cells(monkeypatch):
    search, calls = study_module.search_into, []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return search(*args, **options)

    monkeypatch.setattr(study_module, "search_into", interrupted)
    assert "interrupted; finished cells are in out" in run("study.toml", "--out", "out", code=130).stderr
    assert [(row["workload"], row["seed"]) for row in rows()] == [("mm1", "0"), ("mm1", "1")]
    done = run("study.toml", "--out", "out")
    assert "4 cells, 2 kept from earlier" in done.stderr


def test_ctrl_c_during_a_cell_keeps_its_files_but_not_its_row(monkeypatch):
    from sparsemap.problem.evaluator import Evaluator

    evaluate, calls = Evaluator.evaluate_checked, []

    def interrupted(self, genomes, *more):
        calls.append(genomes)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(self, genomes, *more)

    monkeypatch.setattr(Evaluator, "evaluate_checked", interrupted)
    Path("study.toml").write_text(STUDY.replace("500", "2000"))
    run("study.toml", "--out", "out", code=130)
    assert len(rows()) == 1
    result = json.loads(Path("out/mm1--cloud--random--seed1/result.json").read_text())
    assert result["interrupted"] is True and result["evaluations"] == 0


def test_json_is_the_table():
    table = json.loads(run("study.toml", "--out", "out", "--json").stdout)
    assert len(table) == 4 and table[0]["workload"] == "mm1" and table[0]["evaluations"] == 500


def test_quiet_prints_nothing():
    done = run("study.toml", "--out", "out", "--quiet")
    assert done.stdout == done.stderr == ""


def test_without_a_folder_nothing_is_run(folder):
    done = run("study.toml", code=2)
    assert "give --out DIR" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["study.toml"]


def test_the_study_may_name_its_folder():
    Path("study.toml").write_text(STUDY + 'out = "results"\n')
    run("study.toml")
    assert len(rows("results")) == 4


def test_a_space_may_differ_by_searcher():
    Path("study.toml").write_text(
        STUDY.replace('["mm1", "mm3"]', '["mm1"]')
        + '[spaces.random]\nextends = "paper"\nformats = { candidates = ["uncompressed"] }\n'
    )
    run("study.toml", "--out", "out")
    result = json.loads(Path("out/mm1--cloud--random--seed0/result.json").read_text())
    assert result["identity"]["space"]["tables"]["formats"]["candidates"] == ["uncompressed"]
