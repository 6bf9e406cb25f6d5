"""Table 3: the reduction as the innermost or the outermost loop, over the density of one operand."""

from __future__ import annotations

from itertools import product

import attrs

from sparsemap.files import times
from sparsemap.plots import Panel, Series, figure

from ..report import UJ, Report, edps_of, number, page
from ..runs import Runner, StudyRun
from .densities import printed, variant

DENSITIES = (1.0, 0.5, 0.1, 0.01)
ORDERS = ("inner-product", "outer-product")


def report(runner: Runner, name: str) -> Report:
    study, cells = runner.study(name), []
    for cell, density, order in product(runner.cells(name), DENSITIES, ORDERS):
        given = {"P": {"type": "structured", "density": density}}
        ordered = attrs.evolve(cell, parts={**cell.parts, "space": order})
        cells.append(variant(ordered, order, given, workload=f"{cell.workload}-{density:g}"))
    runner.run_cells(name, cells)
    edps, lines, headline, rows = edps_of(map(StudyRun.of, cells), "workload"), [], [], []
    table = [["layer", "density", "inner", "outer", "outer over inner", "paper: inner", "outer", "outer over inner"]]
    for workload in study.workloads:
        ratios = []
        for density, paper in zip(DENSITIES, printed("table-mse-3")[workload], strict=True):
            here = edps[f"{workload}-{density:g}"]
            pair = [here[order] for order in ORDERS]
            ratios.append(pair[1] / pair[0])
            line = [workload, f"{density:g}", *(number(x / UJ) for x in pair), times(ratios[-1])]
            table.append([*line, *map(number, paper), times(paper[1] / paper[0])])
            rows.append({"workload": workload, "density": density, **{order: here[order] for order in ORDERS}})
        lines.append(Series(workload, DENSITIES, ratios))
        texts = (f"{times(ratio)} at {x:g}" for ratio, x in zip(ratios, DENSITIES, strict=True))
        headline.append(f"{workload}: outer over inner {', '.join(texts)}")
    panel = Panel("density of P", "EDP, outer over inner product (x)", lines, log="x", levels=[1.0])
    text = page(__file__, name, study, table=table)
    return Report(name, "\n".join(headline), text, rows, lambda: figure([panel], (4.6, 3.6), across=3))
