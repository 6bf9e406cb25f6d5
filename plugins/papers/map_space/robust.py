"""Designs for a range of activation densities beside designs for one density, with formats and skipping searched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sparsemap.files import times

from ..rows import Row, Rows
from ..runs import Runner, by
from .densities import AWARE, SEARCHED, TESTED, TestedDesign, static, tested, tested_rows

PAIRS = (("conv4", "mobile"), ("conv4", "edge-16gbps"), ("mm3", "cloud"))
STRATEGIES = (AWARE, *(static(density) for density in SEARCHED))


def page(runner: Runner, name: str) -> dict[str, Any]:
    searches = [cell for cell in runner.cells(name) if (cell.workload, cell.hardware) in PAIRS]
    (designs,) = tested(runner, name, searches, STRATEGIES, "uniform")
    rows, cells, notes = Rows(tested_rows(designs)), list[Row](), []
    for (workload, hardware), found in by(designs, "workload", "hardware").items():
        own = rows.by("workload", "hardware")[workload, hardware]
        strategies = by(found, "strategy").items()
        shown = {x: _shown(same, own.strategy[x].over_best.finite.geometric) for x, same in strategies}
        about = {"workload": workload, "hardware": hardware}
        cells += [about | {"strategy": strategy, "shown": worth} for strategy, worth in shown.items()]
        whys = {strategy: _why(same) for strategy, same in strategies}
        notes += [f"- {workload} on {hardware}, {strategy}: {why}" for strategy, why in whys.items() if why]
    invalid = "\n".join(["## Invalid designs", "", *notes]) if notes else ""
    densities = {x: ", ".join(f"{density:g}" for density in y) for x, y in (("searched", SEARCHED), ("tested", TESTED))}
    fields = {"study": runner.study(name), "strategies": len(STRATEGIES), "invalid": invalid, **densities}
    drawn = [{**row, "how": {"linewidth": 2.6, "zorder": 3} if row["strategy"] == AWARE else {}} for row in rows]
    return {"rows": rows, "drawn": drawn, "cells": cells, **fields}


def _shown(designs: Sequence[TestedDesign], ratio: float) -> str:
    """The ratio, and the densities with an invalid design of some seed."""
    unfit = [density for at, density in enumerate(TESTED) if any(math.isinf(design.edp[at]) for design in designs)]
    if not unfit:
        return times(ratio)
    above = len(unfit) > 1 and unfit == list(TESTED[: len(unfit)])
    where = f"{unfit[-1]:g} and above" if above else ", ".join(f"{density:g}" for density in unfit)
    return f"invalid at {where} ({times(ratio)})"


def _why(designs: Sequence[TestedDesign]) -> str:
    """Seeds and densities of invalid designs, with the reasons."""
    found = []
    for design in designs:
        where = [f"{density:g}" for density, edp in zip(TESTED, design.edp, strict=True) if math.isinf(edp)]
        reasons = dict.fromkeys(reason for reasons in design.reasons for reason in reasons)
        if where:
            found.append(f"seed {design.seed} at {', '.join(where)} ({', '.join(reasons)})")
    return "; ".join(found)
