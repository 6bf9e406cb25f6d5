"""Which space a search should have: `python benchmarks/spaces.py [--out docs/results]`.

Searches cells in the spaces `paper` and `full` with every budget and seed, and compares what they find with the best
that any of these searches has found in the cell, and with the best in its own space: how much the wider space is worth,
and how far searches in it are from converging.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap import load_problem, search
from sparsemap.files import csv_text, markdown_table, write_text
from sparsemap.pieces.loading import load

WORKLOADS = ("mm2", "mm3", "mm5", "mm9", "mm12", "mm13", "conv4", "conv8")
HARDWARE = ("edge", "mobile", "cloud")
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
            best = {
                s: min(row["edp"] for row in rows[-len(SPACES) * len(BUDGETS) * seeds :] if row["space"] == s)
                for s in SPACES
            }
            print(
                f"{workload} on {hardware}: full {best['full'] / best['paper']:.3f}x paper", file=sys.stderr, flush=True
            )
    return rows


def mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def least(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], float]:
    found: dict[tuple[Any, ...], float] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        found[key] = min(found.get(key, np.inf), row["edp"])
    return found


def page(rows: list[Row]) -> str:
    return (
        "# The paper's space and the full one\n\n`python benchmarks/spaces.py --out docs/results`: searches with equal numbers "
        "of designs in the spaces `paper` and `full`. *Over best of the cell* is the EDP over the lowest of all these "
        "searches, as geometric mean; *over best of the space* counts those in the same space alone, and says how far "
        "searches are from converging there; *seeds apart* is the largest EDP of a cell's seeds over the smallest.\n"
        + "".join("\n" + report([row for row in rows if row["cost_model"] == model], model) for model in SEEDS)
    )


def report(rows: list[Row], cost_model: str) -> str:
    seeds = 1 + max(row["seed"] for row in rows)
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
    lines = []
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
    cells = [
        [
            *key,
            f"{own[*key, 'paper']:.3e}",
            f"{own[*key, 'full']:.3e}",
            f"{own[*key, 'full'] / own[*key, 'paper']:.3f}x",
        ]
        for key in cell
    ]
    ratios = [own[*key, "full"] / own[*key, "paper"] for key in cell]
    return (
        f"## `{cost_model}`\n\n{len(cell)} cells, {seeds} seeds.\n\n"
        + markdown_table([head, *lines], "<<><>>>")
        + f"\nBest found in `full` over best found in `paper`: {mean(ratios):.3f}x as geometric mean, below 0.99x in "
        f"{sum(ratio < 0.99 for ratio in ratios)} cells, above 1.01x in {sum(ratio > 1.01 for ratio in ratios)}.\n\n"
        + markdown_table([["workload", "hardware", "`paper`", "`full`", "ratio"], *cells], "<<>>>")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for spaces.md and spaces.csv")
    given = parser.parse_args()
    rows: list[Row] = [{"cost_model": model, **row} for model, seeds in SEEDS.items() for row in searched(model, seeds)]
    text = page(rows)
    print(text)
    if given.out is not None:
        write_text(given.out / "spaces.md", text)
        write_text(given.out / "spaces.csv", csv_text(rows))


if __name__ == "__main__":
    main()
