"""Table 2: mappings searched at one density of the weights, and their EDPs at the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemap.files import grouped
from sparsemap.pieces.contracts import Array

from ..rows import Rows
from ..runs import Runner
from .densities import Stage, evaluated, one_of, printed, searched

DENSITIES = (1.0, 0.5, 0.1, 0.01)
PATTERN = "structured"


def page(runner: Runner, name: str) -> dict[str, Any]:
    given = {f"{density:g}": {"Q": one_of(density, DENSITIES, PATTERN)} for density in DENSITIES}
    last = [stages[-1] for stages in searched(runner, name, runner.cells(name), given, rounds=2)]
    prints, cells, rows = printed("table-mse-2"), Rows(), []
    for workload, stages in grouped(last, lambda stage: stage[0].workload).items():
        edps = _edps(runner, name, stages)
        for density, theirs, row in zip(DENSITIES, prints[workload], edps.tolist(), strict=True):
            rows.append(
                {"workload": workload, "tested": density}
                | dict(zip((f"searched_{x:g}" for x in DENSITIES), row, strict=True))
            )
            for searched_at, edp, printed_edp in zip(DENSITIES, row, theirs, strict=True):
                about = {
                    "workload": workload,
                    "tested": density,
                    "searched": f"at {searched_at:g}",
                    "own": searched_at == density,
                }
                cells.append(about | {"edp": edp, "over": edp / min(row), "paper": printed_edp})
    ends = []
    for workload, found in cells.by("workload").items():
        last_row, own = found.by("tested")[DENSITIES[-1]], Rows(row for row in found if row["own"])
        paper = last_row.paper[0] / last_row.paper.lowest
        ends.append({"workload": workload, "dense": last_row.over[0], "paper": paper, "own": own.over.highest})
    return {"rows": rows, "cells": cells, "ends": ends, "study": runner.study(name)}


def _edps(runner: Runner, name: str, stages: Sequence[Stage]) -> Array:
    """(tested, searched) EDPs in pJ * cycles, the geometric mean over seeds."""
    seeds = [evaluated(runner, name, stage, "Q", PATTERN, DENSITIES) for stage in stages]
    return np.exp(np.mean([[np.log(evaluation.edp) for evaluation in found] for found in seeds], axis=0))
