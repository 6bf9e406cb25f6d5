"""Table 3: whether the reduction should be the innermost or the outermost loop, over the density of one operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import attrs

from sparsemap.files import grouped, times
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import UJ, Report, counted, number, page
from ..runs import Runner, StudyRun, typical_edp
from .densities import printed, variant

DENSITIES = (1.0, 0.5, 0.1, 0.01)
ORDERS = ("inner-product", "outer-product")


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    cells = []
    for cell, density, order in product(runner.cells(name), DENSITIES, ORDERS):
        given = {"P": {"type": "structured", "density": density}}
        ordered = attrs.evolve(cell, parts={**cell.parts, "space": order})
        cells.append(variant(ordered, order, given, workload=f"{cell.workload}-{density:g}"))
    runner.run_cells(name, cells)
    searches = grouped(map(StudyRun.of, cells), lambda run: (run.workload, run.searcher))
    edps = {place: typical_edp(same) for place, same in searches.items()}
    found = {x: [[edps[f"{x}-{d:g}", order] for order in ORDERS] for d in DENSITIES] for x in study.workloads}
    rows, lines, papers = [], [], printed("table-mse-3")
    for workload, pairs in found.items():
        for density, here, paper in zip(DENSITIES, pairs, papers[workload], strict=True):
            line = [workload, f"{density:g}", *(number(x / UJ) for x in here), times(here[1] / here[0])]
            rows.append([*line, *(number(x) for x in paper), times(paper[1] / paper[0])])
        ratios = [f"{times(outer / inner)} at {x:g}" for (inner, outer), x in zip(pairs, DENSITIES, strict=True)]
        lines.append(f"{workload}: outer over inner {', '.join(ratios)}")
    text = page(
        __file__, name, study=study, seeds=counted(len(study.seeds), "seed"),
        table=[["layer", "density", "inner", "outer", "outer over inner", "paper: inner", "outer", "outer over inner"], *rows],
    )  # fmt: skip
    table = [
        {"workload": workload, "density": density, **dict(zip(ORDERS, pair, strict=True))}
        for workload, pairs in found.items()
        for density, pair in zip(DENSITIES, pairs, strict=True)
    ]
    return Report(name, "\n".join(lines), text, table, lambda: draw(found))


def draw(found: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """`found`: the EDPs of the inner and the outer product at `DENSITIES`, by workload."""
    lines = [Series(name, DENSITIES, [outer / inner for inner, outer in pairs]) for name, pairs in found.items()]
    panel = Panel("density of P", "EDP, outer over inner product (x)", lines, log="x", levels=[1.0])
    return figure([panel], (4.6, 3.6), across=3)
