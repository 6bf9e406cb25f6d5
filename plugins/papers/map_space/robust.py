"""Designs for a range of activation densities beside designs for one density, with formats and skipping searched."""

from __future__ import annotations

import math
from typing import Any

from sparsemap.files import times

from ..rows import Row, Rows
from ..runs import Runner
from .densities import AWARE, SEARCHED, TESTED, static, tested

PAIRS = (("conv4", "mobile"), ("conv4", "edge-16gbps"), ("mm3", "cloud"))
STRATEGIES = (AWARE, *(static(density) for density in SEARCHED))


def page(runner: Runner, name: str) -> dict[str, Any]:
    searches = [cell for cell in runner.cells(name) if (cell.workload, cell.hardware) in PAIRS]
    (rows,) = tested(runner, name, searches, STRATEGIES, "uniform")
    cells, notes = list[Row](), []
    for (workload, hardware, strategy), same in rows.by("workload", "hardware", "strategy").items():
        cells.append({"workload": workload, "hardware": hardware, "strategy": strategy, "shown": shown(same)})
        notes += [f"- {workload} on {hardware}, {strategy}: {text}" for text in [why(same)] if text]
    invalid = "\n".join(["## Invalid designs", "", *notes]) if notes else ""
    densities = {x: ", ".join(f"{density:g}" for density in y) for x, y in (("searched", SEARCHED), ("tested", TESTED))}
    fields = {"study": runner.study(name), "strategies": len(STRATEGIES), "invalid": invalid, **densities}
    drawn = [{**row, "how": {"linewidth": 2.6, "zorder": 3} if row["strategy"] == AWARE else {}} for row in rows]
    return {"rows": rows, "drawn": drawn, "cells": cells, **fields}


def shown(designs: Rows) -> str:
    """The mean ratio, and the densities with an invalid design of some seed."""
    mean = times(designs.over_best.finite.geometric)
    unfit = [density for density, same in designs.by("density").items() if len(same.edp.finite) < len(same)]
    if not unfit:
        return mean
    above = len(unfit) > 1 and unfit == list(TESTED[: len(unfit)])
    where = f"{unfit[-1]:g} and above" if above else ", ".join(f"{density:g}" for density in unfit)
    return f"invalid at {where} ({mean})"


def why(designs: Rows) -> str:
    """Seeds and densities of invalid designs, with the reasons."""
    found = []
    for seed, same in designs.by("seed").items():
        where = ", ".join(f"{row['density']:g}" for row in same if math.isinf(row["edp"]))
        reasons = dict.fromkeys(reason for row in same for reason in row["reasons"].split())
        found += [f"seed {seed} at {where} ({', '.join(reasons)})"] if where else []
    return "; ".join(found)
