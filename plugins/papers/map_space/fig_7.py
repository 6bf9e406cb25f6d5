"""Fig. 7: the same mapping with every loop order, the same one at every level: few orders differ in what they cost."""

from __future__ import annotations

import math

import numpy as np

from sparsemap import Problem, search
from sparsemap.files import times
from sparsemap.pieces.contracts import Array
from sparsemap.plots import Figure, Panel, Series, figure
from sparsemap.problem.designs import Designs
from sparsemap.problem.orders import classes, orders_of, reordered

from ..report import UJ, Report, number, page
from ..runs import Runner
from .warm_start import first_generation

PAPER = {"orders": 5040, "distinct": 16, "worst": 14.4, "best": 3.0e10}
"""Section 4.4 and Fig. 7; the EDP in cycles * uJ."""
RANDOM = 12
"""Legal mappings of GAMMA's first generation that are tried as well."""


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    (workload,), (hardware,) = study.workloads, study.hardware
    problem = runner.problem(study, workload, hardware)
    orders = orders_of(range(len(problem.dims)), len(problem.dims))
    found = [search(problem, study.budget, study.seeds[0], searcher).found for searcher in study.searchers]
    drawn = first_generation(problem, study.seeds[0])
    drawn = drawn[problem.evaluator.evaluate(drawn).valid][-RANDOM:]
    designs = [best.design.batch for best in found] + [problem.space.decode(genome[None]) for genome in drawn]
    tried = [reordered(problem, design, orders).edp for design in designs]
    names = [f"best of {searcher}" for searcher in study.searchers] + ["random"] * len(drawn)
    counts = [len(classes(edps)) for edps in tried[len(found) :]]
    named = zip(names, designs, tried, strict=True)
    others = [
        [label, *_loops(problem, one), f"{len(classes(edps))}", times(_worst(edps))] for label, one, edps in named
    ]
    edps, groups = tried[0], classes(tried[0])
    valid, best = int(np.isfinite(edps).sum()), edps[groups[0]].min()
    rows = [
        ["orders", f"{PAPER['orders']:,}", f"{len(orders):,}"],
        ["valid", f"{PAPER['orders']:,}", f"{valid:,}"],
        ["distinct EDPs", f"{PAPER['distinct']}", f"{len(groups)}"],
        ["worst over best", times(PAPER["worst"]), times(_worst(edps))],
        ["best EDP (cycles * uJ)", number(PAPER["best"]), number(best / UJ)],
    ]
    listed = [
        [f"{at + 1}", number(edps[rows_].min() / UJ), times(edps[rows_].min() / best), f"{len(rows_):,}", outer]
        for at, rows_ in enumerate(groups)
        for outer in [" ".join(problem.dims[dim] for dim in orders[rows_[0]])]
    ]
    text = page(
        __file__, name, workload=workload, hardware=hardware, study=study, orders=len(orders),
        edp=number(found[0].edp / UJ), over_best=times(found[0].edp / best), table=[["", "paper", "here"], *rows],
        classes=[["class", "EDP", "over the best", "orders", "outermost to innermost"], *listed],
        fewest=min(counts), most=max(counts), steepest=times(max(map(_worst, tried))),
        others=[["mapping", *_outer(problem), "distinct EDPs", "worst over best"], *others],
    )  # fmt: skip
    headline = (
        f"{len(orders):,} orders, {valid:,} valid, {len(groups)} distinct EDPs (paper: {PAPER['distinct']}), "
        f"worst over best {times(_worst(edps))} (paper: {times(PAPER['worst'])})"
    )
    table = [
        {"class": at + 1, "edp": edps[row], "order": " ".join(problem.dims[dim] for dim in orders[row])}
        for at, rows_ in enumerate(groups)
        for row in rows_
    ]
    return Report(name, headline, text, table, lambda: draw(np.sort(edps[np.isfinite(edps)]) / UJ))


def _outer(problem: Problem) -> dict[str, int]:
    """By name, the temporal levels whose order counts: all but the innermost, where every step is an access."""
    levels = {level.name: at for at, level in enumerate(problem.mapping_levels) if not level.spatial}
    return dict(list(levels.items())[:-1])


def _loops(problem: Problem, design: Designs) -> list[str]:
    """The dimensions with a loop above 1 at each of these."""
    bounds = design.columns["bounds"][..., 0]
    return [" ".join(problem.dims[dim] for dim in np.flatnonzero(bounds[at] > 1)) for at in _outer(problem).values()]


def _worst(edps: Array) -> float:
    return float(edps[np.isfinite(edps)].max() / edps.min())


def draw(edps: Array) -> Figure:
    places, limits = range(1, len(edps) + 1), {"ylim": (0, math.ceil(1.1 * edps.max() / 1e9) * 1e9)}
    line = Series("", places, edps, marked=False, how={"drawstyle": "steps-post"})
    return figure([Panel("loop orders, best first", "EDP (cycles * uJ)", [line], limits=limits)], (4.6, 3.2))
