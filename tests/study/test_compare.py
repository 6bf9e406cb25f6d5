"""`sparsemap compare`: searchers next to each other, their ratios and means, and that it goes on where it stopped."""

import csv
import json
import math
import re
import shutil
from pathlib import Path

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats
from sparsemap_plugins.reports.figures import figure_of
from sparsemap_plugins.reports.page import page_of

from sparsemap.cli.main import cli
from sparsemap.csv_files import csv_text, read_csv
from sparsemap.errors import SearchError
from sparsemap.pieces.loading import load
from sparsemap.spec import toml_text
from sparsemap.study.comparison import CellRow, Comparison
from sparsemap.study.comparison import compare as comparison_of

STUDY = """
kind = "study"
name = "small"
workloads = ["mm1", "small-sparse"]
hardware = ["cloud", "mobile"]
searchers = ["random", "sparsemap"]
budget = 200
space = "paper"
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
        ("small-sparse", "cloud"),
        ("small-sparse", "mobile"),
    ]
    for row in cells:
        found = {
            name: json.loads(Path(f"out/{row['workload']}--{row['hardware']}--{name}--seed0/result.json").read_text())
            for name in ("random", "sparsemap")
        }
        assert float(row["edp:random"]) == found["random"]["edp"]
        assert float(row["ratio:random"]) == found["random"]["edp"] / found["sparsemap"]["edp"]
    means = rows("comparison-means.csv")
    assert [(row["hardware"], row["variant"]) for row in means] == [
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
    Path("out/small-sparse--cloud--random--seed0/result.json").unlink()
    Path("out/comparison.md").unlink()
    done = compare("study.toml", "--out", "out")
    assert "8 cells, 7 kept from earlier" in done.stderr
    assert Path("out/comparison.md").read_text() == expected


def test_the_reference_may_be_chosen(out):
    compare("study.toml", "--out", "out", "--reference", "random", "--quiet")
    assert list(rows("comparison.csv")[0])[-1] == "ratio:sparsemap"
    done = compare("study.toml", "--out", "out", "--reference", "sparsmap", code=2)
    assert "--reference: no searcher 'sparsmap'; did you mean 'sparsemap'?" in done.stderr
    done = compare("study.toml", "--out", "out", "--reference", "mobile")
    assert "A ratio is over mobile" in done.stdout  # the list that has it is compared


def test_one_searcher_cannot_be_compared():
    Path("study.toml").write_text(STUDY.replace('"random", ', "").replace('"cloud", ', ""))
    done = compare("study.toml", "--out", "out", code=2)
    assert "needs two searchers, formats, spaces or hardware or more, the study has 1" in done.stderr
    assert not Path("out").exists()


def test_a_format_that_cannot_be_built_is_told_before_anything_runs():
    Path("mine").mkdir()
    Path("mine/odd.toml").write_text('kind = "format"\nname = "odd"\ncompressed = true\nlists = "runs"\nrun_bits = 4\n')
    Path("study.toml").write_text(STUDY + 'formats = [[], ["odd"]]\n')
    done = compare("study.toml", "--out", "out", "--plugin-dir", "mine", code=2)
    assert "odd.toml: run_bits: unknown key" in done.stderr and not Path("out").exists()


def test_json_has_ratios_and_means(out):
    table = json.loads(compare("study.toml", "--out", "out", "--json").stdout)
    assert table["reference"] == "sparsemap"
    assert table["cells"][0]["ratio"]["random"] > 0 and table["means"][-1]["hardware"] == "all"


def cell(workload, costs, hardware="h", seed=0):
    return CellRow({"workload": workload, "hardware": hardware, "seed": seed}, costs)


def test_cells_without_a_valid_design_have_no_ratio_and_are_counted():
    cells = (
        cell("a", {"s": 2.0, "r": 1.0}), cell("b", {"s": 8.0, "r": 1.0}), cell("c", {"s": None, "r": 1.0}),
        cell("d", {"s": 1.0}),
    )  # fmt: skip
    found = Comparison("r", ("r", "s"), cells)
    (mean,) = found.means
    assert (mean.arithmetic, mean.ratio.mean, mean.cells, mean.of) == (5.0, pytest.approx(4.0), 2, 4)
    assert (mean.better, mean.worse) == (2, 0)
    assert "2 of 4" in found.markdown()
    assert found.verdict.endswith("; s has no design in 1 of 3 cells in which r has one.")
    assert found.cells_csv().splitlines()[3:] == ["c,h,0,1.0,,", "d,h,0,,1.0,"]


def test_nothing_valid_at_all_has_no_means():
    found = Comparison("r", ("r", "s"), (cell("a", {"s": None, "r": None}),))
    assert found.means[0].arithmetic is None
    assert "| - " in found.markdown()


def test_an_objective_with_a_division_is_no_path():
    for objective in ("edp / cycles", "2 * edp / cycles", "cycles / 3"):
        Path("study.toml").write_text(
            STUDY.replace(', "small-sparse"', "").replace(', "mobile"', "") + f'objective = "{objective}"\n'
        )
        compare("study.toml", "--out", "out", "--overwrite")
        told = json.loads(Path("out/mm1--cloud--random--seed0/result.json").read_text())
        assert told["objective"] == objective  # not what an earlier objective has left


def test_nor_is_it_one_when_the_study_is_checked():
    Path("study.toml").write_text(STUDY + 'objective = "edp / cycles"\n')
    done = CliRunner().invoke(cli, ["check", "study.toml"])
    assert (done.exit_code, done.stdout) == (0, "study.toml: fine\n"), done.stderr


def test_a_difference_within_what_seeds_differ_by_is_called_noise():
    def costs(ratios):
        return tuple(cell("a", {"own": 10.0, "mine": 10 * ratio}, seed=seed) for seed, ratio in enumerate(ratios))

    (noisy,) = Comparison("own", ("own", "mine"), costs([0.8, 1.1, 0.9])).means
    assert noisy.word == "noise" and noisy.ratio.low < 1 < noisy.ratio.high
    (sure,) = Comparison("own", ("own", "mine"), costs([0.8, 0.81, 0.79])).means
    logs = [math.log(x) for x in (0.8, 0.81, 0.79)]
    half = stats.t.ppf(0.975, 2) * np.std(logs, ddof=1) / math.sqrt(3)
    assert sure.word == "better" and sure.ratio.high == pytest.approx(math.exp(np.mean(logs) + half))
    (single,) = Comparison("own", ("own", "mine"), costs([0.8])).means
    assert (single.word, single.range) == ("one seed", "-")


def test_seeds_that_differ_because_searches_still_improve_are_no_noise():
    rows = [
        {"workload": "w", "hardware": "h", "searcher": searcher, "seed": seed, "edp": edp, "verdict": verdict}
        for searcher, costs, verdict in (("a", (1.0, 1.0, 1.0), "converged"), ("b", (0.8, 1.1, 0.9), "improving"))
        for seed, edp in enumerate(costs)
    ]
    found = comparison_of(rows, "a")
    assert [row.word for row in found.means] == ["not converged"] and "not converged, the seeds" in found.verdict
    for row in rows:
        row["verdict"] = "converged"
    assert [row.word for row in comparison_of(rows, "a").means] == ["noise"]


def test_what_problems_differ_by_is_no_noise():
    cells = [cell(name, {"own": 1.0, "mine": ratio}, seed=seed)
             for name, each in {"a": (0.2, 0.21), "b": (0.9, 0.91)}.items() for seed, ratio in enumerate(each)]  # fmt: skip
    (mean,) = Comparison("own", ("own", "mine"), tuple(cells)).means
    assert mean.word == "better" and mean.ratio.high < 0.5


def test_formats_cost_models_spaces_and_tables_of_hardware_are_axes():
    Path("study.toml").write_text(
        """
