"""Searches for a range of densities of P and for single ones, and what their designs are worth over all densities."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import SparseMapError, load_problem
from sparsemap.cli.output import study_progress
from sparsemap.study.cells import Cell
from sparsemap.study.study import run_cell
from sparsemap.study.workers import in_processes

from ..runs import Runner, geometric_mean

SEARCHED = (1.0, 0.8, 0.5, 0.2, 0.1)
"""Densities that a search for the range sees (Section 5.2.3 of the paper)."""
TESTED = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
AWARE = "aware"


@attrs.frozen
class Tested:
    """One design at all tested densities."""

    workload: str
    hardware: str
    seed: int
    strategy: str
    """`aware`, or the density that it was searched for, `static 0.5`."""
    edp: tuple[float, ...]
    """pJ * cycles at `TESTED`; infinity where the design is invalid."""
    reasons: tuple[tuple[str, ...], ...]


def static(density: float) -> str:
    return f"static {density}"


def density_of(strategy: str, pattern: str) -> dict[str, Any]:
    """What a strategy gives P: the paper's range with its weights, or a range of which one density counts."""
    shares = {"low": min(SEARCHED), "high": max(SEARCHED), "model": pattern}
    if strategy == AWARE:
        return {"type": "range", **shares, "points": SEARCHED, "weights": "inverse", "nominal": 0.5}
    density = float(strategy.split()[1])
    return {"type": "range", **shares, "points": [density], "weights": "equal", "nominal": density}


def tested(
    runner: Runner, name: str, pairs: Iterable[tuple[str, str]], strategies: Sequence[str], pattern: str
) -> list[Tested]:
    """Runs the searches of a study that are not finished, each (workload, hardware) with each strategy and seed, and
    evaluates their designs at every tested density."""
    study, folder = runner.study(name), runner.folder(name)
    cells = []
    for (workload, hardware), strategy, seed in product(pairs, strategies, study.seeds):
        parts = {
            "workload": {"extends": workload, "name": workload, "density": {"P": density_of(strategy, pattern)}},
            "hardware": hardware,
            "searcher": study.searchers[0],
            "space": study.space,
            "objective": study.objective,
            "cost_model": study.cost_model,
        }
        label = strategy.replace(" ", "-")
        place = str(folder.resolve() / f"{workload}--{hardware}--{label}--seed{seed}")
        about = {"workload": workload, "hardware": hardware, "searcher": strategy, "seed": seed}
        cells.append(Cell(**about, budget=study.budget, parts=parts, folder=place))
    run_cells_of(runner, cells, folder)
    return [design for group in _groups(cells) for design in _over_densities(runner, group, study.space, pattern)]


def run_cells_of(runner: Runner, cells: Sequence[Cell], folder: Path) -> None:
    """Runs the searches that are not finished; `SparseMapError` if one fails."""
    outcomes = in_processes(run_cell, cells, {}, runner.jobs) if runner.jobs > 1 else (run_cell(c, {}) for c in cells)
    failed = 0
    with study_progress(False, cells, folder) as progress:
        for done, outcome in enumerate(outcomes, 1):
            progress(done, len(cells), outcome)
            failed += outcome.state == "failed"
            if outcome.state == "interrupted":
                raise KeyboardInterrupt
    if failed:
        raise SparseMapError(f"{failed} of {len(cells)} searches failed")


def _groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells of one workload, hardware and seed, whose designs have the same genes."""
    groups: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.workload, cell.hardware, cell.seed), []).append(cell)
    return list(groups.values())


def _over_densities(runner: Runner, cells: Sequence[Cell], space: Any, pattern: str) -> list[Tested]:
    genomes = [json.loads(Path(cell.folder, "result.json").read_text("utf-8"))["genome"] for cell in cells]
    if None in genomes:
        raise SparseMapError(
            f"{cells[genomes.index(None)].name}: no valid design was found; give more designs (--scale)"
        )
    evaluations = []
    for density in TESTED:
        workload = {"extends": cells[0].workload, "density": {"P": {"type": pattern, "density": density}}}
        problem = load_problem(workload, cells[0].hardware, space, registry=runner.registry)
        evaluations.append(problem.evaluator.evaluate(np.array(genomes)))
    return [
        Tested(
            cell.workload,
            cell.hardware,
            cell.seed,
            cell.searcher,
            tuple(float(evaluation.edp[row]) for evaluation in evaluations),
            tuple(evaluation.reasons_of(row) for evaluation in evaluations),
        )
        for row, cell in enumerate(cells)
    ]


def over_best(designs: Sequence[Tested]) -> dict[str, tuple[float, ...]]:
    """By strategy, per tested density, the EDP over the best of these designs (those of one cell and seed)."""
    best = np.min([design.edp for design in designs], axis=0)
    return {design.strategy: tuple((np.array(design.edp) / best).tolist()) for design in designs}


def mean(values: Iterable[float]) -> float:
    """The geometric mean of those that are finite; NaN if none is."""
    return geometric_mean(value for value in values if math.isfinite(value))


def csv_rows(
    designs: Sequence[Tested], ratios: Mapping[tuple[str, str, int], Mapping[str, Sequence[float]]]
) -> list[Any]:
    """A row per design and density; empty where the design is invalid."""
    return [
        {"workload": design.workload, "hardware": design.hardware, "seed": design.seed, "strategy": design.strategy}
        | {"density": density, "edp": edp, "over_best": ratio, "reasons": " ".join(reasons)}
        for design in designs
        for density, edp, ratio, reasons in zip(
            TESTED,
            design.edp,
            ratios[design.workload, design.hardware, design.seed][design.strategy],
            design.reasons,
            strict=True,
        )
    ]
