"""Fig. 10: the search with loop orders as Cantor codes, and with the same orders under codes in random order."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from sparsemap.errors import SearchError
from sparsemap.files import grouped, times
from sparsemap.plots import Figure, Panel, figure

from ..report import Curve, Report, curve, effort, number, page, series
from ..runs import Runner, typical_edp

STUDIES = {"fig-10": "Cantor codes", "fig-10-random-codes": "random codes"}
MOVES = {"sparsemap-paper": "any value", "sparsemap-paper-neighbours": "a neighbouring value"}
"""What a mutation changes a gene to, by searcher. With any value, the search cannot see the order of the codes."""
SHARES = (0.05, 0.1, 0.25, 0.5, 1)
NEAR = 1.05


def report(runner: Runner, name: str) -> Report:
    found = {label: grouped(runner.run(study), lambda run: run.searcher) for study, label in STUDIES.items()}
    first = found[STUDIES["fig-10"]]["sparsemap-paper"]
    where, budget = f"{first[0].workload} on {first[0].hardware}", first[0].result["budget"]
    every = [statistics.median(run.edp for run in runs) for searchers in found.values() for runs in searchers.values()]
    if not (finite := [edp for edp in every if math.isfinite(edp)]):
        raise SearchError(f"no search of {where} found a valid design among {budget:,}; a larger --scale has more")
    target = NEAR * max(finite)
    lines, rows, ratios, panels = [], [], [], {}
    for searcher, moves in MOVES.items():
        panels[moves] = [curve(codes, searchers[searcher]) for codes, searchers in found.items()]
        cantor, random = (typical_edp(searchers[searcher]) for searchers in found.values())
        ratios.append(f"- Mutations to {moves}: random codes end at {times(random / cantor)} the EDP of Cantor codes.")
        for one, searchers in zip(panels[moves], found.values(), strict=True):
            runs = searchers[searcher]
            edps = sorted(run.edp for run in runs)
            designs = statistics.median_high(run.designs_to(target) for run in runs)
            line = [one.label, moves, *(number(one.at(budget * share)) for share in SHARES)]
            line += [number(edp) for edp in (typical_edp(runs), edps[0], edps[-1])]
            lines.append([*line, f"{designs:,.0f}" if math.isfinite(designs) else "-"])
            for place, evaluations in enumerate(one.evaluations):
                low, middle, high = (float(x[place]) for x in (one.low, one.middle, one.high))
                row = {"codes": one.label, "mutation to": moves, "evaluations": int(evaluations)}
                rows.append(row | {"edp": middle, "lowest": low, "highest": high})
    head = ["codes", "mutation to", *(f"at {share:.0%}" for share in SHARES), "mean", "lowest", "highest", "designs"]
    text = page(
        __file__, name, where=where, effort=effort(first), target=number(target), near=NEAR - 1, table=[head, *lines],
        ratios="\n".join(ratios),
    )  # fmt: skip
    headline = "\n".join(ratio.removeprefix("- ") for ratio in ratios)
    return Report(name, headline, text, rows, lambda: draw(panels, where))


def draw(panels: Mapping[str, Sequence[Curve]], where: str) -> Figure:
    look: dict[str, Any] = {"log": "xy", "plain": {"x": (1, 2, 5)}, "x": "designs evaluated"}
    shown = [
        Panel(y="best EDP (pJ x cycles)", series=series(curves), title=f"{where}, mutation to {moves}", **look)
        for moves, curves in panels.items()
    ]
    return figure(shown, (4.3 * len(panels), 3.6), title="median and range over seeds", sharex=True, sharey=True)