kind = "study"
name = "axes"
workloads = ["small-sparse"]
hardware = ["small", { extends = "small", name = "fast", clock = "2 GHz" }]
formats = [[], ["two-level-bitmask"]]
cost_models = ["physical", "timeloop"]
spaces = ["full", "paper"]
seeds = [0, 1]
budget = 40
"""
    )
    done = CliRunner().invoke(cli, ["run", "study.toml", "--out", "out", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found) == 32 and len(list(Path("out").glob("*--seed?"))) == 32
    first = "small-sparse--small--sparsemap--full--two-level-bitmask--physical--seed0"
    space = json.loads(Path("out", first, "result.json").read_text())["identity"]["space"]
    assert space["more"] == {"format": ["two-level-bitmask"]}
    done = compare("study.toml", "--out", "out")
    assert "A ratio is over own" in done.stdout and "of 16 designs use two-level-bitmask" in " ".join(
        done.stdout.split()
    )
    assert re.search(r"use two-level-bitmask, most often in [PQZ] at (DRAM|Buffer)", " ".join(done.stdout.split()))
    table = json.loads(compare("study.toml", "--out", "out", "--by", "hardware", "--json").stdout)
    (row,) = [row for row in table["chosen"] if (row["name"], row["variant"]) == ("two-level-bitmask", "fast")]
    assert 0 < max(row["where"].values()) <= row["designs"]
    assert table["cost"] == "edp_js" and {row["variant"] for row in table["means"]} == {"fast"}
    said = compare("study.toml", "--out", "out", "--by", "cost_model").stdout
    assert re.search(r"timeloop has 0\.\d\dx the EDP of physical .* less\.", said) and "better" not in said
    done = compare("study.toml", "--out", "out", "--by", "spaces", code=2)
    assert "--by: no column of several 'spaces'; did you mean 'space'?" in done.stderr


def test_a_format_that_the_chip_cannot_decode_is_said():
    chip = '[units.formats]\nP = ["bitmask"]\n[units.mechanisms]\nMAC = ["skip-both"]\n'
    Path("chip.toml").write_text(f'kind = "hardware"\nname = "chip"\nextends = "edge"\n{chip}')
    text = 'kind = "study"\nname = "few"\nworkloads = ["mm1"]\nhardware = ["chip.toml"]\nbudget = 20\n'
    for key, other, where in (("formats", "run-length", "formats"), ("mechanisms", "skip-all", "mechanisms")):
        Path("study.toml").write_text(f'{text}{key} = [[], ["{other}"]]\n')
        done = compare("study.toml", "--out", key, code=2)
        assert f"chip.toml: units.{where}: have no '{other}', which space 'full' is to choose from" in done.stderr


def test_a_format_that_is_not_there_is_said_before_anything_runs():
    Path("study.toml").write_text(STUDY + 'formats = [[], ["bitmasc"]]\n')
    done = CliRunner().invoke(cli, ["check", "study.toml"])
    assert "formats[1][0]: no format 'bitmasc'; did you mean 'bitmask'?" in done.output


def test_a_comparison_with_failed_cells_does_not_take_the_place_of_a_complete_one(tmp_path):
    rows = [{"workload": "a", "hardware": "h", "searcher": name, "seed": 0, "edp": 2.0} for name in ("r", "s")]
    comparison_of(rows).write(tmp_path)
    before = (tmp_path / "comparison.csv").read_text()
    comparison_of([rows[0], rows[1] | {"edp": None}]).write(tmp_path, partial=True)
    assert (tmp_path / "comparison.csv").read_text() == before and (tmp_path / "partial/comparison.csv").exists()
    comparison_of(rows).write(tmp_path)
    assert not (tmp_path / "partial").exists()


def divided(ratios, **more):
    """A comparison of cells with these ratios by workload, and seeds."""
    return [
        {"workload": name, "hardware": "h", "searcher": "s", "formats": formats, "seed": seed, "edp": cost, **more}
        for name, each in ratios.items()
        for seed, ratio in enumerate(each)
        for formats, cost in (("own", 10.0), ("mine", 10.0 * ratio))
    ]


def test_means_are_of_any_axis_and_the_verdict_names_the_values_that_disagree():
    ratios = {"dense": (1.06, 1.05, 1.07), "middle": (0.8, 1.25, 1.0), "thin": (0.95, 0.94, 0.95)}
    found = comparison_of(divided(ratios), by="workload")
    assert (found.by, found.over, [row.group for row in found.means]) == ("formats", "workload", [*ratios, "all"])
    assert [row.word for row in found.means] == ["worse", "noise", "better", "noise"]
    assert "; but by workload: dense 1.06x (worse), thin 0.95x (better)" in found.verdict
    assert found.verdict == comparison_of(divided(ratios)).verdict
    assert found.mean_rows()[0][0] == "workload" and found.to_dict()["means"][2]["workload"] == "thin"
    both = comparison_of(divided(ratios) + divided(ratios, hardware="g"), by="formats, workload,hardware")
    assert [row.group for row in both.means][:2] == ["dense, h", "middle, h"] and len(both.means) == 7
    assert "but by" not in comparison_of(divided({"thin": (0.9, 0.91), "dense": (0.9, 0.89)})).verdict
    with pytest.raises(SearchError, match="--by: no column of several 'seeds'; known: formats, workload"):
        comparison_of(divided(ratios), by="seeds")


def test_a_value_that_chance_alone_may_part_from_the_others_is_not_named():
    ratios = {f"w{i}": (0.8, 1.25, 1.1) for i in range(20)} | {"lucky": (0.95, 0.955, 0.965)}
    found = comparison_of(divided(ratios), by="workload")
    assert found.means[-2].word == "better" and "but by" not in found.verdict


def test_a_result_below_its_proven_bound_has_no_verdict_and_every_table_says_so(tmp_path):
    rows = divided({"a": (0.8, 0.8), "b": (0.8, 0.8)})
    rows[-1]["broken_bound"] = 0.9
    found = comparison_of(rows)
    assert found.broken == 1 and found.means[-1].word == "broken bound"
    assert (
        found.verdict
        == "no verdict on mine: below its proven bound is mine in 1 of 4 cells; do not trust these numbers."
    )
    found.write(tmp_path)
    assert [row["broken_bound"] for row in read_csv(tmp_path / "comparison.csv")] == ["", "", "", "mine"]
    assert [row["word"] for row in read_csv(tmp_path / "comparison-means.csv")] == ["broken bound"]
    text = (tmp_path / "comparison.md").read_text()
    assert text.count("8 broken bound") == 1 and "better |" not in text.replace("own better", "")
    by_workload = comparison_of(rows, by="workload").means
    assert [row.word for row in by_workload] == ["better", "broken bound", "broken bound"]


def test_the_page_has_means_by_the_axis_that_disagrees(tmp_path):
    (tmp_path / "out").mkdir()
    rows = divided({"dense": (1.06, 1.05, 1.07), "thin": (0.95, 0.94, 0.95)})
    basic = {"energy_pj": 1.0, "cycles": 1.0, "valid_fraction": 1.0}
    (tmp_path / "out/table.csv").write_text(csv_text([row | basic for row in rows]))
    page = page_of([tmp_path / "out"], load())
    assert "; but by workload: " in page.verdict[0]
    assert [block.head[0] for block in page.sections[0].blocks[:2]] == ["hardware", "workload"]
    (axes,) = figure_of(tmp_path / "out", "ratios", by="workload").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["dense", "thin", "all"]


def test_a_variant_that_no_design_uses_is_neither_better_nor_worse():
    table = [
        {"workload": "mm1", "hardware": "edge", "seed": seed, "formats": of, "edp": edp}
        for of, costs in {"own": (1.0, 1.01, 0.99), "mine": (0.7, 0.71, 0.69)}.items()
        for seed, edp in enumerate(costs)
    ]
    without = [{"format": {"bitmask": ["P at GLB"]}}] * 6
    (mean,) = comparison_of(table, chosen=without).means
    assert (mean.word, mean.uses) == ("not used", 0) and mean.to_dict("hardware")["uses"] == 0
    assert "no design uses it" in comparison_of(table, chosen=without).verdict
    used = [*without[:3], {"format": {"mine": ["Q at GLB"]}}, *without[:2]]
    found = comparison_of(table, chosen=used)
    assert (found.means[0].word, found.means[0].uses) == ("better", 1)
    assert [row[-1] for row in found.mean_rows()] == ["use it", "1"]
    (known,) = comparison_of(table).means  # of results that do not say what they use
    assert (known.word, known.uses) == ("better", None) and "use it" not in comparison_of(table).mean_rows()[0]
    assert known.to_dict("hardware")["reference_worse"] == 3  # which says of whom


def test_many_intervals_come_with_a_word_on_chance():
    cells = [cell(name, {"own": 1.0, "mine": x}, seed=seed) for name in "abcdef" for seed, x in enumerate((0.9, 1.1))]
    found = Comparison("own", ("own", "mine"), tuple(cells), over="workload")
    assert "The 7 intervals are not corrected for their number." in found.about
    assert "by chance" not in attrs.evolve(found, over="hardware").about


def test_comparisons_by_other_columns_have_files_of_their_own(out):
    before, command = Path("out/comparison.csv").read_text(), Path("out/command.txt").read_text()
    compare("study.toml", "--out", "out", "--by", "hardware, workload", "--quiet")
    assert Path("out/comparison.csv").read_text() == before and Path("out/command.txt").read_text() == command
    assert list(rows("comparison-by-hardware-workload.csv")[0])[-1] == "ratio:mobile"
    compare("study.toml", "--out", "out", "--quiet")  # all of it is the study's


def test_every_comparison_of_hardware_names_technologies_and_warns_where_they_differ():
    """The same chip twice, once in another technology: no verdict on chips without a word on what counts them."""
    chip = {
        "levels": [{"name": "DRAM", "class": "dram"}, {"name": "GLB", "capacity": "64 KB"}],
        "compute": {"name": "MAC"},
    }
    for name, more in (("a", {}), ("b", {}), ("c", {"technology": "12nm"})):
        Path(f"{name}.toml").write_text(toml_text.dumps({"kind": "hardware", "name": name, **chip, **more}))
    study = {"kind": "study", "name": "chips", "workloads": ["matmul-32x64x48"], "searchers": ["random"], "budget": 20}
    for chips, said in (
        (["a.toml", "b.toml"], "All in the technology 12nm-recommended."),
        (
            ["a.toml", "c.toml"],
            "Warning: technologies differ: a in 12nm-recommended; c in 12nm. Ratios compare technologies as well as chips.",
        ),
    ):
        Path("chips.toml").write_text(toml_text.dumps({**study, "hardware": chips}))
        shown = " ".join(compare("chips.toml", "--out", f"out-{len(said)}").stdout.split())
        assert said in shown


def test_a_bound_above_the_other_cost_proves_a_cell():
    """Of two workloads, b's bound (30 / 1.2) is above a's cost in one, and below in the other."""
    table = [
        {"workload": name, "hardware": "edge", "searcher": searcher, "seed": 0, "edp": edp, "score": edp, "gap": gap}
        for name, rows in (("one", (20.0, 30.0)), ("two", (28.0, 30.0)))
        for searcher, edp, gap in zip("ab", rows, (1.1, 1.2), strict=True)
    ]
    found = comparison_of(table, reference="a")
    (row,) = found.means
    assert row.proven == 1 and "; proven in 1 of 2 cells" in found.verdict
    assert found.mean_rows()[0][-1] == "proven" and found.to_dict()["means"][0]["proven"] == 1


def test_a_proof_in_every_cell_is_no_noise_even_with_one_seed():
    table = [
        {"workload": "one", "hardware": "edge", "searcher": searcher, "seed": 0, "edp": edp, "score": edp, "gap": 1.1}
        for searcher, edp in (("a", 20.0), ("b", 30.0))
    ]
    found = comparison_of(table, reference="a")
    assert found.verdict.startswith("b has 1.50x the EDP of a: worse, proven by at least 1.36x.")
    assert found.to_dict()["means"][0]["proven_factor"] == pytest.approx(30 / 1.1 / 20)
    assert comparison_of(table, reference="b").means[0].word == "better"


def test_a_ratio_of_searches_that_still_improve_is_so_far_and_names_a_budget():
    table = [
        {"workload": "one", "hardware": "edge", "searcher": searcher, "seed": seed, "edp": edp + seed, "score": edp + seed,
         "evaluations": 1000, "verdict": state}
        for searcher, edp, state in (("a", 20.0, "converged"), ("b", 40.0, "improving")) for seed in (0, 1, 2)
    ]  # fmt: skip
    found = comparison_of(table, reference="a")
    assert ": worse so far; searches still improve, try a budget of 4,000." in found.verdict
    assert found.means[0].to_dict("x")["word"] == "worse so far" and "worse so far" in found.mean_rows()[1]
    settled = comparison_of([{**row, "verdict": "converged"} for row in table], reference="a")
    assert ": worse." in settled.verdict


def test_a_comparison_is_markdown_in_notebooks_and_latex_in_papers():
    table = [
        {"workload": name, "hardware": "edge", "searcher": searcher, "seed": 0, "edp": edp, "score": edp, "gap": 1.1}
        for name in ("mm_1", "mm_2") for searcher, edp in (("a", 20.0), ("b", 3e8))
    ]  # fmt: skip
    found = comparison_of(table, reference="a")
    text = found.to_latex()
    assert found._repr_markdown_() == found.markdown()
    assert text.count(r"\toprule") == text.count(r"\end{table}") == 2 and r"mm\_1" in text
    assert r"\caption{b has" in text and r"& $3\times10^{8}$" in text
