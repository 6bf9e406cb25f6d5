"""The choice of a space: `python benchmarks/spaces.py [--out docs/results]`.

Searches cells in the spaces `paper` and `full` with every budget and seed, and compares the results with the best of
any search of the cell, and with the best in the same space: the value of the wider space, and the distance of searches
from convergence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import HARDWARE, asked, mean, publish, say

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.plots import page

WORKLOADS = ("mm2", "mm3", "mm5", "mm9", "mm12", "mm13", "conv4", "conv8")
SPACES, BUDGETS = ("paper", "full"), (2000, 20_000)
SEEDS = {"timeloop": 3, "physical": 3}
"""By cost model."""
Row = Mapping[str, Any]


def searched(cost_model: str, seeds: int) -> list[Row]:
    """A row per search: cell, space, budget, seed, EDP, and over its space's bound."""
    registry = load()
    rows: list[Row] = []
    for workload in WORKLOADS:
        for hardware in HARDWARE:
            for space in SPACES:
                problem = load_problem(workload, hardware, space, cost_model=cost_model, registry=registry)
                for budget in BUDGETS:
                    for seed in range(seeds):
                        found = search(problem, budget=budget, seed=seed)
                        numbers = {"edp": found.found.edp, "gap": found.gap}
                        cell = {"workload": workload, "hardware": hardware, "space": space, "budget": budget}
                        rows.append(cell | {"seed": seed, **numbers})
            best = least(rows[-len(SPACES) * len(BUDGETS) * seeds :], "space")
            say(f"{workload} on {hardware}: full {best['full',] / best['paper',]:.3f}x paper")
    return rows


def least(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], float]:
    found: dict[tuple[Any, ...], float] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        found[key] = min(found.get(key, np.inf), row["edp"])
    return found


def report(rows: list[Row]) -> str:
    """Results of the searches under a cost model."""
    cell, own = least(rows, "workload", "hardware"), least(rows, "workload", "hardware", "space")
    head = [
        "designs",
        "space",
        "over best of the cell",
        "worst cell",
        "over best of the space",
        "seeds apart",
        "at most",
    ]
    lines = [head]
    for budget in BUDGETS:
        for space in SPACES:
            mine = [row for row in rows if (row["budget"], row["space"]) == (budget, space)]
            by_cell = {
                key: np.array([row["edp"] for row in mine if (row["workload"], row["hardware"]) == key]) for key in cell
            }
            over = {key: mean(found / cell[key]) for key, found in by_cell.items()}
            apart = [found.max() / found.min() for found in by_cell.values()]
            worst = max(over, key=lambda key: over[key])
            near = mean(value / own[*key, space] for key, found in by_cell.items() for value in found)
            line = [
                f"{budget:,}",
                f"`{space}`",
                f"{mean(over.values()):.3f}x",
                f"{over[worst]:.3f}x, {' on '.join(worst)}",
            ]
            lines.append([*line, f"{near:.3f}x", f"{mean(apart):.3f}x", f"{max(apart):.3f}x"])
    ratios = {key: own[*key, "full"] / own[*key, "paper"] for key in cell}
    cells = [[*key, *(f"{own[*key, space]:.3e}" for space in SPACES), f"{ratio:.3f}x"] for key, ratio in ratios.items()]
    return page(
        __file__, "spaces-model", cells=len(cell), seeds=1 + max(row["seed"] for row in rows), searches=lines,
        mean=mean(ratios.values()), below=sum(ratio < 0.99 for ratio in ratios.values()),
        above=sum(ratio > 1.01 for ratio in ratios.values()),
        best=[["workload", "hardware", "`paper`", "`full`", "ratio"], *cells],
    )  # fmt: skip


def main() -> None:
    given = asked(__doc__, out={"type": Path, "help": "folder for spaces.md and spaces.csv"})
    rows = {model: searched(model, seeds) for model, seeds in SEEDS.items()}
    table = [{"cost_model": model, **row} for model, found in rows.items() for row in found]
    out = given.out and given.out / "spaces.md"
    publish("spaces", out, table, **{model: report(found) for model, found in rows.items()})


if __name__ == "__main__":
    main()
