"""Chains of small layers of which all designs are tried: tables for the join, made by the cost model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import permutations, product
from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Designs
from sparsemap.problem.load import load_problem
from sparsemap.problem.problem import Problem
from sparsemap.searching.hull import thinned
from sparsemap.study.interleaved import Member, interleaved
from sparsemap.study.join import JoinedPlan, Step, TablePoint, joined
from sparsemap.study.packets import Place
from sparsemap.study.slides import Outermost, Slide, outermost, slides

REGISTRY = load()
DRAM, CHIP = "dram", "glb"
PLACES = Place(DRAM), Place(CHIP)
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
        "resident_words": dict.fromkeys(kept, 0),
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


def points(node: Mapping[str, Any], machine: Mapping[str, Any], kept: str) -> dict[Outermost, list[TablePoint]]:
    """By outermost loop, those of all designs that fit that are on a hull for some room."""
    found: dict[Outermost, list[TablePoint]] = {}
    for lanes, mac_pj in machine.get("modes", [[1, machine["mac"]]]):
        given = problem(node, machine, kept, lanes, mac_pj)
        designs = every_design(given)
        told, loops = given.evaluator.evaluate_designs(designs, detail=True), outermost(given, designs)
        assert told.detail is not None and told.detail.data_words_max is not None
        held = told.detail.data_words_max[:, 1].sum(axis=0)
        for row in np.flatnonzero(told.valid):
            cycles = math.ceil(told.cycles[row]) / lanes
            point = TablePoint(float(told.energy_pj[row]), cycles, float(held[row]), (lanes, int(row)))
            found.setdefault(loops[row], []).append(point)
    return {loop: thinned(some, lambda p: (p.energy_pj, p.cycles, p.room)) for loop, some in found.items()}


def plan_of(case: Mapping[str, Any], whole: bool = True, sliding: bool = True, longest: int = 2) -> JoinedPlan | None:
    """The best plan of a case, with tables of all designs; tensors may live on chip as a `whole`, or slide by, between up
    to `longest` layers that run interleaved."""
    steps, members = tables_of(case, whole, sliding)
    capacity = case["machine"]["cap"]
    groups = [group for group in interleaved(members, CHIP, capacity) if len(group.parts) <= longest]
    return joined(steps, capacity, groups=groups)


def tables_of(case: Mapping[str, Any], whole: bool, sliding: bool) -> tuple[list[Step], list[Member]]:
    machine, words, steps, members = case["machine"], dict[str, float](), list[Step](), list[Member]()
    price, nodes = {DRAM: machine["e0"], CHIP: machine["e1"]}, {node["name"]: node for node in case["nodes"]}
    takers = {name: [node for node in case["nodes"] if name in node["inputs"]] for name in nodes}
    for node in case["nodes"]:
        name, given = node["name"], tuple(name for name in node["inputs"] if name != "input")
        words[name] = float(node["o"] * node["p"] if node["kind"] == "layer" else words[given[0]])
        tables: dict[Any, dict[Outermost, list[TablePoint]]] = {}
        for *inputs, place in product(*(PLACES for _ in given), PLACES if takers[name] else PLACES[:1]):
            if node["kind"] == "layer":
                table = points(
                    node, machine, ("P" if PLACES[1] in inputs else "") + ("Z" if place == PLACES[1] else "")
                )
            else:
                moved = [(words[n], at.level) for n, at in zip((*given, name), (*inputs, place), strict=True)]
                outside = sum(size for size, at in moved if at == DRAM)
                table = {None: [TablePoint(sum(size * price[at] for size, at in moved), outside / machine["b0"])]}
            tables[tuple(inputs), place] = table
        allowed = PLACES if whole else PLACES[:1]
        steps.append(
            Step(
                name=name,
                inputs=given,
                tables={
                    key: [point for some in table.values() for point in some]
                    for key, table in tables.items()
                    if all(place in allowed for place in (*key[0], key[1]))
                },
                words={PLACES[1]: words[name]},
                in_place=node["kind"] == "add",
            )
        )
        slid: tuple[Slide, ...] = ()
        if sliding and node["kind"] == "layer" and [after["kind"] for after in takers[name]] == ["layer"]:
            both = (problem(one, machine, "", 1, 1.0).loops for one in (node, takers[name][0]))
            slid = tuple(slide for slide in slides(*both, "P") if slide.made == "p")
        stuck = frozenset() if whole else frozenset([*given, name])
        sizes = {dim: node[dim] for dim in "ocpr"} if node["kind"] == "layer" else {}
        member = Member(
            name=name, inputs=given, stuck=stuck, slides=slid, words=words[name], sizes=sizes, tables=tables, alike=name
        )
        members.append(member)
    return steps, members


def executable(case: Mapping[str, Any], plan: JoinedPlan) -> list[tuple[Problem, Designs]]:
    """The designs of a plan, with the tensors on chip and what slides by."""
    found, places = [], plan.places
    for node, chosen in zip(case["nodes"], plan.steps, strict=True):
        edges = {"P": places.get(node["inputs"][0]), "Z": places[node["name"]]}
        kept = {tensor: place for tensor, place in edges.items() if isinstance(place, Place) and place.level == CHIP}
        given = problem(node, case["machine"], "".join(kept), chosen.point.design[0], 1.0)
        made = {"Z": node, "P": next((n for n in case["nodes"] if n["name"] in node["inputs"]), node)}
        words = {t: int(place.words) or made[t]["o"] * made[t]["p"] for t, place in kept.items()}
        slid = {tensor: "p" for tensor, place in kept.items() if place.slides}
        workload = attrs.evolve(given.workload, resident_words=words, slides=slid)
        row = chosen.point.design[1]
        found.append((given.variant(workload=workload), every_design(given).take(slice(row, row + 1))))
    return found
