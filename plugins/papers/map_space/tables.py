"""Table 2: mappings searched at one density of the weights, and their EDPs at the others. Table 3: the reduction as the
innermost or the outermost loop, over the density of one operand. Table 4: mappings for a range of activation densities
beside mappings for one, under one sparse strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import attrs
import numpy as np

from sparsemap.files import grouped
from sparsemap.pieces.contracts import Array

from ..rows import UJ, Row, Rows
from ..runs import Runner, StudyRun, edps_of
from .densities import (
    AWARE,
    TESTED,
    Stage,
    evaluated,
    one_of,
    printed,
    searched,
    static,
    tested,
    variant,
)

DENSITIES = (1.0, 0.5, 0.1, 0.01)
PATTERN = "structured"


def table_2(runner: Runner, name: str) -> dict[str, Any]:
    given = {f"{density:g}": {"Q": one_of(density, DENSITIES, PATTERN)} for density in DENSITIES}
    last = [stages[-1] for stages in searched(runner, name, runner.cells(name), given, rounds=2)]
    prints, cells, rows = printed("table-mse-2"), Rows(), []
    for workload, stages in grouped(last, lambda stage: stage[0].workload).items():
        edps = _edps(runner, name, stages)
        for density, theirs, row in zip(DENSITIES, prints[workload], edps.tolist(), strict=True):
            found = {f"searched_{x:g}": edp for x, edp in zip(DENSITIES, row, strict=True)}
            rows.append({"workload": workload, "tested": density} | found)
            for at, edp, printed_edp in zip(DENSITIES, row, theirs, strict=True):
                about = {"workload": workload, "tested": density, "searched": f"at {at:g}", "own": at == density}
                cells.append(about | {"edp": edp, "over": edp / min(row), "paper": printed_edp})
    ends = []
    for workload, mine in cells.by("workload").items():
        last_row, own = mine.by("tested")[DENSITIES[-1]], mine.where(own=True)
        paper = last_row.paper[0] / last_row.paper.lowest
        ends.append({"workload": workload, "dense": last_row.over[0], "paper": paper, "own": own.over.highest})
    return {"rows": rows, "cells": cells, "ends": ends, "study": runner.study(name)}


def _edps(runner: Runner, name: str, stages: Sequence[Stage]) -> Array:
    """(tested, searched) EDPs in pJ * cycles, the geometric mean over seeds."""
    seeds = [evaluated(runner, name, stage, "Q", PATTERN, DENSITIES) for stage in stages]
    return np.exp(np.mean([[np.log(evaluation.edp) for evaluation in found] for found in seeds], axis=0))


# ------------------------------------------------------------------------------------------------------------- Table 3

ORDERS = ("inner-product", "outer-product")


def table_3(runner: Runner, name: str) -> dict[str, Any]:
    study, cells = runner.study(name), []
    for cell, density, order in product(runner.cells(name), DENSITIES, ORDERS):
        given = {"P": {"type": "structured", "density": density}}
        ordered = attrs.evolve(cell, parts={**cell.parts, "space": order})
        cells.append(variant(ordered, order, given, workload=f"{cell.workload}-{density:g}"))
    runner.run_cells(name, cells)
    edps, rows = edps_of(map(StudyRun.of, cells), "workload"), Rows()
    for workload in study.workloads:
        for density, paper in zip(DENSITIES, printed("table-mse-3")[workload], strict=True):
            here = {order: edps[f"{workload}-{density:g}"][order] for order in ORDERS}
            about: Row = {"paper inner": paper[0], "paper outer": paper[1], "paper": paper[1] / paper[0]}
            about |= {"workload": workload, "density": density, "ratio": here[ORDERS[1]] / here[ORDERS[0]]}
            rows.append(about | here)
    return {"rows": rows.only(("workload", "density", *ORDERS)), "cells": rows, "study": study}


# ------------------------------------------------------------------------------------------------------------- Table 4

STATIC = (1.0, 0.5, 0.1)
STRATEGIES = (AWARE, *(static(density) for density in STATIC))
ROUNDS = 3
"""Rounds of searches; from the second on, each search starts from the designs of all four strategies."""

Columns = Mapping[str, Sequence[float]]
"""By strategy, an EDP per tested density."""


def cells_of(ours: Mapping[str, Columns]) -> Rows:
    """A row per workload, strategy and tested density: EDPs here and in the paper, and over those of the aware strategy;
    `own` for the density of a static search."""
    cells = Rows()
    for workload, columns in ours.items():
        paper = dict(zip(STRATEGIES, zip(*printed("table-mse-4")[workload], strict=True), strict=True))
        for name in STRATEGIES:
            for at, density in enumerate(TESTED):
                about = {"workload": workload, "strategy": name, "density": density, "own": name == static(density)}
                edps = {
                    "here": columns[name][at],
                    "paper": paper[name][at],
                    "over": columns[name][at] / columns[AWARE][at],
                }
                cells.append(about | edps | {"paper over": paper[name][at] / paper[AWARE][at]})
    return cells


def table_4(runner: Runner, name: str) -> dict[str, Any]:
    study = runner.study(name)
    *_, rows = tested(runner, name, runner.cells(name), STRATEGIES, "structured", ROUNDS)
    ours = {
        workload: {
            strategy: [edps.edp.geometric / UJ for edps in same.by("density").values()]
            for strategy, same in mine.by("strategy").items()
        }
        for workload, mine in rows.by("workload").items()
    }
    cells = cells_of(ours)
    about = {"study": study, "hardware": study.hardware[0], "ROUNDS": ROUNDS, "matched": cells.where(own=True)}
    statics = [row for row in cells if row["strategy"] != AWARE]
    return {"rows": rows, "cells": cells, "statics": statics, **about}
