"""Fig. 10: the search with loop orders as Cantor codes, and with the same orders under codes in random order."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .curves import Curve, curve, needed, plot
from .report import Report, counted, markdown_table, number, times
from .runs import Run, Runner, typical_edp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STUDIES = {"fig-10": "Cantor codes", "fig-10-random-codes": "random codes"}


def report(runner: Runner, name: str) -> Report:
    return table(name, {label: runner.run(study) for study, label in STUDIES.items()})


def table(name: str, found: Mapping[str, Sequence[Run]]) -> Report:
    curves = [curve(label, runs) for label, runs in found.items()]
    target = max(statistics.median(run.edp for run in runs) for runs in found.values())
    rows, lines = [], []
    for (label, runs), one in zip(found.items(), curves, strict=True):
        budget = runs[0].result["budget"]
        designs = statistics.median(needed(run, target) for run in runs)
        edps = sorted(run.edp for run in runs)
        shares = (number(one.at(budget * share)) for share in (0.05, 0.1, 0.25, 0.5, 1))
        ends = (number(edp) for edp in (typical_edp(runs), edps[0], edps[-1]))
        lines.append([label, *shares, *ends, f"{designs:,.0f}" if math.isfinite(designs) else "-"])
        for place, evaluations in enumerate(one.evaluations):
            low, middle, high = (float(x[place]) for x in (one.low, one.middle, one.high))
            rows.append(
                {"codes": label, "evaluations": int(evaluations), "edp": middle, "lowest": low, "highest": high}
            )
    cantor, random = (typical_edp(runs) for runs in found.values())
    runs = next(iter(found.values()))
    head = [
        "codes",
        *(f"at {share} %" for share in (5, 10, 25, 50, 100)),
        "mean",
        "lowest",
        "highest",
        "designs needed",
    ]
    headline = f"{runs[0].workload} on {runs[0].hardware}: random codes end {times(random / cantor)} Cantor codes' EDP"
    text = (
        f"# Fig. 10: codes of loop orders\n\n"
        f"`sparsemap paper {name}`: {runs[0].searcher} on {runs[0].workload}, {runs[0].hardware}, "
        f"{runs[0].result['budget']:,} designs, {counted(len(runs), 'seed')}. EDP in pJ * cycles: the median over seeds after a "
        "share of the budget, the geometric mean, lowest and highest at its end. *Designs needed*: until half of the "
        f"searches are as good as {number(target)}, the worse of the two final medians.\n\n"
        + markdown_table(head, lines)
        + f"\nWith random codes the final EDP is {times(random / cantor)} that with Cantor codes (geometric means).\n"
    )
    return Report(name, headline, text, rows, lambda: draw(curves, f"{runs[0].workload} on {runs[0].hardware}"))


def draw(curves: Sequence[Curve], title: str) -> Figure:
    import matplotlib.pyplot as plt

    from .style import COLOURS, plain_log

    figure, axis = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    plot(axis, curves, COLOURS)
    axis.set(xscale="log", yscale="log", xlabel="designs evaluated", ylabel="best EDP (pJ x cycles)", title=title)
    plain_log(axis.xaxis)
    axis.legend(title="median and range over seeds")
    return figure
