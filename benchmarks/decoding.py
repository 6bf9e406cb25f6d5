"""What it is worth that tensors may be decoded on their way in: `python benchmarks/decoding.py [--budget 4000]`.

Searches cells on hardware whose inner levels all decode, with and without the genes of segment `decoding`, and prints
the best EDP of all seeds with the genes over that without, and how many of these designs decode a tensor.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from sparsemap import load_problem, search
from sparsemap.files import markdown_table
from sparsemap.pieces.loading import load

WORKLOADS, HARDWARE = ("mm3", "mm12", "conv4", "conv8"), ("edge", "mobile", "cloud")
SPACES: dict[str, Any] = {
    "full": "full",
    "decoding": {"extends": "full", "segments": ["orders", "tiling", "formats", "decoding", "gate-skip"]},
}


def cell(workload: str, hardware: dict[str, Any], model: str, budget: int, seeds: int, registry: Any) -> list[Any]:
    """Ratio of the EDP, and the tensors that the best design decodes."""
    best: dict[str, Any] = {}
    for name, space in SPACES.items():
        problem = load_problem(workload, hardware, space, cost_model=model, registry=registry)
        found = [search(problem, budget=budget, seed=seed) for seed in range(seeds)]
        best[name] = min(found, key=lambda one: one.found.edp)
    design = best["decoding"].found.design
    levels = design.problem.levels
    decoded = [f"{t.name} into {levels[design.decoded(i)].name}" for i, t in enumerate(design.problem.tensors)
               if design.decoded(i) < len(levels) and any(r.format.compressed for r in design.ranks(i))]  # fmt: skip
    return [best["decoding"].found.edp / best["full"].found.edp, ", ".join(decoded) or "none"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=3)
    given, registry = parser.parse_args(), load()
    rows, ratios = [], dict[str, list[float]]()
    for model in ("timeloop", "physical"):
        for name in HARDWARE:
            spec = registry.spec("hardware", name)
            levels = [level | {"decodes": bool(i)} for i, level in enumerate(spec["levels"])]
            for workload in WORKLOADS:
                hardware = {**spec, "levels": levels}
                ratio, decoded = cell(workload, hardware, model, given.budget, given.seeds, registry)
                ratios.setdefault(model, []).append(ratio)
                rows.append([f"{workload} on {name}", model, f"{ratio:.3f}", decoded])
                print(*rows[-1], flush=True)
    print(markdown_table([["cell", "cost model", "EDP, with genes over without", "decoded"], *rows]))
    for model, found in ratios.items():
        print(f"{model}: {np.exp(np.mean(np.log(found))):.3f} in the mean of {len(found)} cells")


if __name__ == "__main__":
    main()
