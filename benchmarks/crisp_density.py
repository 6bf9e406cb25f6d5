"""Processor time of a default search with density `crisp` against one with `block`: K = 4608, 20,000 designs, one run.

python benchmarks/crisp_density.py
"""

from __future__ import annotations

import time
from typing import Any

import sparsemap

WORKLOAD = {"einsum": "Z[s, x] = P[x, k] * Q[s, k]", "dims": {"s": 512, "k": 4608, "x": 49}}


def seconds(density: dict[str, Any]) -> float:
    """Processor seconds of one search, tables included."""
    start = time.process_time()
    workload = {"name": "layer", **WORKLOAD, "density": {"P": 1.0, "Q": density}}
    problem = sparsemap.load_problem(workload, "mobile", "paper", cost_model="timeloop")
    sparsemap.search(problem, budget=20_000, seed=0)
    return time.process_time() - start


def main() -> None:
    seconds({"type": "uniform", "density": 0.1})  # imports and first calls belong to neither
    for size, keep in ((64, 14), (16, 58)):
        crisp = seconds({"type": "crisp", "n": 2, "m": 4, "block": size, "keep": keep})
        block = seconds({"type": "block", "block": [size, size], "density": keep * size / 4608})
        print(f"block {size}: crisp {crisp:.1f} s, block {block:.1f} s, ratio {crisp / block:.2f}")


if __name__ == "__main__":
    main()
