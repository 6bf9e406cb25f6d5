"""The page of a chip that was designed for networks."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from sparsemap_plugins.chips.result import edp_js
from sparsemap_plugins.chips.search import DesignTask, designed
from sparsemap_plugins.reports import page
from sparsemap_plugins.reports.charts import Mark, roofs
from sparsemap_plugins.reports.page import chip
from sparsemap_plugins.reports.page.chip import boxes_of

from sparsemap.files import percent, times
from sparsemap.pieces.loading import load
from sparsemap.spec.units import format_energy

HARDWARE = """
kind = "hardware"
name = "tiny-space"
extends = "small"
technology = "12nm-recommended"
levels.Buffer.capacity = { choices = ["64 words", "128 words"] }
"""
NETWORK = """
kind = "network"
name = "one"
layers = [{ name = "a", workload = "small-sparse", repeat = 3 }]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("chip")
    (place / "chip.toml").write_text(HARDWARE)
    (place / "one.toml").write_text(NETWORK)
    names = {"networks": (str(place / "one.toml"),), "hardware": str(place / "chip.toml"), "out": place / "out"}
    designed(DesignTask(**names, space="small", budget=3, layer_budget=20, constraints=("area_mm2 <= 7.0",)))
    return place / "out"


def test_the_page_has_what_an_architect_asks_for(folder):
    found = json.loads((folder / "design.json").read_text())
    made = page.page_of([folder], load())
    titles = [section.title for section in made.sections]
    assert titles[:2] == ["Floor plan", "Chips tried, and layers on this one"] and "Layers" in titles
    floor, tried, roofline = (
        chart for section in made.sections[:2] for chart in section.blocks if hasattr(chart, "marks")
    )
    ratio = found["edp_js"] / found["platform"]["edp_js"]
    assert made.tiles[0].note == f"{times(ratio)} of tiny-space"
    assert f"{percent(1 - ratio, 1)} less EDP than tiny-space with the same units for all layers" in made.verdict[0]
    assert made.verdict[1] == "0 of 1 designs were executed on sampled tensors."  # it has too few products
    buffer = found["hardware"]["levels"][1]
    assert f"{buffer['name']} of {buffer['capacity']}" in made.verdict[0]
    assert {mark.part: mark.value for mark in floor.marks} == found["parts_mm2"]
    assert found["parts_mm2"]["DRAM interface"] == 0.57 and made.sections[0].blocks[1].rows[0][-2].value == 0.57
    patches = floor.draw(6.0).axes[0].patches
    assert len({patch.get_facecolor() for patch in patches}) == len(patches) == len(floor.marks)
    assert math.fsum(found["parts_mm2"].values()) == pytest.approx(found["area_mm2"])
    assert len(tried.marks) == found["valid"] + 2  # and the given hardware
    assert len(roofline.marks) == len(json.loads((folder / "one" / "network.json").read_text())["fused"]["layers"]) - 2
    assert made.lines[1].endswith("had to keep area_mm2 <= 7.0.")
    parts = made.sections[0].blocks[1].rows[-1][-1]
    assert all(", ".join(names) in parts for names in found["hardware"]["units"]["formats"].values())
    text = page.html(made)
    assert "A chip for one" in text and "http" not in text.split("</style>")[1].replace("http://www.w3.org", "")


def test_the_page_of_a_planned_network_opens_with_what_the_plan_takes(folder):
    plan = json.loads((folder / "one" / "network.json").read_text())["fused"]
    made = page.page_of([folder / "one"], load())
    energies = [format_energy(row["energy_pj"]) for row in (plan, plan["layer_by_layer"])]
    assert made.verdict[0].startswith("With tensors on chip one takes ")
    assert all(energy in made.verdict[0] for energy in energies)


def test_the_roofline_names_the_layers_that_move_nothing_outside(folder, monkeypatch):
    monkeypatch.setattr(chip, "traffic", lambda outcome, level: (0.0, 4.0))
    made = page.page_of([folder], load())
    assert made.sections[1].text.endswith("Without a word of DRAM: a#1.")


