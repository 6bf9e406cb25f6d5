"""The studies of the paper's results, with tiny budgets, and what their tables say."""

import csv
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.papers.commands import ROOMS
from sparsemap_plugins.papers.rows import Rows, geometric_mean, number
from sparsemap_plugins.papers.runs import StudyRun, at, curve
from sparsemap_plugins.papers.sparsemap import fig_7, quality, table_iv

from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.spec import toml_text

SMALL = {
    "table-iv": ("--workload", "mm1", "--seeds", "1", "--scale", "0.005"),
    "table-iv-16gbps": ("--workload", "conv1", "--seeds", "1", "--scale", "0.005"),
    "quality": ("--workload", "mm12", "--seeds", "1", "--scale", "0.005"),
    "optimum": ("--workload", "small-conv", "--seeds", "1", "--scale", "0.02"),
    "best-known": ("--workload", "mm12", "--seeds", "1", "--scale", "0.0005"),
    "fig-2": (),
    "fig-7": ("--scale", "0.01"),
    "fig-10": ("--seeds", "2", "--scale", "0.005"),
    "fig-18": ("--seeds", "2", "--scale", "0.005"),
    "fig-17": ("--workload", "conv1", "--scale", "0.005"),
}
SLOW = ("fig-17", "fig-18")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in ROOMS["sparsemap"]["pages"]],
)
def test_a_command_writes_a_table_and_a_figure(name, tmp_path, monkeypatch):
    if name == "fig-17":
        pytest.importorskip("stable_baselines3")
        pytest.importorskip("nevergrad")
    if name == "optimum":  # so few designs that all are tried in no time
        tiny = {"name": "small-conv", "einsum": "Z[k, p] = P[c, p + r] * Q[k, c, r]", "density": {"P": 0.5, "Q": 0.25}}
        tiny |= {"kind": "workload", "override": True, "dims": {"k": 2, "c": 2, "p": 2, "r": 2}}
        toml_text.write(tmp_path / "tiny" / "workload.toml", tiny)
        monkeypatch.setenv("SPARSEMAP_PLUGIN_DIRS", str(tmp_path / "tiny"))
    figures = has_matplotlib()
    args = ["paper", name, "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work"), *SMALL[name]]
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 0, done.output
    wrote = {path.name for path in (tmp_path / "out").iterdir()}
    assert wrote == {f"{name}.{ending}" for ending in ("md", "csv", *(("png", "svg") if figures else ()))}
    text = (tmp_path / "out" / f"{name}.md").read_text("utf-8")
    assert text.startswith("# ") and f"sparsemap paper {name}" in text
    assert not {"nan", "inf"} & set(text.replace("|", " ").replace("*", " ").split())
    table = tmp_path / "out" / f"{name}.csv"
    assert list(csv.DictReader(table.read_text("utf-8").splitlines()))
    if name == "table-iv":  # again: nothing is searched, and nothing changes
        rows, again = table.read_bytes(), CliRunner().invoke(cli, args)
        assert again.exit_code == 0 and "9 kept" in again.output
        assert (tmp_path / "out" / f"{name}.md").read_text("utf-8") == text and table.read_bytes() == rows
    if figures:
        ElementTree.parse(tmp_path / "out" / f"{name}.svg")


def has_matplotlib():
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def test_a_workload_that_the_study_lacks_is_named(tmp_path):
    done = CliRunner().invoke(cli, ["paper", "fig-10", "--workload", "conv99", "--work", str(tmp_path)])
    assert done.exit_code == 2
    assert "study 'fig-10' has no conv99" in done.output


