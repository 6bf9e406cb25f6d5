"""Chains of small layers of which all designs are tried: tables for the join, made by the cost model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, wraps
from itertools import pairwise, permutations, product
from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.data_specs import Converter
from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Designs
from sparsemap.problem.load import load_problem
from sparsemap.problem.network import Node
from sparsemap.problem.problem import Problem
from sparsemap.study.interleaved import Member, interleaved
from sparsemap.study.join import JoinedPlan, Step, TablePoint, joined
from sparsemap.study.packets import PLAIN, Packet, TensorPlace, with_conversions
from sparsemap.study.slides import Outermost, Slide, outermost, slides
from sparsemap.study.thinning import thinned

REGISTRY = load()
DRAM, CHIP = "dram", "glb"
PLACES = TensorPlace(DRAM), TensorPlace(CHIP)
BITS: Packet = ((0, 0, "bitmask"),)
"""Packets of some channels as bitmasks: all that a case has."""
SPACE = {
    "name": "case",
    "segments": ["orders", "tiling", "formats", "gate-skip", "decoding"],
    "orders": {"type": "cantor"},
    "tiling": {"type": "prime-factors", "padding": "none"},
    "formats": {
        "type": "rank-formats",
        "slots": 5,
        "candidates": ["uncompressed", "bitmask"],
        "beyond": "uncompressed",
    },
    "gate-skip": {
        "candidates": [
            "none",
            {"name": "by-p", "type": "filters", "action": "skip", "filters": [{"target": "W", "leader": "P"}]},
        ]
    },
}


def once(make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes what follows from a layer, a machine and so on once: many cases have the same layers on the same machine."""
    made: dict[str, Any] = {}

    @wraps(make)
    def kept(*given: Any) -> Any:
        key = repr([{k: v for k, v in one.items() if k not in ("name", "inputs", "kind")} if isinstance(one, Mapping) else one
                    for one in given])  # fmt: skip
        return made[key] if key in made else made.setdefault(key, make(*given))

    return kept


def divisors(size: int) -> list[int]:
    return [n for n in range(1, size + 1) if size % n == 0]


def hardware(machine: Mapping[str, Any], lanes: int, mac_pj: float, turns: bool = False) -> dict[str, Any]:
    """A bus for one lane that is as slow as the machine's is for some: cycles are those of one lane, over the lanes. `turns`:
    with a level that keeps nothing, so that dimensions have two loops outside the buffer."""

    def level(name: str, kind: str, pj: float, **more: Any) -> dict[str, Any]:
        energy = dict.fromkeys(("read", "write", "metadata_read", "metadata_write"), pj) | {
            "encode": 0.0,
            "decode": 0.0,
        }
        return {"name": name, "class": kind, "energy": energy, "metadata_width": 16, **more}

    levels = [
        level("DRAM", "dram", machine["e0"], bandwidth=f"{machine['b0'] / lanes} words/cycle"),
        level("GLB", "sram", machine["e1"], capacity=f"{machine['cap']} words", gate_skip=True, decodes=["Z"]),
    ]
    if turns:
        levels.insert(1, level("TURN", "sram", 0.0, bypass=["P", "W", "Z"]))
    if "cap2" in machine:
        levels.append(level("RF", "sram", machine["e2"], capacity=f"{machine['cap2']} words"))
    compute = {"name": "MAC", "energy": {"compute": mac_pj, "gated": 0.0, "skipped": 0.0}}
    return {"name": "case", "technology": "12nm", "levels": levels, "compute": compute}


def problem(
    node: Mapping[str, Any], machine: Mapping[str, Any], kept: str, lanes: int, mac_pj: float, packed: str = "",
    turns: bool = False,
) -> Problem:  # fmt: skip
    """One layer with the tensors `kept`, of P and Z, in the buffer, and those `packed` as bitmasks."""
    moved = "p" if node["s"] == 1 else f"{node['s']}*p"
    nonzeros = {"P": Fraction(node.get("d", 1)), "Z": Fraction(node.get("dz", 1))}
    density = {t: {"type": "n-of-m", "n": d.numerator, "m": d.denominator} for t, d in nonzeros.items() if t in packed}
    workload = {
        "type": "einsum",
        "name": node["name"],
        "einsum": f"Z[o, p] = P[c, {moved} + r] * W[o, c, r]",
        "dims": {dim: node[dim] for dim in "ocpr"},
        "density": {"P": 1.0, "W": 1.0, "Z": 1.0, **density},
        "resides": dict.fromkeys(kept, "GLB"),
        "resident_words": dict.fromkeys(kept, 0),
    }
    first = first_on(json.dumps(hardware(machine, lanes, mac_pj, turns)))
    given = load_problem(workload, first.hardware, first.space_spec, cost_model=first.cost_model, registry=REGISTRY)
    given.__dict__ |= {"chip": first.chip, "levels": first.levels, "technology": first.technology}
    return given


