"""Fig. 18: a standard evolution strategy, the same with the paper's encodings, and with its operators as well."""

from __future__ import annotations

import numpy as np

from sparsemap.files import grouped, percent, times
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, figure

from ..report import Curve, Report, curve, effort, number, page, series
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
    rows, text, panels, headline = [], [], {}, []
    for workload, group in grouped(runs, lambda run: run.workload).items():
        searchers = grouped(group, lambda run: run.searcher)
        best = {searcher: curve(LABELS[searcher], mine) for searcher, mine in searchers.items()}
        mean = {searcher: curve(LABELS[searcher], mine, "mean_score") for searcher, mine in searchers.items()}
        panels[workload] = (list(best.values()), list(mean.values()))
        full, lines = typical_edp(searchers[FULL]), []
        for searcher, mine in searchers.items():
            edp = typical_edp(mine)
            failed = sum(not np.isfinite(run.edp) for run in mine)
            valid = arithmetic_mean(run.valid_fraction for run in mine)
            medians = (best[searcher].at(budget * share) for share in (0.1, 0.5, 1))
            line = [LABELS[searcher], *map(number, medians), number(edp)]
            lines.append([*line, times(edp / full), percent(valid, 1), f"{len(mine) - failed} of {len(mine)}"])
            headline.append(f"{workload}: {searcher} {number(edp)}, {times(edp / full)} of {FULL}")
            for place, evaluations in enumerate(best[searcher].evaluations):
                rows.append(
                    {"workload": workload, "searcher": searcher, "evaluations": int(evaluations)}
                    | {"best edp": float(best[searcher].middle[place])}
                    | {"mean edp of a generation": float(mean[searcher].middle[place])}
                )
        head = ["", "median at 10 %", "at 50 %", "at the end", "geometric mean", "of CEOI's", "valid"]
        text += [f"\n## {workload} on {hardware}\n\n", markdown_table([[*head, "seeds with a design"], *lines])]
    intro = page(__file__, name, hardware=hardware, effort=effort(runs))
    return Report(name, "\n".join(headline), "".join([intro, *text]), rows, lambda: draw(panels, hardware))


def draw(panels: dict[str, tuple[list[Curve], list[Curve]]], hardware: str) -> Figure:
    shown = []
    for row, label in enumerate(("best EDP so far", "mean EDP of a generation")):
        for workload, curves in panels.items():
            title, y = f"{workload} on {hardware}", f"{label}\n(pJ x cycles)"
            shown.append(Panel("designs evaluated", y, series(curves[row]), title=title, log="xy"))
    return figure(shown, (4.4 * len(panels), 5.8), len(panels), across=2, sharex=True)
