"""How often searches reach the optimum of problems small enough for trying every design."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import attrs

from sparsemap.plots import Figure, Panel, figure

from ..report import Report, by, effort, number, page, times_exact
from ..runs import Runner

SAME = 1e-9
"""Relative difference of equal EDPs: equal designs may add up their energies in another order."""
NOT_GAMMAS = {
    "small-sparse": "makes dense tiles fit, as published: the optimum of `small-sparse` has tiles of 80 dense words in a "
    "buffer of 64",
    "small-conv": "runs no dimension of a filter in parallel: the optimum of `small-conv` runs r so",
}
"""Why GAMMA cannot propose these optima."""


def report(runner: Runner, name: str) -> Report:
    whole = attrs.evolve(runner, scale=1.0, seeds=0)  # a part of all designs need not hold the best design
    best, runs = {run.workload: run for run in whole.run("optimum-exhaustive")}, runner.run("optimum")
    rows = [
        run.columns("workload", "searcher", "seed", "edp") | {"over optimum": run.edp / best[run.workload].edp}
        for run in runs
    ]
    shares: dict[str, dict[str, float]] = {}
    table = [["searcher", *(f"{workload}{what}" for workload in best for what in ("", ", median", ", worst"))]]
    for searcher, mine in by(rows, "searcher").items():
        table.append([searcher])
        for workload, some in by(mine, "workload").items():
            over = [row["over optimum"] for row in some]
            hits = sum(value <= 1 + SAME for value in over)
            shares.setdefault(searcher, {})[workload] = 100 * hits / len(some)
            table[-1] += [f"{hits} of {len(some)}", times_exact(statistics.median(over)), times_exact(max(over))]
    texts = {searcher: ", ".join(f"{share:.0f} %" for share in found.values()) for searcher, found in shares.items()}
    headline = "\n".join(f"{searcher}: optimum found in {text} of the searches" for searcher, text in texts.items())
    missed = [workload for workload, share in shares.get("gamma", {}).items() if not share and workload in NOT_GAMMAS]
    optima = [["workload", "distinct designs", "optimal EDP, pJ * cycles", "over the proven bound"]]
    optima += [
        [workload, f"{run.result['evaluations']:,}", number(run.edp), times_exact(run.result["gap"])]
        for workload, run in best.items()
    ]
    text = page(
        __file__, name, runner.study(name), effort=effort(runs), table=table, optima=optima,
        why=f"`gamma` {'; '.join(NOT_GAMMAS[workload] for workload in missed)}." if missed else "",
    )  # fmt: skip
    return Report(name, headline, text, rows, lambda: draw(shares))


def draw(shares: Mapping[str, Mapping[str, float]]) -> Figure:
    bars = {workload: [found[workload] for found in shares.values()] for found in shares.values() for workload in found}
    panel = Panel("searches that end at the optimum (%)", bars=bars, names=list(shares), flat=True, ends="%.0f")
    return figure([attrs.evolve(panel, limits={"xlim": (0, 110)})], (6.4, 3.6))