@cache
def first_on(table: str) -> Problem:
    """Any problem on a hardware, in JSON: others on it have its pieces and its chip."""
    return load_problem("small-sparse", json.loads(table), SPACE, cost_model="timeloop", registry=REGISTRY)


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
    return with_orders(given, tilings, levels - 1)


def with_orders(given: Problem, tilings: Sequence[Sequence[Sequence[float]]], count: int) -> Designs:
    """Bounds of o, c and p by level, with all orders of the loops in `count` levels before the innermost one."""
    levels = len(given.mapping_levels)
    outer = [[*order, 3] for order in permutations(range(3))]
    orders = [[[0, 1, 2, 3]] * (levels - 1 - count) + list(some) for some in product(outer, repeat=count)]
    bounds = np.ones((levels, 4, len(tilings), len(orders)))
    for d in range(3):
        bounds[:, d] = np.array([tiling[d] for tiling in tilings]).T[:, :, None]
    bounds[-1, 3] = given.sizes["r"]
    order = np.zeros((levels, 4, len(tilings), len(orders)), dtype=np.int8)
    order[-1] = np.arange(4)[:, None, None]
    order[:-1] = np.array(orders, dtype=np.int8).transpose(1, 2, 0)[:, :, None]
    made = len(tilings) * len(orders)
    columns = {"bounds": bounds.reshape(levels, 4, made), "order": order.reshape(levels, 4, made)}
    columns |= {"formats": np.zeros((3, 5, made), np.int8), "mechanisms": np.zeros((1, made), np.int8)}
    columns |= {"decoded": np.full((3, made), len(given.levels), np.int8)}
    return Designs({name: np.ascontiguousarray(column) for name, column in columns.items()})


