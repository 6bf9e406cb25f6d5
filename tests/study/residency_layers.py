"""Chains of small layers of which all designs are tried: tables for the join, made by the cost model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import permutations, product
from typing import Any

import numpy as np

from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Designs
from sparsemap.problem.load import load_problem
from sparsemap.problem.problem import Problem
from sparsemap.study.join import Step, TablePoint, hull

REGISTRY = load()
DRAM, CHIP = "dram", "glb"
SPACE = {
    "name": "case",
    "segments": ["orders", "tiling", "formats", "gate-skip"],
    "orders": {"type": "cantor"},
    "tiling": {"type": "prime-factors", "padding": "none"},
    "formats": {"type": "rank-formats", "slots": 5, "candidates": ["uncompressed"], "beyond": "uncompressed"},
    "gate-skip": {"candidates": ["none"]},
}


def divisors(size: int) -> list[int]:
    return [n for n in range(1, size + 1) if size % n == 0]


def hardware(machine: Mapping[str, Any], lanes: int, mac_pj: float) -> dict[str, Any]:
    """A bus for one lane that is as slow as the machine's is for some: cycles are those of one lane, over the lanes."""

    def level(name: str, kind: str, pj: float, **more: Any) -> dict[str, Any]:
        return {"name": name, "class": kind, "energy": {"read": pj, "write": pj}, "metadata_width": 16, **more}

    levels = [
        level("DRAM", "dram", machine["e0"], bandwidth=f"{machine['b0'] / lanes} words/cycle"),
        level("GLB", "sram", machine["e1"], capacity=f"{machine['cap']} words"),
    ]
    if "cap2" in machine:
        levels.append(level("RF", "sram", machine["e2"], capacity=f"{machine['cap2']} words"))
    compute = {"name": "MAC", "energy": {"compute": mac_pj, "gated": 0.0, "skipped": 0.0}}
    return {"name": "case", "technology": "12nm", "levels": levels, "compute": compute}


def problem(node: Mapping[str, Any], machine: Mapping[str, Any], kept: str, lanes: int, mac_pj: float) -> Problem:
    """One layer with the tensors `kept`, of P and Z, in the buffer."""
    moved = "p" if node["s"] == 1 else f"{node['s']}*p"
    workload = {
        "type": "einsum",
        "name": node["name"],
        "einsum": f"Z[o, p] = P[c, {moved} + r] * W[o, c, r]",
        "dims": {dim: node[dim] for dim in "ocpr"},
        "density": {"P": 1.0, "W": 1.0},
        "resides": dict.fromkeys(kept, "GLB"),
    }
    return load_problem(workload, hardware(machine, lanes, mac_pj), SPACE, cost_model="timeloop", registry=REGISTRY)


def splits(size: int, levels: int) -> Iterator[tuple[int, ...]]:
    """Bounds per level, the outermost first; the innermost level takes what is left."""
    if levels == 1:
        yield (size,)
        return
    for inside in divisors(size):
        for rest in splits(inside, levels - 1):
            yield (size // inside, *rest)


def every_design(given: Problem) -> Designs:
    """All tilings of o, c and p with all of r in the innermost level, and all orders of the loops outside it."""
    levels = len(given.mapping_levels)
    tilings = list(product(*(list(splits(given.sizes[dim], levels)) for dim in "ocp")))
    outer = [[*order, 3] for order in permutations(range(3))]
    orders = list(product(outer, repeat=levels - 1))
    bounds = np.ones((levels, 4, len(tilings), len(orders)))
    for d in range(3):
        bounds[:, d] = np.array([tiling[d] for tiling in tilings]).T[:, :, None]
    bounds[-1, 3] = given.sizes["r"]
    order = np.zeros((levels, 4, len(tilings), len(orders)), dtype=np.int8)
    order[-1] = np.arange(4)[:, None, None]
    order[:-1] = np.array(orders, dtype=np.int8).transpose(1, 2, 0)[:, :, None]
    count = len(tilings) * len(orders)
    columns = {"bounds": bounds.reshape(levels, 4, count), "order": order.reshape(levels, 4, count)}
    columns |= {"formats": np.zeros((3, 5, count), np.int8), "mechanisms": np.zeros((0, count), np.int8)}
    return Designs({name: np.ascontiguousarray(column) for name, column in columns.items()})


def points(node: Mapping[str, Any], machine: Mapping[str, Any], kept: str) -> list[TablePoint]:
    """Those of all designs that fit that are on a hull for some room."""
    found = []
    for lanes, mac_pj in machine.get("modes", [[1, machine["mac"]]]):
        given = problem(node, machine, kept, lanes, mac_pj)
        designs = every_design(given)
        told = given.evaluator.evaluate_designs(designs, detail=True)
        assert told.detail is not None and told.detail.data_words_max is not None
        held = told.detail.data_words_max[:, 1].sum(axis=0) - sum(given.resident.values())
        for row in np.flatnonzero(told.valid):
            cycles = math.ceil(told.cycles[row]) / lanes
            found.append(TablePoint(float(told.energy_pj[row]), cycles, float(held[row]), (lanes, int(row))))
    kinds = sorted({point.room for point in found})
    wanted = [hull((p.energy_pj, p.cycles, p) for p in found if p.room <= room) for room in kinds]
    return list(dict.fromkeys(point for some in wanted for _, _, point in some))


def steps_of(case: Mapping[str, Any], places: tuple[str, ...] = (DRAM, CHIP)) -> list[Step]:
    """The graph of a case, with tables of all designs; tensors live in `places`."""
    machine, words, found = case["machine"], dict[str, float](), []
    price = {DRAM: machine["e0"], CHIP: machine["e1"]}
    consumed = {name for node in case["nodes"] for name in node["inputs"]}
    for node in case["nodes"]:
        name, given = node["name"], tuple(name for name in node["inputs"] if name != "input")
        words[name] = float(node["o"] * node["p"] if node["kind"] == "layer" else words[given[0]])
        tables = {}
        outer = [places if name in consumed else (DRAM,)]
        for *inputs, place in product(*(places for _ in given), *outer):
            if node["kind"] == "layer":
                kept = ("P" if inputs == [CHIP] else "") + ("Z" if place == CHIP else "")
                table = points(node, machine, kept)
            else:
                moved = [(words[n], at) for n, at in zip((*given, name), (*inputs, place), strict=True)]
                outside = sum(size for size, at in moved if at == DRAM)
                table = [TablePoint(sum(size * price[at] for size, at in moved), outside / machine["b0"])]
            tables[tuple(inputs), place] = table
        found.append(
            Step(name=name, inputs=given, tables=tables, words={CHIP: words[name]}, in_place=node["kind"] == "add")
        )
    return found
