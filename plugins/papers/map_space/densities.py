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

from sparsemap import SparseMapError
from sparsemap.cli.output import study_progress
from sparsemap.pieces.contracts import Array
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
    runner: Runner,
    name: str,
    pairs: Iterable[tuple[str, str]],
    strategies: Sequence[str],
    pattern: str,
    rounds: int = 1,
) -> list[list[Tested]]:
    """Runs the searches of a study that are not finished, each (workload, hardware) with each strategy and seed, in
    rounds (see `searches`); per round its designs, evaluated at every tested density."""
    study, folder = runner.study(name), runner.folder(name).resolve()
    given = {strategy: {"P": density_of(strategy, pattern)} for strategy in strategies}
    found = [searches(study, folder, *pair, seed, given, rounds) for pair, seed in product(pairs, study.seeds)]
    run_cells_of(runner, [cell for stages in found for cells in stages for cell in cells.values()], folder)
    return [
        [design for cells in stage for design in _over_densities(runner, study, cells, pattern)]
        for stage in zip(*found, strict=True)
    ]


def searches(
    study: Any,
    folder: Path,
    workload: str,
    hardware: str,
    seed: int,
    given: Mapping[str, Mapping[str, Any]],
    rounds: int,
) -> list[dict[str, Cell]]:
    """Per round, by label, the searches of a workload with these densities of its tensors. Those of a later round start
    from all designs of the one before, so that what one search misses by chance does not look like an effect of density."""
    stages: list[dict[str, Cell]] = []
    for stage in range(1, rounds + 1):
        after = tuple(cell.folder for cell in stages[-1].values()) if stages else ()
        cells = {}
        for label, density in given.items():
            parts = {
                "workload": {"extends": workload, "name": workload, "density": density},
                "hardware": hardware,
                "searcher": study.searchers[0],
                "space": study.space,
                "objective": study.objective,
                "cost_model": study.cost_model,
            }
            place = str(
                folder
                / f"{workload}--{hardware}--{label.replace(' ', '-')}{'' if stage == 1 else f'-{stage}'}--seed{seed}"
            )
            about: dict[str, Any] = {"workload": workload, "hardware": hardware, "searcher": label, "seed": seed}
            cells[label] = Cell(**about, budget=study.budget, parts=parts, folder=place, after=after)
        stages.append(cells)
    return stages


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


def genomes_of(cells: Mapping[str, Cell]) -> Array:
    """(searches, G): what each has found."""
    found = [json.loads(Path(cell.folder, "result.json").read_text("utf-8"))["genome"] for cell in cells.values()]
    for cell, genome in zip(cells.values(), found, strict=True):
        if genome is None:
            raise SparseMapError(f"{cell.name}: no valid design was found; give more designs (--scale)")
    return np.array(found)


def _over_densities(runner: Runner, study: Any, cells: Mapping[str, Cell], pattern: str) -> list[Tested]:
    genomes = genomes_of(cells)
    first = next(iter(cells.values()))
    evaluations = []
    for density in TESTED:
        workload = {"extends": first.workload, "density": {"P": {"type": pattern, "density": density}}}
        problem = runner.problem(study, workload, first.hardware)
        evaluations.append(problem.evaluator.evaluate(genomes))
    return [
        Tested(
            cell.workload,
            cell.hardware,
            cell.seed,
            strategy,
            tuple(float(evaluation.edp[row]) for evaluation in evaluations),
            tuple(evaluation.reasons_of(row) for evaluation in evaluations),
        )
        for row, (strategy, cell) in enumerate(cells.items())
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
