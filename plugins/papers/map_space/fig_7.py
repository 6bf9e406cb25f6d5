"""Fig. 7: one mapping with every loop order, the same at every level: few orders differ in cost."""

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
"""Legal mappings of GAMMA's first generation."""


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
    counts, worsts = [len(classes(edps)) for edps in tried], list(map(_worst, tried))
    names = [f"best of {searcher}" for searcher in study.searchers] + ["random"] * len(drawn)
    others = [
        [label, *_loops(problem, design), f"{count}", times(worst)]
        for label, design, count, worst in zip(names, designs, counts, worsts, strict=True)
    ]
    edps, groups = tried[0], classes(tried[0])
    valid, best = int(np.isfinite(edps).sum()), edps[groups[0]].min()
    table = [
        ["", "paper", "here"],
        ["orders", f"{PAPER['orders']:,}", f"{len(orders):,}"],
        ["valid", f"{PAPER['orders']:,}", f"{valid:,}"],
        ["distinct EDPs", f"{PAPER['distinct']}", f"{len(groups)}"],
        ["worst over best", times(PAPER["worst"]), times(worsts[0])],
        ["best EDP (cycles * uJ)", number(PAPER["best"]), number(best / UJ)],
    ]

    def order(row: int) -> str:
        return " ".join(problem.dims[dim] for dim in orders[row])

    listed = [["class", "EDP", "over the best", "orders", "outermost to innermost"]]
    rows = []
    for at, same in enumerate(groups, 1):
        least = edps[same].min()
        listed.append([f"{at}", number(least / UJ), times(least / best), f"{len(same):,}", order(same[0])])
        rows += [{"class": at, "edp": edps[row], "order": order(row)} for row in same]
    random = counts[len(found) :]
    text = page(
        __file__, name, study, workload=workload, hardware=hardware, orders=len(orders), table=table, classes=listed,
        edp=number(found[0].edp / UJ), over_best=times(found[0].edp / best), fewest=min(random), most=max(random),
        steepest=times(max(worsts)), others=[["mapping", *_outer(problem), "distinct EDPs", "worst over best"], *others],
    )  # fmt: skip
    headline = (
        f"{len(orders):,} orders, {valid:,} valid, {len(groups)} distinct EDPs (paper: {PAPER['distinct']}), "
        f"worst over best {times(worsts[0])} (paper: {times(PAPER['worst'])})"
    )
    return Report(name, headline, text, rows, lambda: draw(np.sort(edps[np.isfinite(edps)]) / UJ))


def _outer(problem: Problem) -> dict[str, int]:
    """Temporal levels by name, without the innermost: every step there is an access, so its order does not count."""
    levels = {level.name: at for at, level in enumerate(problem.mapping_levels) if not level.spatial}
    return dict(list(levels.items())[:-1])


def _loops(problem: Problem, design: Designs) -> list[str]:
    """The dimensions with a loop above 1 at each outer level."""
    bounds = design.columns["bounds"][..., 0]
    return [" ".join(problem.dims[dim] for dim in np.flatnonzero(bounds[at] > 1)) for at in _outer(problem).values()]


def _worst(edps: Array) -> float:
    return float(edps[np.isfinite(edps)].max() / edps.min())


def draw(edps: Array) -> Figure:
    places, limits = range(1, len(edps) + 1), {"ylim": (0, math.ceil(1.1 * edps.max() / 1e9) * 1e9)}
    line = Series("", places, edps, marked=False, how={"drawstyle": "steps-post"})
    return figure([Panel("loop orders, best first", "EDP (cycles * uJ)", [line], limits=limits)], (4.6, 3.2))
