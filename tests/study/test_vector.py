"""A vector unit takes time and energy for the arithmetic of operations, beside their traffic."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sparsemap import SpecError, load_problem, search_network
from sparsemap.pieces.loading import load
from sparsemap.study.fused_result import FusedLayer, FusedResult

LANES, ROWS, COLUMNS = 4, 32, 64
UNIT = {"lanes": LANES, "cycles": {"exponential": 4, "division": 8}, "pj": {"exponential": 3.0, "other": 0.5}}
ATTENTION: dict[str, Any] = {
    "name": "attention",
    "input": [ROWS, 16],
    "layers": [
        {"name": "scores", "type": "linear", "m": ROWS, "k": 16, "n": COLUMNS},
        {"name": "softmax", "type": "softmax"},
        {"name": "context", "type": "linear", "m": ROWS, "k": COLUMNS, "n": 16},
        {"name": "add", "type": "add", "inputs": ["context", "input"]},
        {"name": "out", "type": "linear", "m": ROWS, "k": 16, "n": 16},
    ],
}


def planned(
    vector: dict[str, Any] | None, operations: str = "fused", network: dict[str, Any] = ATTENTION
) -> dict[str, FusedLayer]:
    hardware: dict[str, Any] = {"extends": "mobile", "name": "chip"} | ({"vector": vector} if vector else {})
    found = search_network(network, hardware, 20, 0, fuse=True, operations=operations)
    assert isinstance(found, FusedResult) and found.complete
    return {row.layer: row for row in found.rows}


@pytest.fixture(scope="module")
def without() -> dict[str, FusedLayer]:
    return planned(None)


@pytest.fixture(scope="module")
def slow() -> dict[str, FusedLayer]:
    return planned(UNIT)


def test_a_softmax_takes_an_exponential_and_four_steps_a_word_and_a_division_a_row(
    without: dict[str, FusedLayer], slow: dict[str, FusedLayer]
) -> None:
    words = ROWS * COLUMNS
    cycles = math.ceil((words * (4 + 4) + ROWS * 8) / LANES)
    row = slow["softmax"]
    assert row.cycles == cycles > without["softmax"].cycles and row.limit == "vector units"
    assert row.energy_pj == pytest.approx(without["softmax"].energy_pj + words * (3.0 + 4 * 0.5))
    assert row.by_level["levels"][-1]["name"] == "vector" and row.by_level["levels"][-1]["cycles"] == cycles


def test_a_fused_operation_overlaps_with_its_layer(without: dict[str, FusedLayer], slow: dict[str, FusedLayer]) -> None:
    """A sum per word beside the layer before takes the longer of both: the layer counts with its fastest design."""
    busy, layer = math.ceil(ROWS * 16 / LANES), slow["context"]
    assert slow["add"].place == layer.place == "GLB" and 0 < layer.cycles < busy
    together = layer.cycles + slow["add"].cycles
    assert busy <= together <= 1.02 * busy and slow["add"].cycles > without["add"].cycles
    assert slow["add"].energy_pj == pytest.approx(without["add"].energy_pj + ROWS * 16 * 0.5)


def test_a_wide_unit_hides_behind_the_traffic(without: dict[str, FusedLayer]) -> None:
    wide = planned({"lanes": 1_000_000})
    assert {name: row.cycles for name, row in wide.items()} == {name: row.cycles for name, row in without.items()}
    assert math.isclose(wide["softmax"].energy_pj, without["softmax"].energy_pj)


def with_gelu(vector: dict[str, Any] | None, operations: str = "fused") -> dict[str, FusedLayer]:
    layers = [{**ATTENTION["layers"][0], "activation": "gelu"}, *ATTENTION["layers"][1:]]
    return planned(vector, operations, {**ATTENTION, "layers": layers})


def test_an_activation_takes_an_exponential_a_division_and_four_steps_a_word_beside_its_layer(
    slow: dict[str, FusedLayer],
) -> None:
    """GELU as x / (1 + exp(x (a + b x^2))) (Hendrycks and Gimpel, 2016): the unit and the layer overlap."""
    rows, words = with_gelu(UNIT), ROWS * COLUMNS
    gelu, layer, busy = rows.pop("scores gelu"), rows["scores"], math.ceil(words * (4 + 8 + 4) / LANES)
    assert (gelu.type, gelu.limit, gelu.inputs) == ("activation", "vector units", ("scores",))
    assert 0 < layer.cycles < busy and gelu.cycles == busy - layer.cycles
    assert gelu.energy_pj == pytest.approx(words * (3.0 + 4 * 0.5))
    assert rows == slow, "no other step changes, and no word moves"


def test_an_activation_is_free_without_a_unit(without: dict[str, FusedLayer]) -> None:
    assert with_gelu(None) == without and "scores gelu" not in with_gelu(UNIT, "free")


def test_a_converter_beside_operations_and_an_activation_changes_nothing_without_packets(
    slow: dict[str, FusedLayer],
) -> None:
    layers = [{**ATTENTION["layers"][0], "activation": "gelu"}, *ATTENTION["layers"][1:]]
    chip = {"extends": "mobile", "name": "chip", "vector": UNIT}
    chip["converter"] = {"words_per_cycle": 4, "pj": 1.0, "area_mm2": 0.0}
    found = search_network({**ATTENTION, "layers": layers}, chip, 20, 0, fuse=True)
    assert isinstance(found, FusedResult) and found.complete
    assert [row.layer for row in found.rows] == [*with_gelu(UNIT)]
    assert found.cycles == sum(row.cycles for row in with_gelu(UNIT).values())


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("gellu", "activation: no operation 'gellu'; did you mean 'gelu'?"),
        ("norm", "activation: is 'norm', expected an operation on single words of one input"),
        ("add", "activation: is 'add', expected an operation on single words of one input"),
    ],
)
def test_a_wrong_activation_is_told_with_its_key(value: str, fault: str) -> None:
    layers = [{**layer, "activation": value} for layer in ATTENTION["layers"][:2]]
    with pytest.raises(SpecError) as caught:
        search_network({**ATTENTION, "layers": layers}, "mobile", 1, 0)
    assert f"layers[0].{fault}" in str(caught.value)
    assert f"layers[1].activation: is '{value}' behind an operation, expected a layer" in str(caught.value)


def test_free_operations_need_no_unit(slow: dict[str, FusedLayer]) -> None:
    assert planned(UNIT, "free")["softmax"].cycles == 0 < slow["softmax"].cycles


def test_gates_and_norms_tell_their_steps() -> None:
    build = load().build
    steps = {name: build("operation", {"type": name}).vector_steps((8, 4)) for name in ("norm", "multiply", "concat")}
    assert steps == {"norm": {"other": 4.0, "division": 0.25}, "multiply": {"other": 1.0}, "concat": {}}
    gate = build("operation", {"type": "multiply", "silu": True}).vector_steps((8, 4))
    assert gate == {"exponential": 1.0, "division": 1.0, "other": 2.0}


@pytest.mark.parametrize(
    ("vector", "fault"),
    [
        ({"lanes": 0}, "vector.lanes: is 0, expected at least 1"),
        ({"lanes": 4, "pj": {"exp": 1.0}}, "vector.pj: expected 'exponential' or 'division' or 'other', found 'exp'"),
        ({"lanes": 4, "cycles": {"other": -1.0}}, "vector.cycles: is -1.0, expected at least 0"),
    ],
)
def test_a_wrong_unit_is_told_with_its_key(vector: dict[str, Any], fault: str) -> None:
    with pytest.raises(SpecError) as caught:
        load().build("hardware", {"extends": "mobile", "vector": vector})
    assert fault in str(caught.value)


def test_lanes_have_area() -> None:
    with_lanes = {"extends": "mobile", "name": "lanes", "vector": {"lanes": 256, "area_mm2": 0.002}}
    plain, made = (load_problem("mm3", chip).chip for chip in ("mobile", with_lanes))
    assert made.total_area_mm2 - plain.total_area_mm2 == pytest.approx(256 * 0.002)
