"""Claims of the cost models against execution, in cells scaled down: `python benchmarks/executed.py [--out FILE.md]`.

`--bandwidth 4` is a part of the study: DRAM has four times its bandwidth in every cell, for the search as well.

A cell is scaled down as a whole: its largest dimension is halved until execution takes at most `COMPUTES`
multiply-accumulates; capacities shrink as the tensors do, every fan-out by the same factor, and bandwidths so that each
level's time keeps its ratio to that of the computes; energies per access are those of the full size, leakage is in
proportion to the lanes. Where fewer than `PRODUCTS` nonzero products would be left, both operands become denser. In
each, a search under `physical` chooses a design, and random valid ones stand beside it. All are executed on three
random tensors, with every charge; the claims of `timeloop` and `physical` about the same designs are held against that.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from sparsemap_plugins.verify import executed_over_analytic

from sparsemap import Problem, load_problem, search
from sparsemap.files import write_text
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

COMPUTES, BUDGET, SAMPLED, RANDOM, TRIALS = 150_000, 1500, 1000, 2, 3
PRODUCTS = 2_000
BANDWIDTHS = (1.0, 4.0, 16.0)
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
    """Times that of the platform."""
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
    *operands, output = (f"{x.name}[{', '.join(map(_index, x.ranks))}]" for x in node.loops.tensors)
    density = {x.name: 1.0 for x in node.loops.tensors if not x.output} | dict(getattr(node.piece, "density", {}))
    table = {"type": "einsum", "einsum": f"{output} = {' * '.join(operands)}", "dims": dict(node.loops.sizes)}
    densities = next((given for known, _, given in LAYERS if known == name), {})
    return registry.build("workload", table | {"density": density | densities})


def _index(rank: tuple[tuple[str, int], ...]) -> str:
    return " + ".join(f"{factor}*{dim}" if factor > 1 else dim for dim, factor in rank)


def scaled(workload: str, hardware: str, registry: Any, bandwidth: float = 1.0) -> Problem:
    """The cell, small enough to be executed; DRAM with so many times its bandwidth."""
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
    words, computes = (_ratio(small, full, part) for part in ("words", "computes"))
    groups = sum(level.memory.fanout is not None and level.fanout > 1 for level in full.levels)
    shrink = computes ** (1.0 / (groups + 1))  # lanes, and steps of a lane
    levels, lanes = [], 1.0
    fanouts = [max(2, round(level.fanout * shrink)) if level.fanout > 1 else level.fanout for level in full.levels]
    for level, fanout in zip(full.levels, fanouts, strict=True):
        lanes *= fanout / level.fanout
    steps = computes / lanes
    instances = 1.0
    for level, fanout, table in zip(full.levels, fanouts, full.hardware.levels, strict=True):
        made = dict(table)
        actions = ("read", "write", "metadata_read", "metadata_write")
        made["leakage_mw"] = full.leakage_mw(level.index) * computes / steps / instances
        made["energy"] = {action: full.energy_pj(level.index, action) for action in actions}
        if level.capacity_bits is not None:
            each = words if level.index < len(full.levels) - 1 else words / instances
            made["capacity"] = f"{max(16, round(level.capacity_bits / level.word_bits * min(1.0, each)))} words"
        for key in ("bandwidth", "read_bandwidth", "write_bandwidth"):
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


def _ratio(small: Problem, full: Problem, part: str) -> float:
    def size(problem: Problem) -> float:
        sizes = {dim: int(n) for dim, n in problem.sizes.items()}
        if part == "computes":
            return float(math.prod(sizes.values()))
        return float(sum(math.prod(tensor.shape(sizes)) for tensor in problem.tensors))

    return size(small) / size(full)


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
            ratios = {name: one.ratios(full=True) for name, one in executed.items()}
            shown = "; ".join(f"{name} {energy:.3f} {cycles:.3f}" for name, (energy, cycles, _) in ratios.items())
            print(f"  {workload}/{hardware} {kind}: energy and cycles, {shown}", file=sys.stderr, flush=True)
            yield Claim(f"{workload}/{hardware}", bandwidth, kind, ratios)
        seconds = time.perf_counter() - begin
        text = f"{number + 1}/{len(cells)} {workload}/{hardware}: {seconds:.0f} s, {searched:.0f} s of them searching"
        print(text, file=sys.stderr, flush=True)


def table(found: list[Claim]) -> str:
    lines = ["| designs | DRAM | cost model | n | quantity | geometric mean | within 10 % | within 15 % | worst |"]
    lines.append("|---|---|---|---:|---|---:|---:|---:|---:|")
    for kind, bandwidth, model in itertools.product(("chosen", "random"), BANDWIDTHS, ("timeloop", "physical")):
        mine = [x.ratios[model] for x in found if (x.kind, x.bandwidth) == (kind, bandwidth) and model in x.ratios]
        for quantity, ratios in zip(("energy", "cycles", "EDP"), zip(*mine, strict=True), strict=False):
            near = [sum(1 / (1 + part) <= x <= 1 + part for x in ratios) / len(ratios) for part in (0.10, 0.15)]
            worst = max(ratios, key=lambda x: abs(math.log(x)))
            row = kind, f"{bandwidth:g}x", model, len(ratios), quantity, f"{statistics.geometric_mean(ratios):.3f}"
            lines.append("| " + " | ".join(map(str, (*row, *(f"{x:.0%}" for x in near), f"{worst:.2f}"))) + " |")
    lines += ["", "| chosen designs | DRAM | timeloop: energy | cycles | EDP | physical: energy | cycles | EDP |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|---:|")
    for one in found:
        if one.kind == "chosen":
            cells = [f"{x:.3f}" for model in ("timeloop", "physical") for x in one.ratios.get(model, (math.nan,) * 3)]
            lines.append(f"| {one.cell} | {one.bandwidth:g}x | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


HEAD = """# Claims against execution

