"""The value of decoding tensors on their way in, or of passing by levels: `python benchmarks/decoding.py [--genes
decoding|passing] [--budget 500] [--seeds 1] [--network NAME] [--out FILE.csv]`.

Searches 84 cells, or networks, with and without the genes of a segment (for `decoding` on hardware with decoders at all
inner levels), and prints the best EDP of all seeds with the genes over the best without, and decoded or passing tensors
of the best designs. With --out an interrupted run goes on."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from common import HARDWARE, WORKLOADS, asked, mean

from sparsemap import load_problem, search, search_network
from sparsemap.markdown import markdown_table
from sparsemap.pieces.loading import load

PLATFORMS = ("edge-16gbps", *HARDWARE[1:])
HEADER = ("workload", "hardware", "genes", "cost_model", "budget", "seeds", "edp_over_without", "found")


def cell(
    workload: str, hardware: dict[str, Any], model: str, budget: int, seeds: int, registry: Any, genes: str
) -> list[Any]:
    """Ratio of the EDP, and decoded or passing tensors of the best design."""
    best: dict[str, Any] = {}
    more = {"extends": "full", "segments": ["orders", "tiling", "formats", genes, "gate-skip"]}
    for name, space in {"full": "full", genes: more}.items():
        problem = load_problem(workload, hardware, space, cost_model=model, registry=registry)
        found = [search(problem, budget=budget, seed=seed) for seed in range(seeds)]
        best[name] = min(found, key=lambda one: one.found.edp)
    design = best[genes].found.design
    levels = design.problem.levels
    decoded = [f"{t.name} into {levels[design.decoded(i)].name}" for i, t in enumerate(design.problem.tensors)
               if design.decoded(i) < len(levels) and any(r.format.compressed for r in design.ranks(i))]  # fmt: skip
    decoded += [f"{t.name} by {level.name}" for i, t in enumerate(design.problem.tensors) for level in levels
                if not design.problem.stores(i, level.index)]  # fmt: skip
    return [best[genes].found.edp / best["full"].found.edp, ", ".join(decoded) or "none"]


def network(
    name: str, hardware: dict[str, Any], model: str, budget: int, seeds: int, registry: Any, genes: str
) -> list[Any]:
    """The same of all layers together."""
    more = {"extends": "full", "segments": ["orders", "tiling", "formats", genes, "gate-skip"]}
    plain, free = (
        min(
            search_network(name, hardware, budget, seed, space=space, cost_model=model, fuse=False).edp or math.inf
            for seed in range(seeds)
        )
        for space in ("full", more)
    )
    return [free / plain, "-"]


def table(rows: list[list[str]]) -> str:
    """Ratios by genes and hardware: the mean, of how many cells, better and worse by more than 1 %, and the ends."""
    found = []
    for genes, hardware in sorted({(row[2], name) for row in rows for name in (*PLATFORMS, "all")}):
        ratios = np.array([float(row[6]) for row in rows if row[2] == genes and hardware in (row[1], "all")])
        if ratios.size:
            ends = f"{ratios.min():.2f} to {ratios.max():.2f}"
            better, worse = int((ratios < 0.99).sum()), int((ratios > 1.01).sum())
            found.append([genes, hardware, str(len(ratios)), f"{mean(ratios):.3f}", str(better), str(worse), ends])
    header = ["genes", "hardware", "cells", "EDP, with over without", "better", "worse", "from .. to"]
    return markdown_table([header, *found], "<<>>>>>")


def main() -> None:
    given = asked(
        __doc__.split("\n")[0], genes={"choices": ("decoding", "passing"), "default": "decoding"}, cost_model="physical",
        budget=500, seeds=1, network={"action": "append", "help": "networks in place of the cells"}, out={"type": Path},
    )  # fmt: skip
    registry = load()
    known = list(csv.reader(given.out.open()))[1:] if given.out and given.out.exists() else []
    rows = [row for row in known if row[2:6] == [given.genes, given.cost_model, str(given.budget), str(given.seeds)]]
    for name in PLATFORMS:
        spec = registry.spec("hardware", name)
        decodes = given.genes == "decoding"
        levels = [level | {"decodes": decodes and bool(i)} for i, level in enumerate(spec["levels"])]
        for workload in given.network or WORKLOADS:
            if any(row[:2] == [workload, name] for row in rows):
                continue
            ratio, found = (network if given.network else cell)(
                workload, {**spec, "levels": levels}, given.cost_model, given.budget, given.seeds, registry, given.genes
            )
            settings = (given.genes, given.cost_model, given.budget, given.seeds)
            rows.append([workload, name, *map(str, settings), f"{ratio:.4f}", found])
            print(*rows[-1], flush=True)
            if given.out:
                with given.out.open("a", newline="") as file:
                    csv.writer(file).writerows([HEADER, rows[-1]] if file.tell() == 0 else rows[-1:])
    print(table(rows))


if __name__ == "__main__":
    main()
