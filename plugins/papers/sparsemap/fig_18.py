"""Fig. 18: a standard evolution strategy, then with the paper's encodings, then with the paper's operators as well."""

from __future__ import annotations

import numpy as np

from sparsemap.files import percent, times
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, figure

from ..report import Curve, Report, by, curve, effort, number, page, series
from ..runs import Runner, arithmetic_mean, typical_edp

LABELS = {
    "es-lhs": "ES: Latin hypercube, direct encoding",
    "es-pfce": "+ prime factors and Cantor codes (PFCE)",
    "sparsemap-paper": "+ the paper's operators and initialisation (CEOI)",
    "sparsemap": "the default search of this program",
}
FULL = "sparsemap-paper"


def report(runner: Runner, name: str) -> Report:
    runs = runner.run(name)
    hardware, budget = runs[0].hardware, runs[0].result["budget"]
    rows, text, headline, panels = [], [], [], dict[str, list[list[Curve]]]()
    head = [
        "",
        "median at 10 %",
        "at 50 %",
        "at the end",
        "geometric mean",
        "of CEOI's",
        "valid",
        "seeds with a design",
    ]
    for workload, group in by(runs, "workload").items():
        searchers = by(group, "searcher")
        best, mean = (
            [curve(LABELS[x], mine, y) for x, mine in searchers.items()] for y in ("best_score", "mean_score")
        )
        panels[workload], full, table = [best, mean], typical_edp(searchers[FULL]), [head]
        for (searcher, mine), one, other in zip(searchers.items(), best, mean, strict=True):
            edp, solved = typical_edp(mine), sum(np.isfinite(run.edp) for run in mine)
            valid = arithmetic_mean(run.valid_fraction for run in mine)
            line = [LABELS[searcher], *(number(one.at(budget * share)) for share in (0.1, 0.5, 1)), number(edp)]
            table.append([*line, times(edp / full), percent(valid, 1), f"{solved} of {len(mine)}"])
            headline.append(f"{workload}: {searcher} {number(edp)}, {times(edp / full)} of {FULL}")
            for count, *edps in zip(one.evaluations, one.middle, other.middle, strict=True):
                row = {"workload": workload, "searcher": searcher, "evaluations": int(count)}
                rows.append(row | dict(zip(("best edp", "mean edp of a generation"), map(float, edps), strict=True)))
        text += [f"\n## {workload} on {hardware}\n\n", markdown_table(table)]
    intro = page(__file__, name, hardware=hardware, effort=effort(runs))
    return Report(name, "\n".join(headline), "".join([intro, *text]), rows, lambda: draw(panels, hardware))


def draw(panels: dict[str, list[list[Curve]]], hardware: str) -> Figure:
    shown = [
        Panel(
            "designs evaluated",
            f"{label}\n(pJ x cycles)",
            series(curves[row]),
            title=f"{workload} on {hardware}",
            log="xy",
        )
        for row, label in enumerate(("best EDP so far", "mean EDP of a generation"))
        for workload, curves in panels.items()
    ]
    return figure(shown, (4.4 * len(panels), 5.8), len(panels), across=2, sharex=True)
