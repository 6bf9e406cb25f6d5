"""Fig. 7: the same mapping with every loop order, the same one at every level: few orders differ in what they cost."""

from __future__ import annotations

import math

import numpy as np

from sparsemap import search
from sparsemap.files import times
from sparsemap.pieces.contracts import Array
from sparsemap.plots import Figure
from sparsemap.problem.orders import classes, orders_of, reordered

from ..figure import Panel, Series, figure
from ..report import UJ, Report, number, page
from ..runs import Runner

PAPER = {"orders": 5040, "distinct": 16, "worst": 14.4, "best": 3.0e10}
"""Section 4.4 and Fig. 7; the EDP in cycles * uJ."""


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    (workload,), (hardware,) = study.workloads, study.hardware
    problem = runner.problem(study, workload, hardware)
    found = search(problem, study.budget, study.seeds[0], study.searchers[0]).found
    orders = orders_of(range(len(problem.dims)), len(problem.dims))
    edps = reordered(problem, found.design.batch, orders).edp
    groups = classes(edps)
    valid = int(np.isfinite(edps).sum())
    best, worst = edps[groups[0]].min(), edps[groups[-1]].max()
    rows = [
        ["orders", f"{PAPER['orders']:,}", f"{len(orders):,}"],
        ["valid", f"{PAPER['orders']:,}", f"{valid:,}"],
        ["distinct EDPs", f"{PAPER['distinct']}", f"{len(groups)}"],
        ["worst over best", times(PAPER["worst"]), times(worst / best)],
        ["best EDP (cycles * uJ)", number(PAPER["best"]), number(best / UJ)],
    ]
    listed = [
        [f"{at + 1}", number(edps[rows_].min() / UJ), times(edps[rows_].min() / best), f"{len(rows_):,}", outer]
        for at, rows_ in enumerate(groups)
        for outer in [" ".join(problem.dims[dim] for dim in orders[rows_[0]])]
    ]
    text = page(
        __file__, name, workload=workload, hardware=hardware, study=study, orders=len(orders),
        edp=number(found.edp / UJ), over_best=times(found.edp / best), table=[["", "paper", "here"], *rows],
        classes=[["class", "EDP", "over the best", "orders", "outermost to innermost"], *listed],
    )  # fmt: skip
    headline = (
        f"{len(orders):,} orders, {valid:,} valid, {len(groups)} distinct EDPs (paper: {PAPER['distinct']}), "
        f"worst over best {times(worst / best)} (paper: {times(PAPER['worst'])})"
    )
    table = [
        {"class": at + 1, "edp": edps[row], "order": " ".join(problem.dims[dim] for dim in orders[row])}
        for at, rows_ in enumerate(groups)
        for row in rows_
    ]
    return Report(name, headline, text, table, lambda: draw(np.sort(edps[np.isfinite(edps)]) / UJ))


def draw(edps: Array) -> Figure:
    places, limits = range(1, len(edps) + 1), {"ylim": (0, math.ceil(1.1 * edps.max() / 1e9) * 1e9)}
    line = Series("", places, edps, marked=False, how={"drawstyle": "steps-post"})
    return figure([Panel("loop orders, best first", "EDP (cycles * uJ)", [line], limits=limits)], (4.6, 3.2))
