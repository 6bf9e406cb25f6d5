"""Claims of the cost models against execution, in cells scaled down: `python benchmarks/executed.py [--out FILE.md]`.

`--bandwidth 4` is a part of the study: DRAM has four times its bandwidth in every cell, for the search as well.

A cell is scaled down as a whole: its largest dimension is halved until execution takes at most `COMPUTES`
multiply-accumulates; capacities shrink as the tensors do, every fan-out by the same factor, and bandwidths with the
ratio of each level's time to the computes; energies per access are of the full size, leakage is in proportion to the
lanes. With fewer than `PRODUCTS` nonzero products, both operands become denser. In each cell, a search under `physical`
chooses a design, beside random valid designs. All are executed on three random tensors, with every charge, against the
claims of `timeloop` and `physical`."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from common import asked, mean, publish, say
from sparsemap_plugins.verify import executed_over_analytic

from sparsemap import Problem, load_problem, search
from sparsemap.pieces.contracts.hardware import BANDWIDTHS, FULL_ACTIONS
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

COMPUTES, BUDGET, SAMPLED, RANDOM, TRIALS = 150_000, 1500, 1000, 2, 3
PRODUCTS = 2_000
FASTER = (1.0, 4.0, 16.0)
MODELS = ("timeloop", "physical")
WORKLOADS = ("mm1", "mm2", "mm3", "mm5", "mm6", "mm12", "mm13", "conv1", "conv2", "conv4", "conv8", "conv13")
CELLS = [(workload, hardware) for workload in WORKLOADS for hardware in ("cloud", "mobile")]
LAYERS = (
    ("resnet50:layer2.3.conv2", "mobile", {"P": 0.45, "Q": 0.3}),
    ("resnet50:layer3.1.conv2", "cloud", {"P": 0.35, "Q": 0.2}),
    ("mobilenetv2:features.6.conv.0.0", "mobile", {"P": 0.6, "Q": 0.5}),
    ("mobilenetv2:features.8.conv.1.0", "cloud", {"P": 0.5, "Q": 0.5}),
    ("bert-base:layer.1.up", "mobile", {"P": 0.5, "Q": 0.2}),
    ("bert-base-90:layer.0.key", "cloud", {}),
    ("vit-b-16-50:layer.0.query", "mobile", {}),
    ("llama3-8b-prefill-2of4:down_proj", "cloud", {}),
)
"""Layers of networks, with densities in place of the network's."""


@attrs.frozen
class Claim:
    """A design, and executed over analytic: energy, cycles, EDP."""

    cell: str
    bandwidth: float
    """Multiple of the platform's."""
    kind: str
    ratios: dict[str, tuple[float, float, float]]
    """By cost model."""


def workload_of(name: str, registry: Any) -> Any:
    """A workload, or a layer as NETWORK:LAYER."""
    network, _, layer = name.partition(":")
    if not layer:
        return name
    nodes = nodes_of(registry.build("network", network), registry)
    node = next(node for node in nodes if node.name == layer)
    assert node.loops is not None
    *operands, output = (tensor.text for tensor in node.loops.tensors)
    density = {x.name: 1.0 for x in node.loops.tensors if not x.output} | dict(getattr(node.piece, "density", {}))
    table = {"type": "einsum", "einsum": f"{output} = {' * '.join(operands)}", "dims": dict(node.loops.sizes)}
    densities = next((given for known, _, given in LAYERS if known == name), {})
    return registry.build("workload", table | {"density": density | densities})


