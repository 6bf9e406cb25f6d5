"""Search quality: EDPs over the best known design of each cell, per budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..rows import Rows
from ..runs import Runner, StudyRun
from .best_known import Known, best_of, committed, known_from, of_runs

LEAST = 1e-4
"""Excess of designs equal to the best known, for the logarithmic axis."""
STUDIES = ("quality-2000", "quality-20000")


def page(runner: Runner, name: str) -> dict[str, Any]:
    runs = [run for study in STUDIES for run in runner.run(study)]
    known = best_of([*of_runs(runs), *known_from(runner), *(committed(runner.out) if runner.scale == 1 else ())])
    columns = ("workload", "hardware", "searcher", "budget", "seed", "edp")
    rows = Rows(run.columns(*columns) | {"over best known": over_best(run, known)} for run in runs)
    groups, excess, cells = Rows(), Rows(), Rows()
    for (searcher, budget), mine in rows.by("searcher", "budget").items():
        means = {x: own["over best known"].finite.geometric for x, own in mine.by("workload", "hardware").items()}
        every = [
            {**row, "on": row["hardware"], "mean": means[row["workload"], row["hardware"]]}
            | {"near": row["over best known"] <= 1.05, "none": not math.isfinite(row["over best known"])}
            for row in mine
        ]
        groups += [{**row, "hardware": "all"} for row in every] + every
        for place, mean in enumerate(sorted(means.values(), key=lambda mean: (math.isnan(mean), mean)), 1):
            share = {"label": f"{searcher}, {budget:,} designs", "budget": budget, "share": 100 * place / len(means)}
            excess.append({**share, "above": 100 * max(mean - 1, LEAST) if math.isfinite(mean) else math.nan})
        best = {cell: known[cell].edp if cell in known else math.nan for cell in means}
        cells += [{**row, "known": best[row["workload"], row["hardware"]]} for row in every]
    for row in excess:
        row["style"] = "-" if row["budget"] == excess.budget.highest else "--"
    return {"rows": rows, "groups": groups, "excess": excess, "cells": cells}


def over_best(run: StudyRun, known: Mapping[tuple[str, str], Known]) -> float:
    best = known.get((run.workload, run.hardware))
    return run.edp / best.edp if best and math.isfinite(run.edp) else math.nan