@attrs.frozen
class Turns:
    """The outermost loop of a layer, along p: the rows of the first turn, and those of every other one."""

    count: int
    first: int
    step: int

    def designs(self, given: Problem, turn: int) -> Designs:
        """All designs with turns of so many rows, whose tiles go into all turns, or are one."""
        levels = len(given.mapping_levels) - 1
        rows = [turn, *divisors(math.gcd(self.first, self.step))]
        cuts = [
            [turn, *(rows[i] for i in some)]
            for some in product(range(len(rows)), repeat=levels - 1)
            if all(not i or (j and rows[i] % rows[j] == 0) for i, j in pairwise(some))
        ]
        along = [(given.sizes["p"] // turn, *(a // b for a, b in pairwise(tiles)), tiles[-1]) for tiles in cuts]
        others = [[(1, *some) for some in splits(given.sizes[dim], levels)] for dim in "oc"]
        return with_orders(given, list(product(*others, along)), levels - 1)

    @once
    def points(self, node: Mapping[str, Any], machine: Mapping[str, Any], kept: str, mode: Any) -> list[TablePoint]:
        """As `points`: what equal turns cost, and what it adds to make the first one longer, which then takes room."""
        parts = [(self.count, self.step, 1), (1, self.first, 1), (1, self.step, -1)]
        valid, sums, held = np.array(True), np.zeros(()), np.zeros(())
        for count, turn, sign in parts if self.first != self.step else parts[:1]:
            given = problem({**node, "p": count * turn}, machine, kept, *mode, turns=True)
            told = given.evaluator.evaluate_designs(self.designs(given, turn), detail=True)
            detail = told.detail
            assert detail is not None and detail.data_words_max is not None
            assert detail.dense_reads is not None and detail.dense_updates is not None
            words = (detail.dense_reads + detail.dense_updates)[:, 0].sum(axis=0)
            sums = sums + sign * np.array([np.where(told.valid, told.energy_pj, 0.0), detail.computes, words])
            valid, held = valid & told.valid, detail.data_words_max[:, 2].sum(axis=0) if turn == self.first else held
        cycles = np.maximum(sums[1], np.ceil(sums[2] * mode[0] / machine["b0"])) / mode[0]
        found = zip(sums[0].tolist(), cycles.tolist(), held.tolist(), strict=True)
        return [TablePoint(*one, (mode[0], self, row)) for row, one in enumerate(found) if valid[row]]


def packing(given: Problem, designs: Designs, packed: str, g: int) -> tuple[Designs, np.ndarray]:
    """The designs with channels innermost as bitmasks, the output encoded as it leaves the buffer, and computes of zeros
    skipped; and which of them read and write whole packets of g channels, of an output that leaves once."""
    names, dims = [t.name for t in given.tensors], list(given.dims)
    columns = {name: column.copy() for name, column in designs.columns.items()}
    columns["order"][-1] = np.array([dims.index(dim) for dim in "rpoc"])[:, None]
    bounds, order = columns["bounds"], columns["order"]
    whole = np.ones(len(designs), dtype=bool)
    for tensor, channel in (("P", "c"), ("Z", "o")):
        if tensor in packed:
            columns["formats"][names.index(tensor), -1] = 1
            for level in range(1, len(bounds)):
                whole &= bounds[level:, dims.index(channel)].prod(axis=0) % g == 0
    if "P" in packed:
        columns["mechanisms"][:] = 1
    if "Z" in packed:
        columns["decoded"][names.index("Z")] = 1
        place = np.argsort(order[0], axis=0)
        for dim in "op":  # no loop over channels that are summed has one of the output inside
            inside = place[dims.index(dim)] > place[dims.index("c")]
            whole &= ~(inside & (bounds[0, dims.index("c")] > 1) & (bounds[0, dims.index(dim)] > 1))
    return Designs(columns), whole


@once
def points(
    node: Mapping[str, Any], machine: Mapping[str, Any], kept: str, packed: str = ""
) -> dict[Outermost, list[TablePoint]]:
    """By outermost loop, those of all designs that fit that are on a hull for some room."""
    found: dict[Outermost, list[TablePoint]] = {}
    for lanes, mac_pj in machine.get("modes", [[1, machine["mac"]]]):
        encoded = "".join(
            t for t in packed if t != "Z" or "Z" not in kept
        )  # at home it is encoded once it is summed up
        given = problem(node, machine, kept, lanes, mac_pj, encoded)
        designs, whole = packing(given, every_design(given), packed, machine.get("g", 1)) if packed else (
            every_design(given), True
        )  # fmt: skip
        if encoded != packed:
            designs.columns["formats"][-1] = 0
            designs.columns["decoded"][-1] = len(given.levels)
        told, loops = given.evaluator.evaluate_designs(designs, detail=True), outermost(given, designs)
        assert told.detail is not None and told.detail.data_words_max is not None
        assert told.detail.metadata_bits_max is not None
        held = told.detail.data_words_max[:, 1].sum(axis=0)
        if "P" in packed and "P" not in kept:
            held = held + np.ceil(told.detail.metadata_bits_max[1] / 16)
        if "Z" in packed and "Z" in kept:  # its dense tile, beside the packed words
            held = held + designs.columns["bounds"][1:, [given.dims.index("o"), given.dims.index("p")]].prod(
                axis=(0, 1)
            )
        for row in np.flatnonzero(told.valid & whole):
            cycles = math.ceil(told.cycles[row]) / lanes
            point = TablePoint(float(told.energy_pj[row]), cycles, float(held[row]), (lanes, None, int(row)))
            found.setdefault(loops[row], []).append(point)
    return {loop: thinned(some, lambda p: (p.energy_pj, p.cycles, p.room)) for loop, some in found.items()}


def plan_of(
    case: Mapping[str, Any], whole: bool = True, sliding: bool = True, longest: int = 2, packed: bool = False
) -> JoinedPlan | None:
    """The best plan of a case, with tables of all designs; tensors may live on chip as a `whole`, or slide by, between up
    to `longest` layers that run interleaved: pairs as the design page has them, or chains that can be executed."""
    steps, members = tables_of(case, whole, sliding, packed, paired=longest == 2)
    capacity = case["machine"]["cap"]
    groups = [group for group in interleaved(members, CHIP, capacity) if len(group.parts) <= longest]
    return joined(steps, capacity, groups=groups)


def turns_of(
    node: Mapping[str, Any], machine: Mapping[str, Any], kept: str, after: Mapping[str, Any] | None, paired: bool
) -> dict[Outermost, list[TablePoint]]:
    """By outermost loop, the points of a layer in turns: equal ones. `paired`: named by their number and by the lanes, which
    are those of both layers; and those that make what the next turn of the layer `after` lacks, beside whose rows a halo
    lives."""
    found: dict[Outermost, list[TablePoint]] = {}
    for mode in machine.get("modes", [[1, machine["mac"]]]):
        for count in divisors(node["p"])[1:]:
            step = node["p"] // count
            name = f"takes {count} {mode}" if paired else "p"
            found.setdefault((name, count), []).extend(Turns(count, step, step).points(node, machine, kept, mode))
        for count in divisors(after["p"])[1:] if after and paired else ():
            step = after["s"] * after["p"] // count
            halo = after["r"] - after["s"]
            some = Turns(count, step + halo, step).points(node, machine, kept, mode)
            found[f"makes {count} {mode}", count] = [
                attrs.evolve(one, room=one.room + halo * node["o"]) for one in some
            ]  # fmt: skip
    if not paired:
        found[None] = points(node, machine, kept).get(None, [])
    return {loop: thinned(some, lambda p: (p.energy_pj, p.cycles, p.room)) for loop, some in found.items()}


def slides_of(
    node: Mapping[str, Any], after: Mapping[str, Any], machine: Mapping[str, Any], paired: bool
) -> tuple[Slide, ...]:
    """Along the rows; `paired`: in turns of `turns_of`."""
    if not paired:
        pair = [problem(one, machine, "", 1, 1.0) for one in (node, after)]
        both = (Node("layer", one.workload, one.loops, (), 1) for one in pair)
        return tuple(slide for slide in slides(*both, "P") if slide.made == "p")
    turns = product(divisors(after["p"])[1:], machine.get("modes", [[1, machine["mac"]]]))
    rows, stride = after["s"] * after["p"], after["s"]
    names = [(f"makes {count} {mode}", f"takes {count} {mode}") for count, mode in turns]
    return tuple(Slide(*both, rows, after["p"], stride, stride, node["o"]) for both in names)


def tables_of(
    case: Mapping[str, Any], whole: bool, sliding: bool, packed: bool, paired: bool = False
) -> tuple[list[Step], list[Member]]:
    machine, words, steps, members = case["machine"], dict[str, float](), list[Step](), list[Member]()
    every = [attrs.evolve(place, packet=bits) for place in PLACES for bits in ((PLAIN, BITS) if packed else (PLAIN,))]
    price, nodes = {DRAM: machine["e0"], CHIP: machine["e1"]}, {node["name"]: node for node in case["nodes"]}
    takers = {name: [node for node in case["nodes"] if name in node["inputs"]] for name in nodes}
    for node in case["nodes"]:
        name, given = node["name"], tuple(name for name in node["inputs"] if name != "input")
        words[name] = float(node["o"] * node["p"] if node["kind"] == "layer" else words[given[0]])
        tables: dict[Any, dict[Outermost, list[TablePoint]]] = {}
        for *inputs, place in product(*(every for _ in given), every if takers[name] else every[:1]):
            edges = [*(("P", at) for at in inputs), ("Z", place)]
            bits = "".join(tensor for tensor, at in edges if at.packet)
            if node["kind"] == "layer":
                table = points(node, machine, "".join(tensor for tensor, at in edges if at.level == CHIP), bits)
            elif bits:
                continue  # it works word by word
            else:
                moved = [(words[n], at.level) for n, at in zip((*given, name), (*inputs, place), strict=True)]
                outside = sum(size for size, at in moved if at == DRAM)
                table = {None: [TablePoint(sum(size * price[at] for size, at in moved), outside / machine["b0"])]}
            tables[tuple(inputs), place] = table
        allowed = [place for place in every if whole or place.level == DRAM]
        share = Fraction(node.get("dz", 1)) + Fraction(1, 16)
        sizes_of = {place: math.ceil(words[name] * share) if place.packet else words[name] for place in every}
        made = Step(
            name=name,
            inputs=given,
            tables={
                key: [point for some in table.values() for point in some]
                for key, table in tables.items()
                if all(place in allowed for place in (*key[0], key[1]))
            },
            words={place: size for place, size in sizes_of.items() if place.level == CHIP},
            in_place=node["kind"] == "add",
        )
        steps.append(converting(made, sizes_of, int(words[name]), machine) if takers[name] and packed else made)
        member = Member(name=name, inputs=given)
        if sliding and node["kind"] == "layer":
            after = takers[name][0] if [after["kind"] for after in takers[name]] == ["layer"] else None
            slid = slides_of(node, after, machine, paired) if after else ()
            kept = {
                (inputs, at): "".join(t for t, one in zip("ZP", (at, *inputs), strict=False) if one.level == CHIP)
                for inputs, at in tables
                if not any(one.packet for one in (*inputs, at))
            }
            turns = {key: turns_of(node, machine, some, after, paired) for key, some in kept.items() if some}
            sizes = {slide.made: slide.rows for slide in slid}
            sizes |= {loop[0]: node["p"] for some in turns.values() for loop in some if loop and loop[0] not in sizes}
            member = Member(
                name=name, inputs=given, stuck=frozenset() if whole else frozenset([*given, name]), slides=slid,
                words=words[name], sizes=sizes, tables=turns, alike=name,
            )  # fmt: skip
        members.append(member)
    return steps, members


def converting(step: Step, sizes: Mapping[TensorPlace, float], words: int, machine: Mapping[str, Any]) -> Step:
    """The step with conversions, by a unit that costs nothing: both ways, one format at a time."""
    table = hardware(machine, 1, machine["mac"])
    table["levels"][1]["bandwidth"] = f"{machine['b1']} words/cycle"
    chip = load_problem({"type": "matmul", "m": 2, "k": 2, "n": 2}, table, registry=REGISTRY).chip
    unit, found = Converter(words_per_cycle=1e9, area_mm2=0.0), step
    size = {place.packet: size for place, size in sizes.items()}
    for packet, other in ((PLAIN, BITS), (BITS, PLAIN)):
        mine = {key: some for key, some in step.tables.items() if key[1].packet == other}
        made = with_conversions(
            attrs.evolve(step, tables=mine), {packet: size[packet]}, lambda _, read=size[other]: read, words,
            {DRAM: 0, CHIP: 1}, unit, chip,
        )  # fmt: skip
        more = {key: some for key, some in made.tables.items() if key[1].packet == packet}
        found = attrs.evolve(
            found, tables={key: [*found.tables.get(key, ()), *more.get(key, ())] for key in {**found.tables, **more}}
        )
    return found


def executable(case: Mapping[str, Any], plan: JoinedPlan) -> list[tuple[Problem, Designs]]:
    """The designs of a plan, with the tensors on chip and what slides by."""
    found, places = [], plan.places
    for node, chosen in zip(case["nodes"], plan.steps, strict=True):
        edges = {"P": places.get(node["inputs"][0]), "Z": places[node["name"]]}
        kept = {
            tensor: place for tensor, place in edges.items() if isinstance(place, TensorPlace) and place.level == CHIP
        }
        lanes, turns, row = chosen.point.design
        given = problem(node, case["machine"], "".join(kept), lanes, 1.0, turns=bool(turns))
        designs = turns.designs(given, turns.step) if turns else every_design(given)
        made = {"Z": node, "P": next((n for n in case["nodes"] if n["name"] in node["inputs"]), node)}
        words = {t: int(place.words) or made[t]["o"] * made[t]["p"] for t, place in kept.items()}
        slid = {tensor: "p" for tensor, place in kept.items() if place.slides}
        workload = attrs.evolve(given.workload, resident_words=words, slides=slid)
        found.append((given.variant(workload=workload), designs.take(slice(row, row + 1))))
    return found