def scaled(workload: str, hardware: str, registry: Any, bandwidth: float = 1.0) -> Problem:
    """A cell small enough for execution; DRAM with a multiple of its bandwidth."""
    full = load_problem(workload_of(workload, registry), hardware, registry=registry)
    dims = {dim: int(size) for dim, size in full.workload.dims.items()}
    while math.prod(dims.values()) > COMPUTES:
        largest = max(dims, key=lambda dim: dims[dim])
        dims[largest] = max(1, dims[largest] // 2)
    density = dict(full.workload.density)
    given = [float(x) for x in density.values() if isinstance(x, float)]
    share = math.prod(given) * math.prod(dims.values()) / PRODUCTS if len(given) == 2 else 1.0
    if share < 1.0:
        density |= {name: min(1.0, density[name] / math.sqrt(share)) for name in ("P", "Q")}
    small = load_problem(attrs.evolve(full.workload, dims=dims, density=density), hardware, registry=registry)
    words, computes = (mine / whole for mine, whole in zip(_counts(small), _counts(full), strict=True))
    groups = sum(level.memory.fanout is not None and level.fanout > 1 for level in full.levels)
    shrink = computes ** (1.0 / (groups + 1))  # lanes, and steps of a lane
    levels, instances = [], 1.0
    fanouts = [max(2, round(level.fanout * shrink)) if level.fanout > 1 else level.fanout for level in full.levels]
    steps = computes / math.prod(fanout / level.fanout for level, fanout in zip(full.levels, fanouts, strict=True))
    for level, fanout, table in zip(full.levels, fanouts, full.hardware.levels, strict=True):
        made = dict(table)
        made["leakage_mw"] = full.leakage_mw(level.index) * computes / steps / instances
        made["energy"] = {action: full.energy_pj(level.index, action) for action in FULL_ACTIONS}
        if level.capacity_bits is not None:
            each = words if level.index < len(full.levels) - 1 else words / instances
            made["capacity"] = f"{max(16, round(level.capacity_bits / level.word_bits * min(1.0, each)))} words"
        for key in BANDWIDTHS:
            limit = getattr(level, key)
            if limit is not None:
                faster = 1.0 if level.index else bandwidth
                made[key] = f"{limit * faster * words / steps / instances:g} words/cycle"
        if level.memory.fanout is not None:
            made["fanout"] = fanout
        instances *= fanout / level.fanout
        levels.append(made)
    hard = attrs.evolve(full.hardware, levels=tuple(levels))
    return load_problem(small.workload, hard, cost_model="physical", registry=registry)


def _counts(problem: Problem) -> tuple[float, float]:
    """Words of all tensors, and computes."""
    sizes = {dim: int(n) for dim, n in problem.sizes.items()}
    return sum(math.prod(tensor.shape(sizes)) for tensor in problem.tensors), math.prod(sizes.values())


def claims(cells: list[tuple[str, str]], bandwidth: float, budget: int, registry: Any) -> Iterator[Claim]:
    for number, (workload, hardware) in enumerate(cells):
        begin = time.perf_counter()
        problem = scaled(workload, hardware, registry, bandwidth)
        found = search(problem, budget=budget, seed=0)
        chosen = [("chosen", found.best.genome)] if found.best else []
        rng = np.random.default_rng(0)
        genomes = problem.space.repair(problem.space.sample(SAMPLED, rng), rng)
        valid = genomes[problem.evaluator.evaluate(genomes).valid][:RANDOM]
        searched = time.perf_counter() - begin
        for kind, genome in chosen + [("random", genome) for genome in valid]:
            executed = executed_over_analytic(problem, problem.space.decode(np.array([genome])), TRIALS)
            pairs = {name: attrs.evolve(one, executed=one.full).ratios for name, one in executed.items()}
            ratios = {name: (*pair, math.prod(pair)) for name, pair in pairs.items()}
            shown = "; ".join(f"{name} {energy:.3f} {cycles:.3f}" for name, (energy, cycles, _) in ratios.items())
            say(f"  {workload}/{hardware} {kind}: energy and cycles, {shown}")
            yield Claim(f"{workload}/{hardware}", bandwidth, kind, ratios)
        seconds = time.perf_counter() - begin
        say(f"{number + 1}/{len(cells)} {workload}/{hardware}: {seconds:.0f} s, {searched:.0f} s of them searching")


def summary(found: list[Claim]) -> list[list[str]]:
    rows = [["designs", "DRAM", "cost model", "n", "quantity", "geometric mean", "within 10 %", "within 15 %", "worst"]]
    for kind, bandwidth, model in itertools.product(("chosen", "random"), FASTER, MODELS):
        mine = [x.ratios[model] for x in found if (x.kind, x.bandwidth) == (kind, bandwidth) and model in x.ratios]
        for quantity, ratios in zip(("energy", "cycles", "EDP"), zip(*mine, strict=True), strict=False):
            near = [sum(1 / (1 + part) <= x <= 1 + part for x in ratios) / len(ratios) for part in (0.10, 0.15)]
            worst = max(ratios, key=lambda x: abs(math.log(x)))
            row = [kind, f"{bandwidth:g}x", model, str(len(ratios)), quantity, f"{mean(ratios):.3f}"]
            rows.append([*row, *(f"{x:.0%}" for x in near), f"{worst:.2f}"])
    return rows


def chosen(found: list[Claim]) -> list[list[str]]:
    quantities = (f"{model}: {quantity}" for model in MODELS for quantity in ("energy", "cycles", "EDP"))
    rows = [["chosen designs", "DRAM", *quantities]]
    for one in (one for one in found if one.kind == "chosen"):
        ratios = [f"{x:.3f}" for model in MODELS for x in one.ratios.get(model, (math.nan,) * 3)]
        rows.append([one.cell, f"{one.bandwidth:g}x", *ratios])
    return rows


def main() -> None:
    given = asked(
        __doc__, budget=BUDGET, out={"type": Path, "help": "write the page to this file too"},
        cell={"action": "append", "default": [], "help": "a cell such as mm3/cloud; by default all"},
        layers={"action": "store_true", "help": "eight layers of networks as well"},
        bandwidth={"action": "append", "type": float, "choices": FASTER, "help": "of DRAM; by default all"},
    )  # fmt: skip
    cells = CELLS + ([layer[:2] for layer in LAYERS] if given.layers else [])
    cells = [cell for cell in cells if not given.cell or "/".join(cell) in given.cell]
    registry, found = load(), list[Claim]()
    for bandwidth in given.bandwidth or FASTER:
        found += claims(cells, bandwidth, given.budget, registry)
    publish(
        "executed", given.out, given=given, some="".join(f" --cell {cell}" for cell in given.cell), cells=len(cells),
        computes=COMPUTES, random=RANDOM, trials=TRIALS, products=PRODUCTS, summary=summary(found), chosen=chosen(found),
    )  # fmt: skip


if __name__ == "__main__":
    main()
