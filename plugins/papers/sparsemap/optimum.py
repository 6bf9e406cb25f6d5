"""How often searches reach the optimum of problems small enough for trying every design."""

from __future__ import annotations

from typing import Any

import attrs

from ..rows import Rows, times_exact
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
    hits = Rows({**row, "hit": row["over optimum"] <= 1 + SAME} for row in rows)
    table, shares = (
        [["searcher", *(f"{workload}{what}" for workload in best for what in ("", ", median", ", worst"))]],
        [],
    )
    for searcher, mine in hits.by("searcher").items():
        groups = mine.by("workload")
        cells = [
            (
                f"{own.hit.total} of {own.hit.size}",
                *map(times_exact, (own["over optimum"].median, own["over optimum"].highest)),
            )
            for own in groups.values()
        ]
        table.append([searcher, *(text for cell in cells for text in cell)])
        percents = {workload: 100 * own.hit.total / own.hit.size for workload, own in groups.items()}
        text = ", ".join(f"{share:.0f} %" for share in percents.values())
        shares += [{"searcher": searcher, "workload": x, "share": share, "text": text} for x, share in percents.items()]
    missed = [
        x
        for x in NOT_GAMMAS
        if any((row["searcher"], row["workload"], row["share"]) == ("gamma", x, 0) for row in shares)
    ]
    return {
        "rows": rows, "study": runner.study(name), "effort": effort(runs), "table": table, "shares": shares,
        "optima": [run.columns("workload", "evaluations", "edp", "gap") for run in best.values()],
        "why": f"`gamma` {'; '.join(NOT_GAMMAS[workload] for workload in missed)}." if missed else "",
    }  # fmt: skip
