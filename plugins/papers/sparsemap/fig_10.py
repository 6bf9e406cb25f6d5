"""Fig. 10: searches with loop orders as Cantor codes, and with the same orders under codes in random order."""

from __future__ import annotations

import math
import statistics
from typing import Any

from sparsemap.errors import SearchError
from sparsemap.files import times
from sparsemap.plots import Figure, Panel, figure

from ..report import Curve, Report, by, curve, effort, number, page, series
from ..runs import Runner, typical_edp

STUDIES = {"fig-10": "Cantor codes", "fig-10-random-codes": "random codes"}
MOVES = {"sparsemap-paper": "any value", "sparsemap-paper-neighbours": "a neighbouring value"}
"""New values of a mutated gene, by searcher. With any value, the order of the codes is invisible to the search."""
SHARES = (0.05, 0.1, 0.25, 0.5, 1)
NEAR = 1.05


def report(runner: Runner, name: str) -> Report:
    found = {label: by(runner.run(study), "searcher") for study, label in STUDIES.items()}
    first = found[STUDIES["fig-10"]]["sparsemap-paper"]
    where, budget = f"{first[0].workload} on {first[0].hardware}", first[0].result["budget"]
    every = [statistics.median(run.edp for run in runs) for searchers in found.values() for runs in searchers.values()]
    if not (finite := [edp for edp in every if math.isfinite(edp)]):
        raise SearchError(f"no search of {where} found a valid design among {budget:,}; a larger --scale has more")
    target, table, rows, ratios = NEAR * max(finite), list[list[str]](), list[dict[str, Any]](), list[str]()
    panels: dict[str, list[Curve]] = {}
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
            table.append([*line, f"{designs:,.0f}" if math.isfinite(designs) else "-"])
            for count, *edp in zip(one.evaluations, one.middle, one.low, one.high, strict=True):
                row = {"codes": one.label, "mutation to": moves, "evaluations": int(count)}
                rows.append(row | dict(zip(("edp", "lowest", "highest"), map(float, edp), strict=True)))
    head = ["codes", "mutation to", *(f"at {share:.0%}" for share in SHARES), "mean", "lowest", "highest", "designs"]
    text = page(
        __file__, name, where=where, effort=effort(first), target=number(target), near=NEAR - 1, table=[head, *table],
        ratios="\n".join(ratios),
    )  # fmt: skip
    headline = "\n".join(ratio.removeprefix("- ") for ratio in ratios)
    return Report(name, headline, text, rows, lambda: draw(panels, where))


def draw(panels: dict[str, list[Curve]], where: str) -> Figure:
    look: dict[str, Any] = {"log": "xy", "plain": {"x": (1, 2, 5)}, "x": "designs evaluated"}
    shown = [
        Panel(y="best EDP (pJ x cycles)", series=series(curves), title=f"{where}, mutation to {moves}", **look)
        for moves, curves in panels.items()
    ]
    return figure(shown, (4.3 * len(panels), 3.6), title="median and range over seeds", sharex=True, sharey=True)
