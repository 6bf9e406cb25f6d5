"""Effects of each defect of Timeloop v3.0.3 on best and random valid designs: `python benchmarks/quirks.py`.

Per cell, searches of 1,000 designs with two seeds and two objectives give the best designs, random sampling the others.
All are evaluated by default, with each quirk, and with all. A design differs from a ten thousandth on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from sparsemap_plugins.analytic.quirks import QUIRKS

from sparsemap import Problem, load_problem, search
from sparsemap.markdown import markdown_table
from sparsemap.pieces.loading import load

BUDGET, SEEDS, OBJECTIVES, RANDOM = 1000, (0, 1), ("edp", "energy"), 400
PRODUCT = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 128, "k": 128, "n": 128}}
MODELS: dict[str, dict[str, Any]] = {
    "banded": {"P": {"type": "banded", "half_width": 6}, "Q": 0.2},
    "two-of-four": {"P": {"type": "n-of-m", "n": 2, "m": 4}, "Q": 0.3},
    "dense": {"P": 1.0, "Q": 0.1},
    "9/128": {"P": 9 / 128, "Q": 9 / 128},
    "nearly empty": {"P": 0.002, "Q": 0.3},
}
CELLS: list[tuple[Any, str]] = [
    *(("mm1", "edge-16gbps"), ("mm3", "cloud"), ("mm5", "mobile"), ("mm12", "mobile"), ("mm13", "edge-16gbps")),
    *(("conv1", "edge-16gbps"), ("conv4", "cloud"), ("conv8", "mobile"), ("conv11", "clustered")),
    *(({"name": name, **PRODUCT, "density": density}, "edge-16gbps") for name, density in MODELS.items()),
    ("batched-matmul-8x64x64x64", "clustered"),
]


def designs() -> Iterator[tuple[str, Problem, np.ndarray]]:
    """(found or random, problem, genomes) of all cells."""
    registry = load()
    for workload, hardware in CELLS:
        found = []
        for seed, objective in itertools.product(SEEDS, OBJECTIVES):
            problem = load_problem(
                workload, hardware, "paper", objective=objective, cost_model="timeloop", registry=registry
            )
            result = search(problem, budget=BUDGET, seed=seed)
            found += [result.best.genome] if result.best else []
        rng = np.random.default_rng(0)
        genomes = problem.space.repair(problem.space.sample(20 * RANDOM, rng), rng)
        yield "found", problem, np.unique(found, axis=0)
        yield "random", problem, genomes[problem.evaluator.evaluate(genomes).valid][:RANDOM]


def changes(problem: Problem, genomes: np.ndarray, quirks: str) -> np.ndarray:
    """(3, n) relative changes of energy, cycles and EDP; NaN where Timeloop stops."""
    decoded = problem.space.decode(genomes)
    model: Any = problem.cost_model
    by_default, there = (attrs.evolve(model, quirks=q).evaluate(decoded, problem) for q in ("none", quirks))
    pairs = [(by_default.energy_pj, there.energy_pj), (by_default.cycles, there.cycles), (by_default.edp, there.edp)]
    with np.errstate(invalid="ignore"):
        return np.where(there.valid, [theirs / ours - 1.0 for ours, theirs in pairs], np.nan)


def main() -> None:
    rows: dict[tuple[str, str], list[np.ndarray]] = {}
    for kind, problem, genomes in designs():
        for quirks in (*QUIRKS, "timeloop-v3"):
            rows.setdefault((quirks, kind), []).append(changes(problem, genomes, quirks))
    table = [["quirk", "designs", "differ", "stop", "energy", "cycles", "EDP"]]
    for (quirks, kind), parts in rows.items():
        moved = np.concatenate(parts, axis=1)
        stops = np.isnan(moved).any(axis=0)
        differ = (np.abs(moved[:, ~stops]) >= 1e-4).any(axis=0)
        low, high = (pick(moved[:, ~stops], axis=1, initial=0.0) for pick in (np.min, np.max))
        spans = (f"{a:+.1%} .. {b:+.1%}" for a, b in zip(low, high, strict=True))
        table.append([quirks, kind, f"{differ.sum()} of {moved.shape[1]}", f"{stops.sum()}", *spans])
    print(markdown_table(table, "<<>"))


if __name__ == "__main__":
    main()
