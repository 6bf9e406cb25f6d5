"""Searches for a range of densities of a tensor and for single ones, and the cost of the designs over all densities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Evaluation, SparseMapError
from sparsemap.csv_files import read_csv
from sparsemap.files import grouped
from sparsemap.study.cells import Cell

from ..rows import Row, Rows
from ..runs import Runner, StudyRun

SEARCHED = (1.0, 0.8, 0.5, 0.2, 0.1)
"""Densities of a search for the range (Section 5.2.3 of the paper)."""
TESTED = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
AWARE = "aware"

Stage = Sequence[Cell]
"""Searches of one workload on one hardware with one seed, for different densities."""


def printed(table: str) -> dict[str, list[list[float]]]:
    """The paper's EDPs, cycles * uJ: by workload, a row per density."""
    rows = grouped(read_csv(Path(__file__).with_name(f"{table}.csv")), lambda row: row["workload"])
    return {workload: [[float(x) for x in [*row.values()][2:]] for row in same] for workload, same in rows.items()}


def static(density: float) -> str:
    return f"static {density}"


def one_of(density: float, densities: Sequence[float], pattern: str) -> dict[str, Any]:
    """A range of densities with a single point."""
    return {
        "type": "range", "low": min(densities), "high": max(densities), "model": pattern,
        "points": [density], "weights": "equal", "nominal": density,
    }  # fmt: skip


def density_of(strategy: str, pattern: str) -> dict[str, Any]:
    """The density of P by strategy: the paper's range with its weights, or the range with a single point."""
    if strategy == AWARE:
        return {**one_of(0.5, SEARCHED, pattern), "points": SEARCHED, "weights": "inverse"}
    return one_of(float(strategy.split()[1]), SEARCHED, pattern)


def tested(
    runner: Runner, name: str, cells: Sequence[Cell], strategies: Sequence[str], pattern: str, rounds: int = 1
) -> list[Rows]:
    """Per round, a row for each design of `searched` with each strategy (`aware`, or the density of the search, `static 0.5`)
    and each tested density; the EDP is infinite for an invalid design."""
    given = {strategy: {"P": density_of(strategy, pattern)} for strategy in strategies}
    return [
        over_best(
            {"workload": cell.workload, "hardware": cell.hardware, "seed": cell.seed, "strategy": cell.searcher}
            | {"density": density, "edp": float(one.edp[at]), "over_best": 0, "reasons": " ".join(one.reasons_of(at))}
            for stage in stages
            for found in [evaluated(runner, name, stage, "P", pattern, TESTED)]
            for at, cell in enumerate(stage)
            for density, one in zip(TESTED, found, strict=True)
        )
        for stages in zip(*searched(runner, name, cells, given, rounds), strict=True)
    ]


def over_best(rows: Iterable[Row]) -> Rows:
    """Rows with the EDP over the best design of the same place, seed and density."""
    found = Rows(rows)
    for same in found.by("workload", "hardware", "seed", "density").values():
        least = same.edp.lowest
        for row in same:
            row["over_best"] = row["edp"] / least
    return found


def searched(
    runner: Runner, name: str, cells: Sequence[Cell], given: Mapping[str, Mapping[str, Any]], rounds: int
) -> list[list[Stage]]:
    """Per cell, a stage per round: searches of a study with each of these densities, by label.

    Searches of a later round start from all designs of the round before, so that chance does not look like an effect of
    density."""
    found = []
    for cell in cells:
        stages: list[Stage] = []
        for stage in range(1, rounds + 1):
            after = [one.folder for one in stages[-1]] if stages else []
            again = f"-{stage}" if stage > 1 else ""
            stages.append([variant(cell, label, density, again, after) for label, density in given.items()])
        found.append(stages)
    runner.run_cells(name, [cell for stages in found for stage in stages for cell in stage])
    return found


def variant(
    cell: Cell, label: str, density: Mapping[str, Any], again: str = "", after: Sequence[str] = (), workload: str = ""
) -> Cell:
    """A cell with other densities, a label in place of the searcher's name and perhaps another name of the `workload`."""
    workload = workload or cell.workload
    name = f"{workload}--{cell.hardware}--{label.replace(' ', '-')}{again}--seed{cell.seed}"
    parts = {**cell.parts, "workload": {"extends": cell.workload, "name": workload, "density": density}}
    folder = str(Path(cell.folder).with_name(name))
    return attrs.evolve(cell, workload=workload, searcher=label, parts=parts, folder=folder, after=tuple(after))


def evaluated(
    runner: Runner, name: str, stage: Stage, tensor: str, pattern: str, densities: Sequence[float]
) -> list[Evaluation]:
    """The designs of a stage, in order, at each of these densities of a tensor."""
    found = [StudyRun.of(cell).result["genome"] for cell in stage]
    for cell, genome in zip(stage, found, strict=True):
        if genome is None:
            raise SparseMapError(f"{cell.name}: no valid design was found; give more designs (--scale)")
    study, evaluations = runner.study(name), []
    for density in densities:
        workload = {"extends": stage[0].workload, "density": {tensor: {"type": pattern, "density": density}}}
        problem = runner.problem(study, workload, stage[0].hardware)
        evaluations.append(problem.evaluator.evaluate(np.array(found)))
    return evaluations
