"""What it is worth that tensors may be decoded on their way in, or pass by levels:
`python benchmarks/decoding.py [--genes decoding|passing] [--budget 4000]`.

Searches cells, for `decoding` on hardware whose inner levels all decode, with and without the genes of this segment, and
prints the best EDP of all seeds with the genes over that without, and what the designs found decode, or let pass by.
"""

from __future__ import annotations

from typing import Any

from common import HARDWARE, asked, mean

from sparsemap import load_problem, search
from sparsemap.files import markdown_table
from sparsemap.pieces.loading import load

WORKLOADS = ("mm3", "mm12", "conv4", "conv8")


def cell(
    workload: str, hardware: dict[str, Any], model: str, budget: int, seeds: int, registry: Any, genes: str
) -> list[Any]:
    """Ratio of the EDP, and what the best design decodes, or lets pass by."""
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


def main() -> None:
    genes = {"choices": ("decoding", "passing"), "default": "decoding"}
    given, registry = asked(__doc__, genes=genes, budget=4000, seeds=3), load()
    rows, ratios = [], dict[str, list[float]]()
    for model in ("timeloop", "physical"):
        for name in HARDWARE:
            spec = registry.spec("hardware", name)
            decodes = given.genes == "decoding"
            levels = [level | {"decodes": decodes and bool(i)} for i, level in enumerate(spec["levels"])]
            for workload in WORKLOADS:
                hardware = {**spec, "levels": levels}
                ratio, decoded = cell(workload, hardware, model, given.budget, given.seeds, registry, given.genes)
                ratios.setdefault(model, []).append(ratio)
                rows.append([f"{workload} on {name}", model, f"{ratio:.3f}", decoded])
                print(*rows[-1], flush=True)
    print(markdown_table([["cell", "cost model", "EDP, with genes over without", given.genes], *rows]))
    for model, found in ratios.items():
        print(f"{model}: {mean(found):.3f} in the mean of {len(found)} cells")


if __name__ == "__main__":
    main()
