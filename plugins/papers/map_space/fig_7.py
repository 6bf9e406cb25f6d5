"""Fig. 7: one mapping with every loop order, the same at every level: few orders differ in cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemap import Problem, search
from sparsemap.files import times
from sparsemap.problem.designs import Designs
from sparsemap.problem.orders import classes, orders_of, reordered

from ..rows import UJ
from ..runs import Runner
from .warm_start import first_generation

PAPER = {"orders": 5040, "distinct": 16, "worst": 14.4, "best": 3.0e10}
"""Section 4.4 and Fig. 7; the EDP in cycles * uJ."""
RANDOM = 12
"""Legal mappings of GAMMA's first generation."""


def page(runner: Runner, name: str) -> dict[str, Any]:
    study = runner.study(name)
    (workload,), (hardware,) = study.workloads, study.hardware
    problem = runner.problem(study, workload, hardware)
    orders = orders_of(range(len(problem.dims)), len(problem.dims))
    found = [search(problem, study.budget, study.seeds[0], searcher).found for searcher in study.searchers]
    drawn = first_generation(problem, study.seeds[0])
    drawn = drawn[problem.evaluator.evaluate(drawn).valid][-RANDOM:]
    designs = [best.design.batch for best in found] + [problem.space.decode(genome[None]) for genome in drawn]
    tried = [reordered(problem, design, orders).edp for design in designs]
    counts, valid = [len(classes(edps)) for edps in tried], [np.sort(edps[np.isfinite(edps)]) for edps in tried]
    worsts, edps, groups = [float(some[-1] / some[0]) for some in valid], tried[0], classes(tried[0])
    names = [f"best of {searcher}" for searcher in study.searchers] + ["random"] * len(drawn)
    others = [["mapping", *_outer(problem), "distinct EDPs", "worst over best"]]
    for label, design, count, worst in zip(names, designs, counts, worsts, strict=True):
        others.append([label, *_loops(problem, design), f"{count}", times(worst)])
    rows = [
        {"class": at, "edp": edps[row], "order": " ".join(problem.dims[dim] for dim in orders[row])}
        for at, same in enumerate(groups, 1)
        for row in same
    ]
    best, random, highest = valid[0][0], counts[len(found) :], valid[0][-1] / UJ
    return {
        "rows": rows, "study": study, "workload": workload, "hardware": hardware, "orders": len(orders), "paper": PAPER,
        "valid": len(valid[0]), "groups": len(groups), "worst": worsts[0], "best": best, "edp": found[0].edp,
        "over": found[0].edp / best, "fewest": min(random), "most": max(random), "steepest": max(worsts),
        "others": others, "top": math.ceil(1.1 * highest / 1e9) * 1e9,
        "line": [{"place": place, "edp": edp / UJ} for place, edp in enumerate(valid[0], 1)],
        "classes": [{"over": row["edp"] / best, **row} for row in rows],
    }  # fmt: skip


def _outer(problem: Problem) -> dict[str, int]:
    """Temporal levels by name, without the innermost: every step there is an access, so its order does not count."""
    levels = {level.name: at for at, level in enumerate(problem.mapping_levels) if not level.spatial}
    return dict(list(levels.items())[:-1])


def _loops(problem: Problem, design: Designs) -> list[str]:
    """The dimensions with a loop above 1 at each outer level."""
    bounds = design.columns["bounds"][..., 0]
    return [" ".join(problem.dims[dim] for dim in np.flatnonzero(bounds[at] > 1)) for at in _outer(problem).values()]
