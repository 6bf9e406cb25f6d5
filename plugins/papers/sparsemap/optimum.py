"""How often searches reach the optimum of problems small enough for trying every design."""

from __future__ import annotations

from typing import Any

import attrs

from ..rows import Rows
from ..runs import Runner, effort

SAME = 1e-9
"""Relative difference of equal EDPs: equal designs may add up their energies in another order."""
NOT_GAMMAS = {
    "small-sparse": "makes dense tiles fit, as published: the optimum of `small-sparse` has tiles of 80 dense words in a "
    "buffer of 64",
    "small-conv": "runs no dimension of a filter in parallel: the optimum of `small-conv` runs r so",
}
"""Why GAMMA cannot propose these optima."""


def page(runner: Runner, name: str) -> dict[str, Any]:
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
