"""Table 2: mappings searched at one density of the weights, and what they are worth at the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparsemap.files import grouped, times
from sparsemap.pieces.contracts import Array
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import UJ, Report, counted, number, page
from ..runs import Runner
from .densities import Stage, evaluated, one_of, printed, searched

DENSITIES = (1.0, 0.5, 0.1, 0.01)
PATTERN = "structured"


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    given = {f"{density:g}": {"Q": one_of(density, DENSITIES, PATTERN)} for density in DENSITIES}
    last = [stages[-1] for stages in searched(runner, name, runner.cells(name), given, rounds=2)]
    stages = grouped(last, lambda stage: stage[0].workload)
    found = {workload: _edps(runner, name, same) for workload, same in stages.items()}
    lines, headline, paper = [], [], printed("table-mse-2")
    for workload, edps in found.items():
        for tested, theirs, row in zip(DENSITIES, paper[workload], edps, strict=True):
            over = [times(x / row.min()) for x in row]
            lines.append([workload, f"{tested:g}", number(row.min() / UJ), *over, *(number(x) for x in theirs)])
        worst = max(float(edps[at, at] / edps[at].min()) for at in range(len(DENSITIES)))
        headline.append(
            f"{workload}: dense mapping at 0.01 {times(edps[-1, 0] / edps[-1].min())} (paper: "
            f"{times(paper[workload][-1][0] / min(paper[workload][-1]))}), own density {times(worst)} at worst"
        )
    columns = [f"at {density:g}" for density in DENSITIES]
    text = page(
        __file__, name, study=study, seeds=counted(len(study.seeds), "seed"),
        table=[["layer", "tested", "best EDP", *columns, *(f"paper: {x}" for x in columns)], *lines],
    )  # fmt: skip
    table = [
        {"workload": workload, "tested": tested} | {f"searched_{d:g}": x for d, x in zip(DENSITIES, row, strict=True)}
        for workload, edps in found.items()
        for tested, row in zip(DENSITIES, edps.tolist(), strict=True)
    ]
    return Report(name, "\n".join(headline), text, table, lambda: draw(found))


def _edps(runner: Runner, name: str, stages: Sequence[Stage]) -> Array:
    """(tested, searched) EDPs in pJ * cycles, the geometric mean over seeds."""
    seeds = [evaluated(runner, name, stage, "Q", PATTERN, DENSITIES) for stage in stages]
    return np.exp(np.mean([[np.log(evaluation.edp) for evaluation in found] for found in seeds], axis=0))


def draw(found: Mapping[str, Array]) -> Figure:
    panels = []
    for workload, edps in found.items():
        ratios = (edps / edps.min(axis=1, keepdims=True)).T
        lines = [Series(f"searched at {x:g}", DENSITIES, line) for x, line in zip(DENSITIES, ratios, strict=True)]
        panels.append(Panel("density of the weights", "EDP over the best (x)", lines, title=workload, log="x"))
    return figure(panels, (3.2 * len(found), 3.4), sharey=True)
