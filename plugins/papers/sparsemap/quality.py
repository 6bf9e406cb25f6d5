"""Search quality: EDPs over the best known design of each cell, per budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sparsemap.files import percent
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, by, counted, number, page, times_exact
from ..runs import Runner, StudyRun, finite, geometric_mean
from .best_known import Known, best_of, committed, known_from, of_runs

LEAST = 1e-4
"""Excess of designs equal to the best known, for the logarithmic axis."""
STUDIES = ("quality-2000", "quality-20000")


def report(runner: Runner, name: str) -> Report:
    runs = [run for study in STUDIES for run in runner.run(study)]
    known = best_of([*of_runs(runs), *known_from(runner), *(committed(runner.out) if runner.scale == 1 else ())])
    columns = ("workload", "hardware", "searcher", "budget", "seed", "edp")
    rows = [run.columns(*columns) | {"over best known": over_best(run, known)} for run in runs]
    table = [
        ["designs", "searcher", "hardware", "over best known", "worst cell", "which", "within 5 %", "found nothing"]
    ]
    kinds, worst, excess, seeds = by(rows, "searcher", "budget"), [], {}, []
    means: dict[tuple[str, str], list[float]] = {(row["workload"], row["hardware"]): [] for row in rows}
    for (searcher, budget), mine in kinds.items():
        for hardware, some in {"all": mine, **by(mine, "hardware")}.items():
            groups = by(some, "workload", "hardware")
            cells = {
                cell: geometric_mean(finite(row["over best known"] for row in own)) for cell, own in groups.items()
            }
            found = finite(row["over best known"] for row in some)
            solved = {cell: mean for cell, mean in cells.items() if math.isfinite(mean)}
            cell = max(solved, key=lambda cell: solved[cell], default=("-", "-"))
            near = percent(sum(value <= 1.05 for value in found) / len(some), 1)
            line = [f"{budget:,}", searcher, hardware, times_exact(geometric_mean(found))]
            line += [times_exact(solved.get(cell, math.nan)), f"{cell[0]} on {cell[1]}", near]
            table.append([*line, f"{len(some) - len(found)} of {len(some)}"])
            if hardware == "all":
                excess[f"{searcher}, {budget:,} designs"] = [
                    *sorted(solved.values()),
                    *[math.inf] * (len(cells) - len(solved)),
                ]
                worst.append(f"{searcher}, {budget:,} designs: {line[3]} best known, worst cell {line[4]}")
                seeds.append(
                    f"{counted(len({row['seed'] for row in some}), 'seed')} of {searcher} with {budget:,} designs"
                )
                for place, values in means.items():
                    values.append(cells.get(place, math.nan))
    lines = [
        [*cell, number(known[cell].edp) if cell in known else "-", *map(times_exact, values)]
        for cell, values in means.items()
    ]
    head = ["workload", "hardware", "best known", *(f"{searcher} {budget:,}" for searcher, budget in kinds)]
    text = page(__file__, name, seeds=", ".join(seeds), table=table, cells=[head, *lines])
    last = f"{max(budget for _, budget in kinds):,} designs"
    return Report(name, "\n".join(worst), text, rows, lambda: draw(excess, last))


def over_best(run: StudyRun, known: Mapping[tuple[str, str], Known]) -> float:
    best = known.get((run.workload, run.hardware))
    return run.edp / best.edp if best and math.isfinite(run.edp) else math.nan


def draw(excess: Mapping[str, Sequence[float]], last: str) -> Figure:
    """The share of cells within a factor of the best known; solid for the `last` budget."""
    found = []
    for label, values in excess.items():
        share = [100 * (place + 1) / len(values) for place in range(len(values))]
        above = [100 * max(value - 1, LEAST) if math.isfinite(value) else math.nan for value in values]
        style = "-" if label.endswith(f" {last}") else "--"
        found.append(Series(label, above, share, style, marked=False, how={"drawstyle": "steps-post"}))
    panel = Panel("mean EDP above the best known (%)", "share of cells (%)", found, log="x", limits={"ylim": (0, 102)})
    return figure([panel], (5.6, 3.8), across=2)