def test_what_executed_designs_need_is_in_the_verdict(folder):
    found = json.loads((folder / "design.json").read_text())
    needs = {"executed": {"designs": 2, "of": 3, "energy_pj": 1.01, "cycles": 0.99}}
    _, told, *_ = chip._verdict(found | needs)
    assert told.startswith("2 of 3 designs ") and told.endswith(
        "need 1.010 of the energy and 0.990 of the cycles claimed."
    )


def test_the_page_of_a_chip_judged_by_its_worst_network_names_it_and_draws_its_ratio(folder, tmp_path):
    (tmp_path / "two.toml").write_text(NETWORK.replace('"one"', '"two"').replace("small-sparse", "small-matmul"))
    networks = (str(folder.parent / "one.toml"), str(tmp_path / "two.toml"))
    names = {"networks": networks, "hardware": str(folder.parent / "chip.toml"), "out": tmp_path / "out"}
    designed(DesignTask(**names, space="small", budget=3, layer_budget=20, judge="worst"))
    found, made = json.loads((tmp_path / "out" / "design.json").read_text()), page.page_of([tmp_path / "out"], load())
    name = max(found["losses"], key=found["losses"].get)
    assert made.verdict[1].startswith(
        f"The largest ratio is that of {name}: {times(found['worst'])} its edp_js on tiny-space, "
    )
    assert made.lines[1].startswith("Chips were judged by plans with tensors on chip, by the network that loses most")
    table = next(section for section in made.sections if section.title == "Networks").blocks[0]
    assert [row[-2] for row in table.rows] == [row["own"]["name"] for row in found["by_network"]]
    assert [row[-3].value for row in table.rows] == [row["own"]["over_own"] for row in found["by_network"]]
    chart = made.sections[1].blocks[0]
    assert {mark.part: mark.at for mark in chart.marks[-2:]} == {
        "given": found["platform"]["worst"],
        "chosen": found["worst"],
    }
    assert chart.draw(6.0).axes[0].get_ylabel() == "worst network over given hardware"


def test_a_floor_plan_has_the_areas_of_its_parts():
    areas = [5.0, 3.0, 1.0, 0.5, 0.5]
    boxes = boxes_of(areas, (0.0, 0.0, 2.0, 5.0))
    assert [width * height for _, _, width, height in boxes] == pytest.approx(areas)
    assert math.fsum(width * height for _, _, width, height in boxes) == pytest.approx(10.0)
    for i, (left, bottom, width, height) in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart = left + width <= other[0] + 1e-9 or other[0] + other[2] <= left + 1e-9
            assert apart or bottom + height <= other[1] + 1e-9 or other[1] + other[3] <= bottom + 1e-9


def test_points_above_the_roof_are_within_the_axes(folder):
    chart = roofs([Mark(40.0, at=9000.0), Mark(2.0, at=5.0)], 64.0, {"": 4.0}, "x", "y", [30.0, 30.0])
    low, high = chart.draw(4.0).axes[0].get_ylim()
    assert low < 5.0 and high > 9000.0 and chart.title


def test_the_front_has_the_chip_as_its_layers_were_searched_in_the_end(folder, tmp_path):
    names = {"networks": (str(folder.parent / "one.toml"),), "hardware": str(folder.parent / "chip.toml")}
    result = designed(DesignTask(**names, out=tmp_path, budget=2, layer_budget=10))
    assert result.edp_js < edp_js(result.searched)
    assert result.front[-1] == {**result.final, "set": result.searched["set"]}
    rows = list(csv.DictReader((tmp_path / "front.csv").open()))
    assert (float(rows[-1]["edp_js"]), rows[-1]["levels.Buffer.capacity"]) == (result.edp_js, "64 words")
    steps = chip._tried(json.loads((tmp_path / "design.json").read_text())).draw(6.0).axes[0].lines[0]
    assert steps.get_ydata()[-1] == result.edp_js and len(steps.get_ydata()) == len(rows)
