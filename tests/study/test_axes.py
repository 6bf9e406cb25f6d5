"""Factorial studies: `axes` over any key of workload, hardware or space, with the effect of every value and pair."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports.page import page_of
from sparsemap_plugins.reports.response import numbers_of, responses

from sparsemap.cli.main import cli
from sparsemap.errors import SparseMapError
from sparsemap.pieces.loading import load
from sparsemap.study.cells import axes_in, cells_of, short_names
from sparsemap.study.effects import best_text, effects_of, effects_text

REGISTRY = load()
AXES: dict[str, Any] = {
    "hardware.levels.GLB.capacity": ["64 KB", "256 KB"],
    "workload.density.Q": [0.1, 0.5],
    "format": {
        "bitmask": {"space.formats.candidates": ["uncompressed", "bitmask"]},
        "any": {"space.formats.candidates": ["uncompressed", "bitmask", "run-length"]},
    },
}
STUDY = """
kind = "study"
name = "factors"
workloads = ["mm1"]
hardware = ["edge-16gbps"]
seeds = [0, 1]
budget = 40
out = "out"
[axes]
"hardware.levels.GLB.capacity" = ["64 KB", "256 KB"]
"workload.density.Q" = [0.1, 0.5]
"""


def study(**more: Any) -> Any:
    table = {"workloads": ["mm1"], "hardware": ["edge"], "budget": 20, "axes": AXES} | more
    return REGISTRY.build("study", {"name": "factors", **table})


def test_cells_cross_all_axes_and_change_the_keys_that_axes_name():
    cells = cells_of(study(), Path("out"))
    assert len(cells) == 2 * 2 * 2
    names = [cell.axes for cell in cells]
    assert names[0] == {"GLB.capacity": "64-KB", "density.Q": "0.1", "format": "bitmask"}
    assert axes_in(cells[0].names) == ("GLB.capacity", "density.Q", "format")
    assert len({cell.folder for cell in cells}) == 8
    last = cells[-1].parts
    assert last["workload"] == {"extends": "mm1", "name": "mm1", "density": {"Q": 0.5}}
    assert last["hardware"] == {"extends": "edge", "name": "edge", "levels": {"GLB": {"capacity": "256 KB"}}}
    assert last["space"]["extends"] == "full" and "run-length" in last["space"]["formats"]["candidates"]


def test_short_names_stay_apart():
    axes = ["hardware.levels.GLB.capacity", "workload.density.Q", "space.density.Q", "hardware.clock"]
    assert short_names(axes) == ["GLB.capacity", "workload.density.Q", "space.density.Q", "clock"]


def test_effects_are_the_ratios_that_costs_were_made_of():
    """Costs of 8 for x = b, 3 for y = d, and 1.5 where both meet; seeds differ by a few percent, alike in all cells."""
    rows = []
    for workload, x, y, seed in itertools.product(("one", "two"), "ab", "cd", (0, 1, 2)):
        edp = 100.0 * (7 if workload == "two" else 1) * 1.02**seed
        edp *= {"a": 1.0, "b": 8.0}[x] * {"c": 1.0, "d": 3.0}[y] * (1.5 if (x, y) == ("b", "d") else 1.0)
        row = {"workload": workload, "hardware": "edge", "searcher": "s", "x": x, "y": y, "seed": seed}
        rows.append(row | {"edp": edp, "score": edp})
    found = {effect.values: effect.ratio.mean for effect in effects_of(rows)}
    assert found[("b",)] == pytest.approx(8 * math.sqrt(1.5)) and found[("d",)] == pytest.approx(3 * math.sqrt(1.5))
    assert found["b", "d"] == pytest.approx(1.5)
    assert [effect.axes for effect in effects_of(rows)] == [("x",), ("y",), ("x", "y")]  # the largest first
    assert (
        best_text(rows, "edp") == "Best is x a, y c; x a, y d has 3.00x its EDP (3.00x to 3.00x at 95 %, 6 cells each)."
    )
    text = effects_text(effects_of(rows), "edp")
    assert text.startswith("Effects on EDP, the largest first: x: a is best, 0.10x of b")
    assert text.endswith("Together, b over a and d over c have 1.50x the product of their single effects from there.")
    assert effects_of([row for row in rows if row["y"] == "c"]) == []  # one axis has no pair


def made_of(costs: dict[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Rows of a study whose costs are those of the values x and y; seeds differ by a few percent, alike in all cells."""
    known = ("workload", "hardware", "searcher", "x", "y", "seed")
    names = ((("one", "edge", "s"), pair, seed) for pair in costs for seed in (0, 1, 2))
    rows = [dict(zip(known, (*first, *pair, seed), strict=True)) for first, pair, seed in names]
    return [row | {"edp": (edp := costs[row["x"], row["y"]] * 1.02 ** row["seed"]), "score": edp} for row in rows]


