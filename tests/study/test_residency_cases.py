"""The design page's cases: all designs of every layer, tried by the cost model, and the plan of the join."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import residency_layers as layers
from sparsemap_plugins.verify import verify_chain
from test_slides import walked

from sparsemap.study.join import JoinedPlan
from sparsemap.study.packets import TensorPlace

# the variants have strides, holes, branches, slow and fast memories, or are drawn at random (R), counted by a program that
# shares no code
CASES, VARIANTS = (
    [json.loads(line) for line in Path(__file__).with_name(f"residency-{name}.jsonl").read_text().splitlines()]
    for name in ("cases", "variants")
)
WHOLE = [case for case in CASES if case["kind"] == "layers"]
LONG = {"A6", "V3", "V8", "V10", "V11", "R6", "R35", "R54", "R180", "R244", "R390"}
"""Cases of several seconds. No mutant of the join, nor of `interleaved`, is known that R6 to R244 alone find."""
SLIDING = [case for case in [*WHOLE, *VARIANTS] if "cap2" not in case["machine"]]
"""On two levels: a third one multiplies the designs of turns, and leaves the rules of sliding as they are."""


def marked(cases: list[dict]) -> list:
    """The cases, the long ones as slow tests."""
    return [pytest.param(case, id=case["id"], marks=[pytest.mark.slow] * (case["id"] in LONG)) for case in cases]


def agrees(found: JoinedPlan | None, answer: dict) -> None:
    assert found is not None
    assert (found.energy_pj, found.cycles) == (answer["energy"], answer["cycles"])
    assert found.energy_pj * found.cycles == answer["edp"]
    assert {name: where(found.places[name]) for name in answer["edges"]} == {
        name: edge["where"] for name, edge in answer["edges"].items()
    }
    assert {name: "B" if found.places[name].packet else "U" for name in answer["edges"]} == {
        name: edge["read"] for name, edge in answer["edges"].items()
    }


def where(place: TensorPlace) -> str:
    return "keep" if place.slides else place.level


@pytest.mark.parametrize("case", marked(WHOLE))
def test_layer_by_layer_in_dram(case: dict) -> None:
    agrees(layers.plan_of(case, whole=False, sliding=False), case["answer"]["dense_dram"])


@pytest.mark.parametrize("case", marked(WHOLE))
def test_formats_agree_or_are_converted_in_dram(case: dict) -> None:
    packed = "B" in case["formats"]
    agrees(layers.plan_of(case, whole=False, sliding=False, packed=packed), case["answer"]["dram"])


@pytest.mark.parametrize("case", marked(WHOLE))
def test_whole_tensors_on_chip(case: dict) -> None:
    agrees(layers.plan_of(case, sliding=False, packed="B" in case["formats"]), case["answer"]["dram_or_whole"])


def layer(name: str, o: int, c: int, p: int, r: int = 1, inputs: str = "input") -> dict:
    return {"name": name, "kind": "layer", "inputs": [inputs], "o": o, "c": c, "p": p, "r": r, "s": 1}


MACHINE = {"e0": 200, "e1": 6, "mac": 1, "b0": 0.5}
CHAINS: list[dict] = [
    {"machine": {**MACHINE, "cap": 22}, "nodes": [layer("a", 4, 1, 6), layer("b", 1, 4, 4, 3, "a")]},
    {"machine": {**MACHINE, "cap": 30}, "nodes": [layer("a", 4, 2, 4), layer("b", 2, 4, 4, 1, "a")]},
    {"machine": {**MACHINE, "cap": 28},
     "nodes": [layer("a", 4, 1, 6), layer("b", 1, 4, 4, 3, "a"), layer("c", 2, 1, 4, 1, "b")]},
    {"machine": {**MACHINE, "cap": 29},
     "nodes": [layer("a", 2, 1, 12), layer("b", 2, 2, 10, 3, "a"), layer("c", 1, 2, 8, 3, "b")]},
    {"machine": {**MACHINE, "cap": 20}, "nodes": [layer("a", 2, 4, 10), layer("b", 8, 2, 10, 1, "a")]},
]  # fmt: skip


PLANS = [["keep"], ["glb"], ["keep", "glb"], ["keep", "keep"], ["keep"]]


def every_plan(case: dict) -> Iterator[tuple[float, float]]:
    """All designs of all layers with all places of all tensors between them that fit."""
    steps, members = layers.tables_of(case, whole=True, sliding=True, packed=False)
    capacity = case["machine"]["cap"]
    for edges in product(("dram", "whole", "slides"), repeat=len(members) - 1):
        tables = []
        for i, member in enumerate(members):
            given = [layers.PLACES[edge != "dram"] for edge in edges[max(0, i - 1) : i]]
            key = tuple(given), layers.PLACES[i < len(edges) and edges[i] != "dram"]
            turns = "slides" in edges[max(0, i - 1) : i + 1]
            by_loop = member.tables[key] if turns else {None: steps[i].tables[key]}
            tables.append({(loop, p.energy_pj, p.cycles, p.room) for loop, some in by_loop.items() for p in some})
        for chosen in product(*tables):
            if fits(case["nodes"], edges, [loop for loop, *_ in chosen], [room for *_, room in chosen], capacity):
                yield sum(one[1] for one in chosen), sum(one[2] for one in chosen)


def fits(nodes: list, edges: tuple[str, ...], loops: list, rooms: list[float], capacity: float) -> bool:
    """Whether at each step tiles and what lives of tensors have room; layers around what slides by are one step."""
    steps, live = [[0]], []
    for i, edge in enumerate(edges):
        steps[-1:] = [[*steps[-1], i + 1]] if edge == "slides" else [steps[-1], [i + 1]]
        live.append(float(nodes[i]["o"] * nodes[i]["p"]) if edge == "whole" else 0.0)
        if edge == "slides":
            if any(loop and loop[0] != "p" for loop in loops[i : i + 2]):
                return False
            made, taken = (nodes[j]["p"] // (loops[j][1] if loops[j] else 1) for j in (i, i + 1))
            before, after = nodes[i : i + 2]
            live[-1] = before["o"] * walked(before["p"], after["p"], 1, after["r"], made, taken)
    return all(
        sum(rooms[i] for i in some) + sum(words for i, words in enumerate(live) if {i, i + 1} & set(some)) <= capacity
        for some in steps
    )


@pytest.mark.parametrize(
    ("case", "edges"),
    list(zip(CHAINS, PLANS, strict=True)),
    ids=["halo", "pair", "three", "two halos", "loops within turns"],
)
def test_the_plan_of_a_short_chain_is_the_best_of_all_and_is_executed_as_it_says(case: dict, edges: list[str]) -> None:
    found = layers.plan_of(case, longest=3)
    assert found is not None
    assert found.energy_pj * found.cycles == min(energy * cycles for energy, cycles in every_plan(case))
    assert [where(place) for place in found.places.values()][:-1] == edges
    executed = verify_chain(layers.executable(case, found), trials=2)
    assert executed.correct and all(most <= room for most, room in zip(executed.most_words, executed.room, strict=True))
    assert executed.ratio == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("case", marked(SLIDING))
def test_tensors_on_chip_as_a_whole_or_sliding_by(case: dict) -> None:
    agrees(layers.plan_of(case, packed="B" in case["formats"]), case["answer"]["best"])
