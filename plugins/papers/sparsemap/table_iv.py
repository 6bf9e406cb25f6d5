"""Table IV: EDP of SparseMap, SAGE-like and a Sparseloop mapper beside the paper's, and the reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparsemap.csv_files import read_csv
from sparsemap.files import times
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, by, counted, number, page
from ..runs import Runner, StudyRun, arithmetic_mean, finite, geometric_mean, ratio, typical_edp

OURS = "sparsemap"
BASELINES = {"sage-like": "SAGE-like", "random-pruned": "Sparseloop mapper"}
ALL = (OURS, *BASELINES)
PRINTED = {"sage-like": "sage_like", "random-pruned": "sparseloop", "sparsemap": "sparsemap"}
"""Column of the paper's table by searcher."""
CLAIMS = {
    ("sage-like", "edge"): 26.8, ("sage-like", "mobile"): 19.2, ("sage-like", "cloud"): 171.4,
    ("random-pruned", "edge"): 8.8, ("random-pruned", "mobile"): 4.5, ("random-pruned", "cloud"): 158.9,
}  # fmt: skip
"""Average reductions in Sections V-D and V-E of the paper."""


def printed() -> dict[tuple[str, str], dict[str, float]]:
    """The paper's EDPs by workload and platform, then searcher."""
    rows = read_csv(Path(__file__).with_name("table-iv.csv"))
    return {
        (row["workload"], row["platform"]): {name: float(row[column]) for name, column in PRINTED.items()}
        for row in rows
    }


def platform_of(hardware: str) -> str:
    """The paper's platform of a hardware: `edge-16gbps` is another reading of its edge."""
    return hardware.partition("-")[0]


def report(runner: Runner, name: str) -> Report:
    runs = runner.run(name)
    rows = cells(runs)
    hardware = by(rows, "hardware")
    means = [mean_row(rows, place, baseline) for baseline in BASELINES for place in hardware]
    headline = "\n".join(
        f"{row['hardware']}: {times(row['mean'])} lower EDP than {BASELINES[row['baseline']]} on average "
        f"(geometric mean {times(row['geometric'])}); the paper: {row['claim']}x"
        for row in means
    )
    seeds, about = counted(len({run.seed for run in runs}), "seed"), {"hardware": ", ".join(hardware), "runs": runs}
    text = [page(__file__, name, template="table-iv", seeds=seeds, means=means_markdown(means), **about)]
    for place, mine in hardware.items():
        text += [f"\n### {place}\n\n", cells_markdown(mine)]
    return Report(name, headline, "".join(text), rows, lambda: draw(rows))


def cells(runs: Sequence[StudyRun]) -> list[dict[str, Any]]:
    """A row per workload and hardware."""
    paper, rows = printed(), []
    for (workload, hardware), group in by(runs, "workload", "hardware").items():
        found = by(group, "searcher")
        ours, theirs = found[OURS], paper.get((workload, platform_of(hardware)), {})
        best = min(ours, key=lambda run: run.edp).result
        names = ("bound", "energy_pj", "cycles", "gap")
        numbers = {name: math.nan if best[name] is None else float(best[name]) for name in names}
        row: dict[str, Any] = {"workload": workload, "hardware": hardware}
        row |= {f"edp:{name}": typical_edp(found.get(name, ())) for name in ALL}
        row |= {f"ratio:{name}": ratio(row[f"edp:{name}"], row[f"edp:{OURS}"]) for name in BASELINES}
        row |= {f"paper edp:{name}": theirs.get(name, math.nan) for name in ALL}
        row |= {f"paper ratio:{name}": ratio(theirs[name], theirs[OURS]) if theirs else math.nan for name in BASELINES}
        row |= {f"failed seeds:{name}": sum(x.edp == math.inf for x in found.get(name, ())) for name in ALL}
        row["bound"] = numbers["bound"]
        row |= {f"possible:{name}": ratio(row[f"edp:{name}"], numbers["bound"]) for name in BASELINES}
        edps = finite(run.edp for run in ours)
        row["spread"] = max(edps) / min(edps) if edps else math.nan
        rows.append(row | {name: numbers[name] for name in ("energy_pj", "cycles", "gap")})
    return rows


def mean_row(rows: Sequence[dict[str, Any]], hardware: str, baseline: str) -> dict[str, Any]:
    """Mean reductions over a baseline on a hardware, ours and the paper's."""
    mine = [row for row in rows if row["hardware"] == hardware]
    ours, theirs, possible = (
        finite(row[f"{column}:{baseline}"] for row in mine) for column in ("ratio", "paper ratio", "possible")
    )
    return {
        "hardware": hardware, "baseline": baseline, "mean": arithmetic_mean(ours), "geometric": geometric_mean(ours),
        "largest": max(ours, default=math.nan), "better": sum(x > 1 for x in ours), "cells": len(ours),
        "possible": geometric_mean(possible), "none": sum(not math.isfinite(row[f"edp:{baseline}"]) for row in mine),
        "claim": CLAIMS.get((baseline, platform_of(hardware)), math.nan),
        "paper mean": arithmetic_mean(theirs), "paper geometric": geometric_mean(theirs),
    }  # fmt: skip


def means_markdown(means: Sequence[dict[str, Any]]) -> str:
    head = ["over", "hardware", "mean", "paper says", "its table", "geometric mean", "of its table", "largest"]
    table = [[*head, "possible", "better in", "nothing found"]]
    for row in means:
        line = [BASELINES[row["baseline"]], row["hardware"], f"**{times(row['mean'])}**", f"{row['claim']}x"]
        line += [times(row["paper mean"]), f"**{times(row['geometric'])}**", times(row["paper geometric"])]
        line += [times(row["largest"]), times(row["possible"]), f"{row['better']} of {row['cells']}", str(row["none"])]
        table.append(line)
    return markdown_table(table, "<<>")


def cells_markdown(rows: Sequence[dict[str, Any]]) -> str:
    head = ["workload", "SparseMap", "SAGE-like", "Sparseloop m.", "SAGE / ours", "Spl. / ours", "gap to bound"]
    head += ["paper: SparseMap", "SAGE-like", "Sparseloop m.", "SAGE / SparseMap", "Spl. / SparseMap"]

    def whose(row: dict[str, Any], who: str) -> list[str]:
        edps = [number(row[f"{who}edp:{name}"]) for name in ALL]
        return edps + [times(row[f"{who}ratio:{name}"]) for name in BASELINES]

    return markdown_table([head, *([x["workload"], *whose(x, ""), times(x["gap"]), *whose(x, "paper ")] for x in rows)])


def draw(rows: Sequence[dict[str, Any]]) -> Figure:
    """Reductions per cell, ours filled and the paper's hollow; no point where the baseline found nothing."""
    panels: list[Panel] = []
    for hardware, mine in by(rows, "hardware").items():
        points = []
        for (name, label), shift in zip(BASELINES.items(), (-0.16, 0.16), strict=True):
            places = [place + shift for place in range(len(mine))]
            for who in ("", "paper "):
                ratios = [row[f"{who}ratio:{name}"] for row in mine]
                title = f"over {label}{', paper' if who else ''}"
                points.append(Series(title, places, ratios, "", hollow=bool(who), like=f"over {label}"))
        names, y = [row["workload"] for row in mine], "EDP reduction (x)"
        panels.append(
            Panel("", y, points, title=hardware, log="y", plain={"y": (1, 3)}, names=names, turned=60, levels=[1])
        )
    return figure(panels, (9, 2.9 * len(panels) + 0.6), columns=1)
