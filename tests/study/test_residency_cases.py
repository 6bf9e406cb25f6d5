"""The design page's cases: all designs of every layer, tried by the cost model, and the plan of the join."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import residency_layers as layers

from sparsemap.study.join import JoinedPlan, joined

CASES = [json.loads(line) for line in Path(__file__).with_name("residency-cases.jsonl").read_text().splitlines()]
WHOLE = [case for case in CASES if case["kind"] == "layers"]


def agrees(found: JoinedPlan | None, answer: dict) -> None:
    assert found is not None
    assert (found.energy_pj, found.cycles) == (answer["energy"], answer["cycles"])
    assert found.energy_pj * found.cycles == answer["edp"]


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case["id"])
def test_layer_by_layer_in_dram(case: dict) -> None:
    agrees(joined(layers.steps_of(case, (layers.DRAM,)), case["machine"]["cap"]), case["answer"]["dense_dram"])


@pytest.mark.parametrize("case", [case for case in WHOLE if case["formats"] == ["U"]], ids=lambda case: case["id"])
def test_whole_tensors_on_chip(case: dict) -> None:
    found, answer = joined(layers.steps_of(case), case["machine"]["cap"]), case["answer"]["dram_or_whole"]
    agrees(found, answer)
    assert found is not None
    assert {name: found.places[name] for name in answer["edges"]} == {
        name: edge["where"] for name, edge in answer["edges"].items()
    }
