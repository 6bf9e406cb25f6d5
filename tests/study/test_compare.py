"""`sparsemap compare`: searchers next to each other, their ratios and means, and that it goes on where it stopped."""

import csv
import json
import math
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli
from sparsemap.study.comparison import CellRow, Comparison

STUDY = """
kind = "study"
name = "small"
workloads = ["mm1", "mm3"]
hardware = ["cloud", "mobile"]
searchers = ["random", "sparsemap"]
budget = 300
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The folder of a comparison with two workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("compared"))
        Path("study.toml").write_text(STUDY)
        compare("study.toml", "--out", "out", "--jobs", 2)
        return Path("out").absolute()


@pytest.fixture
def out(compared, folder):
    """A copy of it in the test's folder."""
    shutil.copytree(compared, "out")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    return tmp_path


def compare(*args, code=0):
    done = CliRunner().invoke(cli, ["compare", *map(str, args)])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done


def rows(name, folder="out"):
    return list(csv.DictReader(Path(folder, name).read_text().splitlines()))


def test_the_comparison_holds_what_the_cells_found(out):
    cells = rows("comparison.csv")
    assert [(row["workload"], row["hardware"]) for row in cells] == [
        ("mm1", "cloud"),
        ("mm1", "mobile"),
        ("mm3", "cloud"),
        ("mm3", "mobile"),
    ]
    for row in cells:
        found = {
            name: json.loads(Path(f"out/{row['workload']}--{row['hardware']}--{name}--seed0/result.json").read_text())
            for name in ("random", "sparsemap")
        }
        assert float(row["edp:random"]) == found["random"]["edp"]
        assert float(row["ratio:random"]) == found["random"]["edp"] / found["sparsemap"]["edp"]
    means = rows("comparison-means.csv")
    assert [(row["hardware"], row["searcher"]) for row in means] == [
        ("cloud", "random"),
        ("mobile", "random"),
        ("all", "random"),
    ]
    ratios = [float(row["ratio:random"]) for row in cells]
    assert float(means[2]["arithmetic"]) == pytest.approx(sum(ratios) / 4)
    assert float(means[2]["geometric"]) == pytest.approx(math.prod(ratios) ** 0.25)
    assert float(means[0]["arithmetic"]) == pytest.approx((ratios[0] + ratios[2]) / 2)
    text = Path("out/comparison.md").read_text()
    assert text.startswith("EDP in pJ * cycles.") and "| all      | random   |" in text


def test_a_comparison_goes_on_where_it_stopped_and_is_the_same_for_any_number_of_workers(out):
    compare("study.toml", "--out", "one")
    expected = Path("one/comparison.md").read_text()
    assert Path("out/comparison.md").read_text() == expected
    Path("out/mm3--cloud--random--seed0/result.json").unlink()
    Path("out/comparison.md").unlink()
    done = compare("study.toml", "--out", "out")
    assert "8 cells, 7 kept from earlier" in done.stderr
    assert Path("out/comparison.md").read_text() == expected


def test_the_reference_may_be_chosen(out):
    compare("study.toml", "--out", "out", "--reference", "random", "--quiet")
    assert list(rows("comparison.csv")[0])[-1] == "ratio:sparsemap"
    done = compare("study.toml", "--out", "out", "--reference", "sparsmap", code=2)
    assert "--reference: no searcher 'sparsmap'; did you mean 'sparsemap'?" in done.stderr


def test_one_searcher_cannot_be_compared():
    Path("study.toml").write_text(STUDY.replace('"random", ', ""))
    done = compare("study.toml", "--out", "out", code=2)
    assert "needs two searchers or more, the study has 1" in done.stderr
    assert not Path("out").exists()


def test_json_has_ratios_and_means(out):
    table = json.loads(compare("study.toml", "--out", "out", "--json").stdout)
    assert table["reference"] == "sparsemap"
    assert table["cells"][0]["ratio"]["random"] > 0 and table["means"][-1]["hardware"] == "all"


def test_cells_without_a_valid_design_have_no_ratio_and_are_counted():
    cells = (
        CellRow("a", "h", 0, {"s": 2.0, "r": 1.0}),
        CellRow("b", "h", 0, {"s": 8.0, "r": 1.0}),
        CellRow("c", "h", 0, {"s": None, "r": 1.0}),
        CellRow("d", "h", 0, {"s": 1.0}),
    )
    found = Comparison("r", ("r", "s"), cells)
    (mean,) = found.means
    assert (mean.arithmetic, mean.geometric, mean.cells, mean.of) == (5.0, pytest.approx(4.0), 2, 4)
    assert (mean.better, mean.worse) == (2, 0)
    assert "2 of 4" in found.markdown()
    assert found.cells_csv().splitlines()[3:] == ["c,h,0,1.0,,", "d,h,0,,1.0,"]


def test_nothing_valid_at_all_has_no_means():
    found = Comparison("r", ("r", "s"), (CellRow("a", "h", 0, {"s": None, "r": None}),))
    assert found.means[0].arithmetic is None
    assert "| - " in found.markdown()


def test_an_objective_with_a_division_is_no_path():
    for objective in ("edp / cycles", "2 * edp / cycles", "cycles / 3"):
        Path("study.toml").write_text(
            STUDY.replace(', "mm3"', "").replace(', "mobile"', "") + f'objective = "{objective}"\n'
        )
        compare("study.toml", "--out", "out")
        told = json.loads(Path("out/mm1--cloud--random--seed0/result.json").read_text())
        assert told["objective"] == objective  # not what an earlier objective has left


def test_nor_is_it_one_when_the_study_is_checked():
    Path("study.toml").write_text(STUDY + 'objective = "edp / cycles"\n')
    done = CliRunner().invoke(cli, ["check", "study.toml"])
    assert (done.exit_code, done.stdout) == (0, "study.toml: fine\n"), done.stderr
