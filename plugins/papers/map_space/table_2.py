"""Table 2: mappings searched at one density of the weights, and their EDPs at the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparsemap.files import grouped, times
from sparsemap.pieces.contracts import Array
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import UJ, Report, number, page
from ..runs import Runner
from .densities import Stage, evaluated, one_of, printed, searched

DENSITIES = (1.0, 0.5, 0.1, 0.01)
PATTERN = "structured"


def report(runner: Runner, name: str) -> Report:
    given = {f"{density:g}": {"Q": one_of(density, DENSITIES, PATTERN)} for density in DENSITIES}
    last = [stages[-1] for stages in searched(runner, name, runner.cells(name), given, rounds=2)]
    stages = grouped(last, lambda stage: stage[0].workload)
    found = {workload: _edps(runner, name, same) for workload, same in stages.items()}
    columns = [f"at {density:g}" for density in DENSITIES]
    table = [["layer", "tested", "best EDP", *columns, *(f"paper: {x}" for x in columns)]]
    headline, rows, paper = [], [], printed("table-mse-2")
    for workload, edps in found.items():
        over = edps / edps.min(axis=1, keepdims=True)
        for density, theirs, row, ratios in zip(DENSITIES, paper[workload], edps, over, strict=True):
            table.append([workload, f"{density:g}", number(row.min() / UJ), *map(times, ratios), *map(number, theirs)])
            own = {f"searched_{x:g}": y for x, y in zip(DENSITIES, row.tolist(), strict=True)}
            rows.append({"workload": workload, "tested": density} | own)
        last_row = paper[workload][-1]
        headline.append(
            f"{workload}: dense mapping at 0.01 {times(over[-1, 0])} (paper: {times(last_row[0] / min(last_row))}), "
            f"own density {times(float(np.diag(over).max()))} at worst"
        )
    text = page(__file__, name, runner.study(name), table=table)
    return Report(name, "\n".join(headline), text, rows, lambda: draw(found))


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