def test_searches_that_find_nothing_valid_say_how_to_go_on(tmp_path):
    command = ["paper", "fig-10", "--scale", "0.001", "--seeds", "1", "--work", str(tmp_path), "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, command)
    assert (
        done.exit_code == 2
        and "found a valid design among" in done.output
        and "a larger --scale has more" in done.output
    )


def test_the_printed_table_has_the_averages_that_the_paper_states():
    paper = table_iv.printed()
    assert len(paper) == 84
    for (baseline, platform), claim in table_iv.CLAIMS.items():
        ratios = [row[baseline] / row["sparsemap"] for (_, where), row in paper.items() if where == platform]
        assert sum(ratios) / len(ratios) == pytest.approx(claim, rel=0.02)


def test_every_study_of_the_paper_runs_what_it_says():
    registry = load()
    study = registry.get("study", "table-iv")
    assert (len(study.workloads), len(study.hardware), study.budget) == (28, 3, 20_000)
    assert set(study.spaces) == {"sage-like", "random-pruned"} == set(table_iv.BASELINES)
    assert registry.get("study", "table-iv-16gbps").spaces == study.spaces
    assert len(registry.get("study", "fig-17").workloads) == 13


def made(workload, edp, searcher="sparsemap", seed=0, history=None, **result):
    run = StudyRun(workload, "edge", searcher, seed, None)
    plain = {"edp": edp, "budget": 100, "bound": 1.0, "gap": edp, "energy_pj": edp, "cycles": 1.0}
    vars(run)["result"] = plain | result
    vars(run)["history"] = history
    return run


def test_ratios_leave_out_what_found_nothing():
    runs = [made("mm1", 2.0), made("mm1", 8.0, "sage-like"), made("mm1", math.inf, "random-pruned")]
    runs += [made("mm2", 1.0), made("mm2", 16.0, "sage-like"), made("mm2", 3.0, "random-pruned")]
    sage, mapper = Rows(table_iv.pairs(table_iv.cells(runs))).by("baseline").values()
    ratios = sage.ratio.finite
    assert (ratios.mean, ratios.geometric, ratios.size) == (pytest.approx(10.0), pytest.approx(8.0), 2)
    ratios = mapper.ratio.finite
    assert (ratios.mean, ratios.size, mapper.none.total) == (pytest.approx(3.0), 1, 1)


def test_the_best_known_of_a_cell_is_the_lowest_and_says_who_found_it():
    known = quality.best_of(quality.of_runs([made("mm1", 3.0), made("mm1", 2.0, "sparsemap-paper", 4)]))
    best = known["mm1", "edge"]
    assert (best.edp, best.searcher, best.seed, best.gap) == (2.0, "sparsemap-paper", 4, 2.0)
    assert quality.over_best(made("mm1", 3.0), known) == 1.5
    assert math.isnan(quality.over_best(made("mm1", math.inf), known))


def test_curves_know_when_a_design_was_found():
    history = {"evaluations": np.array([10.0, 20, 30]), "best_score": np.array([math.inf, 5, 2])}
    run = made("mm1", 2.0, history=history)
    assert run.best_at(np.array([5, 10, 25, 30])).tolist()[2:] == [5, 2]
    assert np.isnan(run.best_at(np.array([5, 10]))).all()
    assert (run.designs_to(4), run.designs_to(1)) == (30, math.inf)
    assert at(curve("x", [run, run, run]), 30) == 2


def test_the_first_component_is_the_direction_of_most_variance():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=500)
    genes = np.stack([hidden, -hidden + 0.1 * rng.normal(size=500), rng.normal(size=500)], axis=1)
    found, share = fig_7.first_component(genes, 400)
    assert abs(np.corrcoef(found, hidden)[0, 1]) > 0.99
    assert 0.6 < share < 0.7


def test_numbers_as_texts():
    assert (number(1.234e12), number(math.inf)) == ("1.23e12", "-")
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert math.isnan(geometric_mean([]))


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsemap_plugins.papers.pages.import_module", lambda *name: pytest.fail("it was run"))
    (tmp_path / "file").touch()
    done = CliRunner().invoke(cli, ["paper", "fig-10", "--out", str(tmp_path / "file/below")])
    assert done.exit_code == 2 and "Not a directory" in done.stderr
