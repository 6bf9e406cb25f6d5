"""The design page's cases: all designs of every layer, tried by the cost model, and the plan of the join."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import residency_layers as layers

from sparsemap.study.join import JoinedPlan
from sparsemap.study.packets import Place

CASES = [json.loads(line) for line in Path(__file__).with_name("residency-cases.jsonl").read_text().splitlines()]
WHOLE = [case for case in CASES if case["kind"] == "layers"]
DENSE = [case for case in WHOLE if case["formats"] == ["U"]]


def agrees(found: JoinedPlan | None, answer: dict) -> None:
    assert found is not None
    assert (found.energy_pj, found.cycles) == (answer["energy"], answer["cycles"])
    assert found.energy_pj * found.cycles == answer["edp"]
    assert {name: where(found.places[name]) for name in answer["edges"]} == {
        name: edge["where"] for name, edge in answer["edges"].items()
    }


def where(place: Place) -> str:
    return "keep" if place.slides else place.level


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case["id"])
def test_layer_by_layer_in_dram(case: dict) -> None:
    agrees(layers.plan_of(case, whole=False, sliding=False), case["answer"]["dense_dram"])


@pytest.mark.parametrize("case", DENSE, ids=lambda case: case["id"])
def test_whole_tensors_on_chip(case: dict) -> None:
    agrees(layers.plan_of(case, sliding=False), case["answer"]["dram_or_whole"])


@pytest.mark.parametrize("case", DENSE, ids=lambda case: case["id"])
def test_tensors_on_chip_as_a_whole_or_sliding_by(case: dict) -> None:
    agrees(layers.plan_of(case), case["answer"]["best"])
