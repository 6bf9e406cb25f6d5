"""Formats between layers: what is written is what is read, or a unit of the hardware rewrites it and is paid for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs
import pytest

from sparsemap import load_problem, search_network
from sparsemap.pieces.data_specs import Converter
from sparsemap.pieces.loading import load
from sparsemap.study.fused_result import FusedResult
from sparsemap.study.graph import converted
from sparsemap.study.join import Step, TablePoint, Together
from sparsemap.study.packets import Converted, TensorPlace, bare, encoded, with_conversions
from sparsemap.study.plan import plan_of

LAYER = {"type": "conv2d", "k": 8, "c": 8, "p": 8, "q": 8, "density": {"P": 0.3, "Q": 0.5}}
NETWORK = {"name": "three", "input": [8, 8, 8], "layers": [{"name": name, **LAYER} for name in "abc"]}
CHIP: dict[str, Any] = {
    "extends": "small",
    "name": "chip",
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "2 GB/s"},
        {"name": "Buffer", "class": "sram", "capacity": "1600 words", "fanout": 8, "gate_skip": True},
    ],
}
UNIT = {"words_per_cycle": 4, "pj": 0.1, "area_mm2": 0.01}


def test_a_pass_pays_what_it_reads_and_writes_and_the_unit() -> None:
    levels = [{"name": "DRAM", "class": "dram", "bandwidth": "0.5 words/cycle", "energy": {"read": 200, "write": 200}}]
    chip = load_problem(
        {"type": "matmul", "m": 4, "k": 4, "n": 4}, {**CHIP, "levels": [*levels, CHIP["levels"][1]]}
    ).chip
    free = Converter(words_per_cycle=1e9, area_mm2=0.0)
    assert converted(free, 64, 20, 64, 0, chip) == (16_800, 168)  # the page's example: 64 words to 16 with 4 of bits
    assert converted(Converter(words_per_cycle=0.25, pj=2.0, area_mm2=0.0), 64, 20, 64, 0, chip) == (16_928, 256)
    with pytest.raises(ValueError):
        Converter(words_per_cycle=0, area_mm2=0.0)


def test_any_packets_are_written_and_rewritten_as_those_that_are_wanted() -> None:
    chip = load_problem({"type": "matmul", "m": 4, "k": 4, "n": 4}, CHIP).chip
    mine, theirs = ((0, 4, "bitmask"),), ((1, 2, "bitmask"),)
    here, there = TensorPlace("Buffer", mine), TensorPlace("Buffer", theirs)
    point = TablePoint(100.0, 10.0, 5.0, "design")
    step = Step(name="a", inputs=(), tables={((), here): [point]}, words={here: 64.0})
    unit = Converter(**UNIT)
    found = with_conversions(step, {mine: 20.0, theirs: 24.0}, lambda _: 20.0, 64, {"Buffer": 1}, unit, chip)
    assert found.tables[(), here] == [point] and found.words[there] == 64.0
    (other,) = found.tables[(), there]
    costs = converted(unit, 20.0, 24.0, 64, 1, chip)
    assert other == TablePoint(100.0 + costs[0], 10.0 + costs[1], 64.0, Converted(point, *costs))
    chain = TablePoint(300.0, 30.0, 9.0, Together((("x", TensorPlace("Buffer"), point), ("a", here, point))))
    group = attrs.evolve(step, tables={((), here): [chain]}, parts=("x", "a"))
    found = with_conversions(group, {theirs: 24.0}, lambda _: 20.0, 64, {"Buffer": 1}, unit, chip)
    (other,) = found.tables[(), there]
    assert other.energy_pj == 300.0 + costs[0] and other.design.parts[-1][2].design == Converted(point, *costs)


def planned(hardware: dict[str, Any]) -> FusedResult:
    found = search_network(NETWORK, hardware, 60, 0, fuse=True, formats="matched", space="paper")
    assert isinstance(found, FusedResult)
    return found


def test_a_conversion_is_a_step_of_the_plan_and_needs_a_unit() -> None:
    without, having = planned(CHIP), planned({**CHIP, "converter": UNIT})
    assert having.edp < without.edp
    assert [row.layer for row in without.rows] == ["a", "b", "c"]
    passes = [row for row in having.rows if row.type == "conversion"]
    assert passes and all(row.energy_pj > 0 and row.cycles >= 512 / 4 for row in passes)
    assert having.energy_pj == math.fsum(row.energy_pj for row in having.rows)
    assert all(row.used_words <= having.capacity for row in having.rows)
    areas = [float(one.base.chip.total_area_mm2) for one in (having, without)]
    assert areas[0] - areas[1] == pytest.approx(0.01)


def test_an_output_has_the_density_that_the_next_layer_reads() -> None:
    given = (Path("unused"), 10, 0, None, "paper", "edp", None)
    for handed, expected in ((True, [0.3, 0.3, 1.0]), (False, [0.733, 0.733, 0.733])):
        plan = plan_of(load(), NETWORK, CHIP, *given, handed=handed)
        outputs = [next(t for t in node.loops.tensors if t.output) for node in plan.nodes if node.loops]
        found = [t.density.occupancy((8, 8, 8)).density for t in outputs]
        assert found[:2] == pytest.approx(expected[:2], abs=0.01)


def test_an_output_that_is_compressed_on_its_way_out_is_encoded_and_paid_for() -> None:
    free = {"words_per_cycle": 1e9, "pj": 0.0, "area_mm2": 0.0}
    cheap, dear = (
        planned({**CHIP, "converter": {**free, **unit}}) for unit in ({}, {"words_per_cycle": 0.25, "pj": 9.0})
    )
    (one, *_) = (row for row in cheap.rows if row.type == "encoding")
    layer = next(row for row in cheap.rows if row.layer == one.inputs[0])
    assert layer.packed and (one.energy_pj, one.cycles) == (0.0, 0.0) and one.used_words == layer.used_words
    assert dear.edp > cheap.edp and not any(row.packed for row in dear.rows)
    unit, point = Converter(words_per_cycle=4, pj=2.0, area_mm2=0.0), TablePoint(100.0, 10.0, 5.0, (1, 2))
    paid = encoded(point, 64, unit)
    assert (paid.energy_pj, paid.cycles, paid.room) == (228.0, 16.0, 5.0)  # it takes longer than the layer
    assert encoded(attrs.evolve(point, cycles=99.0), 64, unit).cycles == 99.0
    assert bare(paid) == (point, (Converted(point, 128.0, 6.0, "encoded"),))
