"""The best known design of every cell, among all searches of the quality studies, with the proven bound; EDPs of searches
over the best known, per budget; how often searches reach the optimum of problems small enough for trying every design."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from sparsemap.csv_files import read_csv

from ..rows import Rows
from ..runs import Runner, StudyRun, by, effort, finished_runs

DEEP = "quality-200000"
STUDIES = ("quality-2000", "quality-20000", DEEP)
SEARCHERS = ("sparsemap", "sparsemap-paper")
FILE = "best-known.csv"


@attrs.frozen
class Known:
    """The best known design of a cell."""

    workload: str
    hardware: str
    edp: float = attrs.field(converter=float)
    searcher: str
    budget: int = attrs.field(converter=int)
    seed: int = attrs.field(converter=int)
    bound: float = attrs.field(converter=lambda bound: float(bound or "nan"))

    @property
    def gap(self) -> float:
        return self.edp / self.bound


KNOWN = tuple(attrs.fields_dict(Known))


def best_known(runner: Runner, name: str) -> dict[str, Any]:
    cells, found = by(runner.run(DEEP), "workload", "hardware"), best_of(known_from(runner))
    known = [bounded(runner, found[cell]) for cell in cells if cell in found]
    return {"rows": [attrs.asdict(one) | {"gap": one.gap} for one in known], "studies": ", ".join(STUDIES)}


def bounded(runner: Runner, known: Known) -> Known:
    """With today's bound, perhaps tighter than the bound of the search."""
    return attrs.evolve(known, bound=runner.problem(runner.study(DEEP), known.workload, known.hardware).bound)


def known_from(runner: Runner) -> list[Known]:
    """The designs of all finished searches of the quality studies."""
    folders = dict.fromkeys(runner.folder(study) for study in STUDIES)
    return [found for folder in folders for found in of_runs(finished_runs(folder, SEARCHERS))]


def of_runs(runs: Iterable[StudyRun]) -> list[Known]:
    return [Known(**run.columns(*KNOWN)) for run in runs if math.isfinite(run.edp)]


def committed(folder: Path) -> list[Known]:
    """The table of an earlier run."""
    rows = read_csv(folder / FILE) if (folder / FILE).exists() else []
    return [Known(*(row[name] for name in KNOWN)) for row in rows]


def best_of(known: Iterable[Known]) -> dict[tuple[str, str], Known]:
    """The best by workload and hardware; the first of equals."""
    cells = by(known, "workload", "hardware")
    return {cell: min(found, key=lambda one: one.edp) for cell, found in cells.items()}


# ------------------------------------------------------------------------------------------------------------- quality

LEAST = 1e-4
"""Excess of designs equal to the best known, for the logarithmic axis."""


def quality(runner: Runner, name: str) -> dict[str, Any]:
    runs = [run for study in STUDIES if study != DEEP for run in runner.run(study)]
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


# ------------------------------------------------------------------------------------------------------------- optimum

SAME = 1e-9
"""Relative difference of equal EDPs: equal designs may add up their energies in another order."""
NOT_GAMMAS = {
    "small-sparse": "makes dense tiles fit, as published: the optimum of `small-sparse` has tiles of 80 dense words in a "
    "buffer of 64",
    "small-conv": "runs no dimension of a filter in parallel: the optimum of `small-conv` runs r so",
}
"""Why GAMMA cannot propose these optima."""


def optimum(runner: Runner, name: str) -> dict[str, Any]:
    whole = attrs.evolve(runner, scale=1.0, seeds=0)  # a part of all designs need not hold the best design
    best, runs = {run.workload: run for run in whole.run("optimum-exhaustive")}, runner.run("optimum")
    rows = Rows(
        run.columns("workload", "searcher", "seed", "edp") | {"over optimum": run.edp / best[run.workload].edp}
        for run in runs
    )
    near = [row["over optimum"] <= 1 + SAME for row in rows]
    hits = Rows(row | {"hit": hit, "percent": 100 * hit} for row, hit in zip(rows, near, strict=True))
    gamma = {workload: hits.where(searcher="gamma", workload=workload).hit for workload in NOT_GAMMAS}
    missed = [NOT_GAMMAS[workload] for workload, hit in gamma.items() if hit and not hit.total]
    return {
        "rows": rows, "study": runner.study(name), "effort": effort(runs), "hits": hits,
        "optima": [run.columns("workload", "evaluations", "edp", "gap") for run in best.values()],
        "why": f"`gamma` {'; '.join(missed)}." if missed else "",
    }  # fmt: skip
