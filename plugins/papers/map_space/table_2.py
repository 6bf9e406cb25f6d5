"""Table 2: mappings searched at one density of the weights, and what they are worth at the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparsemap.files import times
from sparsemap.panels import Panel, Series, figure
from sparsemap.pieces.contracts import Array
from sparsemap.plots import Figure

from ..report import UJ, Report, counted, number, page
from ..runs import Runner, by
from .densities import Stage, evaluated, one_of, searched

DENSITIES = (1.0, 0.5, 0.1, 0.01)
PATTERN = "structured"
PRINTED: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "resnet-conv3": (
        (3.7e10, 3.9e10, 5.8e10, 1.6e12), (1.0e10, 4.9e9, 9.1e9, 3.9e11),
        (8.0e8, 6.6e7, 6.4e7, 8.3e8), (5.0e7, 3.1e4, 4.8e4, 1.6e4),
    ),
    "resnet-conv4": (
        (3.1e10, 3.6e10, 1.0e11, 4.3e11), (8.3e9, 4.9e9, 1.4e10, 9.6e10),
        (5.5e8, 9.1e7, 2.3e7, 3.7e8), (3.0e7, 7.0e5, 6.4e3, 5.4e3),
    ),
    "inception-conv2": (
        (1.1e13, 1.3e13, 1.5e13, 5.9e14), (3.4e12, 2.0e12, 2.3e12, 1.5e14),
        (3.5e11, 1.3e10, 5.1e9, 4.0e10), (3.3e9, 9.4e6, 3.3e6, 6.2e5),
    ),
}  # fmt: skip
"""EDPs in cycles * uJ: a row per density tested, a column per density searched at, both as `DENSITIES`."""


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    given = {f"{density:g}": {"Q": one_of(density, DENSITIES, PATTERN)} for density in DENSITIES}
    last = [stages[-1] for stages in searched(runner, name, runner.cells(name), given, rounds=2)]
    stages = by(last, lambda stage: stage[0].workload)
    found = {workload: _edps(runner, name, same) for workload, same in stages.items()}
    lines, headline = [], []
    for workload, edps in found.items():
        for tested, theirs, row in zip(DENSITIES, PRINTED[workload], edps, strict=True):
            over = [times(x / row.min()) for x in row]
            lines.append([workload, f"{tested:g}", number(row.min() / UJ), *over, *(number(x) for x in theirs)])
        worst = max(float(edps[at, at] / edps[at].min()) for at in range(len(DENSITIES)))
        headline.append(
            f"{workload}: dense mapping at 0.01 {times(edps[-1, 0] / edps[-1].min())} (paper: "
            f"{times(PRINTED[workload][-1][0] / min(PRINTED[workload][-1]))}), own density {times(worst)} at worst"
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
        lines = [
            Series(f"searched at {density:g}", DENSITIES, line) for density, line in zip(DENSITIES, ratios, strict=True)
        ]
        panels.append(Panel("density of the weights", "EDP over the best (x)", lines, title=workload, log="x"))
    return figure(panels, (3.2 * len(found), 3.4), sharey=True)