Executed over analytic, by `python benchmarks/executed.py --budget {budget} --layers{some} --out docs/results/executed.md`:
{cells} cells scaled down to at most {computes:,} multiply-accumulates, each with the bandwidth of its platform's DRAM and
with 4 and 16 times that; in each the design that a search of {budget:,} under `physical` chose and {random} random valid
ones, executed on {trials} random tensors with every charge ([agreement.md](../agreement.md) says how). Both
models are held against that one execution: 1.00 is a claim that holds, above 1 a design needs more than claimed.
Workloads so sparse that fewer than {products:,} products were left (mm5, mm6 and mm13; 12 in one) are made denser: of so
few, a claim says little.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    parser.add_argument("--cell", action="append", help="a cell such as mm3/cloud; by default all", default=[])
    parser.add_argument("--layers", action="store_true", help="eight layers of networks as well")
    parser.add_argument("--bandwidth", action="append", type=float, choices=BANDWIDTHS, help="of DRAM; by default all")
    parser.add_argument("--budget", type=int, default=BUDGET, help="designs that each search evaluates")
    options = parser.parse_args()
    cells = CELLS + ([layer[:2] for layer in LAYERS] if options.layers else [])
    cells = [cell for cell in cells if not options.cell or "/".join(cell) in options.cell]
    head = HEAD.format(
        some="".join(f" --cell {cell}" for cell in options.cell),
        cells=len(cells),
        computes=COMPUTES,
        budget=options.budget,
        random=RANDOM,
        trials=TRIALS,
        products=PRODUCTS,
    )
    registry, found = load(), list[Claim]()
    for bandwidth in options.bandwidth or BANDWIDTHS:
        found += claims(cells, bandwidth, options.budget, registry)
    text = head + table(found)
    print(text)
    if options.out:
        write_text(options.out, text)


if __name__ == "__main__":
    main()
