"""Table 3: the reduction as the innermost or the outermost loop, over the density of one operand."""

from __future__ import annotations

from itertools import product
from typing import Any

import attrs

from ..rows import Row, Rows
from ..runs import Runner, StudyRun, edps_of
from .densities import printed, variant

DENSITIES = (1.0, 0.5, 0.1, 0.01)
ORDERS = ("inner-product", "outer-product")


def page(runner: Runner, name: str) -> dict[str, Any]:
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
