"""Search quality: how near a search comes to the best design known of its cell, per budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sparsemap.files import grouped, percent
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, counted, number, page, times_exact
from ..runs import Runner, StudyRun, finite, geometric_mean
from .best_known import Known, best_of, committed, known_from, of_runs

LEAST = 1e-4
"""Where the figure draws a design that equals the best known."""
STUDIES = ("quality-2000", "quality-20000")


def report(runner: Runner, name: str) -> Report:
    runs = [run for study in STUDIES for run in runner.run(study)]
    known = best_of([*of_runs(runs), *known_from(runner), *(committed(runner.out) if runner.scale == 1 else ())])
    kinds = grouped(runs, lambda run: (run.searcher, run.result["budget"]))
    lines, worst, excess = [], [], {}
    for (searcher, budget), mine in kinds.items():
        for hardware, some in {"all": mine, **grouped(mine, lambda run: run.hardware)}.items():
            over = {run: over_best(run, known) for run in some}
            found = {run: value for run, value in over.items() if math.isfinite(value)}
            groups = grouped(found, lambda run: (run.workload, run.hardware))
            cells = {cell: geometric_mean(found[run] for run in group) for cell, group in groups.items()}
            cell = max(cells, key=lambda cell: cells[cell], default=("-", "-"))
            near = sum(value <= 1.05 for value in found.values())
            line = [f"{budget:,}", searcher, hardware, times_exact(geometric_mean(found.values()))]
            line += [times_exact(cells.get(cell, math.nan)), f"{cell[0]} on {cell[1]}", percent(near / len(some), 1)]
            lines.append([*line, f"{len(some) - len(found)} of {len(some)}"])
            if hardware == "all":
                missing = len({(run.workload, run.hardware) for run in some}) - len(cells)
                excess[searcher, budget] = [*sorted(cells.values()), *[math.inf] * missing]
                worst.append(f"{searcher}, {budget:,} designs: {lines[-1][3]} best known, worst cell {lines[-1][4]}")
    columns = ("workload", "hardware", "searcher", "budget", "seed", "edp")
    rows = [run.told(*columns) | {"over best known": over_best(run, known)} for run in runs]
    head = ["designs", "searcher", "hardware", "over best known", "worst cell", "which", "within 5 %", "found nothing"]
    counts = {kind: counted(len({run.seed for run in mine}), "seed") for kind, mine in kinds.items()}
    seeds = ", ".join(f"{count} of {searcher} with {budget:,} designs" for (searcher, budget), count in counts.items())
    text = page(__file__, name, seeds=seeds, table=[head, *lines], cells=cells_markdown(kinds, known))
    return Report(name, "\n".join(worst), text, rows, lambda: draw(excess))


def over_best(run: StudyRun, known: Mapping[tuple[str, str], Known]) -> float:
    best = known.get((run.workload, run.hardware))
    return run.edp / best.edp if best and math.isfinite(run.edp) else math.nan


def cells_markdown(kinds: Mapping[tuple[str, int], Sequence[StudyRun]], known: Mapping[tuple[str, str], Known]) -> str:
    columns = [grouped(runs, lambda run: (run.workload, run.hardware)) for runs in kinds.values()]
    cells = dict.fromkeys(cell for column in columns for cell in column)
    rows = []
    for cell in cells:
        best = known.get(cell)
        means = (geometric_mean(finite(over_best(run, known) for run in column.get(cell, ()))) for column in columns)
        rows.append([*cell, number(best.edp) if best else "-", *(times_exact(mean) for mean in means)])
    head = ["workload", "hardware", "best known", *(f"{searcher} {budget:,}" for searcher, budget in kinds)]
    return markdown_table([head, *rows], "<<>")


def draw(excess: Mapping[tuple[str, int], Sequence[float]]) -> Figure:
    """The share of cells within a factor of the best known."""
    lines, last = [], max(budget for _, budget in excess)
    for (searcher, budget), values in excess.items():
        share = [100 * (place + 1) / len(values) for place in range(len(values))]
        above = [100 * max(value - 1, LEAST) if math.isfinite(value) else math.nan for value in values]
        style, label = "-" if budget == last else "--", f"{searcher}, {budget:,} designs"
        lines.append(Series(label, above, share, style, marked=False, how={"drawstyle": "steps-post"}))
    panel = Panel("mean EDP above the best known (%)", "share of cells (%)", lines, log="x", limits={"ylim": (0, 102)})
    return figure([panel], (5.6, 3.8), across=2)