def test_a_response_has_a_line_for_each_value_of_the_axis_that_changes_it():
    """With d the cost falls to a half at 128 KB and to a quarter at 1 MB; with c it stays."""
    falls = {"1-MB": 0.25, "64-KB": 1.0, "128-KB": 0.5}
    costs = {(x, y): falls[x] if y == "d" else 3.0 for x in falls for y in "cd"}
    (chart,) = responses(made_of(costs))
    assert chart.title == "x" and {mark.part for mark in chart.marks} == {"c", "d"}
    line = [(mark.value / 8192, mark.at) for mark in chart.marks if mark.part == "d"]
    assert line == [(64, 1.0), (128, pytest.approx(0.5)), (1024, pytest.approx(0.25))]
    assert all(mark.at == pytest.approx(1.0) for mark in chart.marks if mark.part == "c")
    (alike,) = responses(made_of({pair: costs[pair[0], "d"] for pair in costs}))
    assert [mark.part for mark in alike.marks] == [""] * 3 and alike.marks[-1].at == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["0.5", "0.1"], {"0.1": 0.1, "0.5": 0.5}), (["2-GHz", "1-GHz"], {"1-GHz": 1, "2-GHz": 2}),
        (["1-GHz", "900-MHz"], {}), (["a", "1"], {}), (["64-KB", "32-words"], {}), (["1", "1.0"], {}),
    ],
)  # fmt: skip
def test_values_of_an_axis_are_numbers_if_they_have_one_unit(values, numbers):
    assert numbers_of(values) == numbers and [*numbers_of(values)] == [*numbers]


def test_a_command_answers_which_by_how_much_and_how_certain(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    done = CliRunner().invoke(cli, ["compare", "study.toml", "--json"])
    assert done.exit_code == 0, done.output
    effects = json.loads(done.stdout)["effects"]
    assert effects[0]["axes"] == ["density.Q"]  # five times the work
    assert {tuple(effect["axes"]) for effect in effects} >= {("GLB.capacity",), ("GLB.capacity", "density.Q")}
    assert "workload,hardware,searcher,GLB.capacity,density.Q,seed," in Path("out/table.csv").read_text()
    page = page_of([Path("out")], REGISTRY)
    assert page.verdict[0].startswith("Effects on EDP, the largest first: density.Q: 0.1 is best")
    assert [section.title for section in page.sections[:2]] == ["Effects", "Responses"]
    drawn = CliRunner().invoke(cli, ["plot", "out", "--kind", "response", "--by", "density.Q", "-o", "response.png"])
    assert drawn.exit_code == 0 and Path("response.png").stat().st_size > 10_000
    wrong = CliRunner().invoke(cli, ["plot", "out", "--kind", "response", "--by", "densty.Q", "-o", "response.png"])
    assert "no axis of numbers 'densty.Q'; did you mean 'density.Q'?" in wrong.output
    by = CliRunner().invoke(cli, ["compare", "study.toml", "--by", "density.Q"])
    assert by.exit_code == 0 and "0.5 has" in by.output


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        ({"hardwar.clock": ["1 GHz"]}, "'hardwar.clock': expected a key of workload, hardware, space"),
        ({"hardware": ["edge"]}, "expected a name of letters, digits, points and dashes that no column has"),
        ({"a b": {"x": {"space.seed": 1}}}, "expected a name of letters, digits, points and dashes"),
        ({"hardware.clock": []}, "axes.hardware.clock: has no value, expected at least 1"),
        ({"f": {"x": {"edge": 1}}}, "axes.f.x: 'edge': expected a key of"),
    ],
)
def test_axes_that_change_nothing_are_refused(axes, text):
    with pytest.raises(SparseMapError) as refused:
        study(axes=axes)
    assert text in str(refused.value)


def test_axes_over_workloads_need_workloads():
    with pytest.raises(SparseMapError, match="the study has networks"):
        study(workloads=[], networks=["vgg16"])
