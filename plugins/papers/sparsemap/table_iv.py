"""Table IV: EDP of SparseMap, SAGE-like and a Sparseloop mapper, beside the paper's, and by how much it is reduced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparsemap.csv_files import read_csv
from sparsemap.files import grouped, percent, times
from sparsemap.markdown import markdown_table
from sparsemap.plots import COLOURS, Figure, named_ticks, plain_log, subplots

from ..report import Report, counted, number, page
from ..runs import Runner, StudyRun, arithmetic_mean, finite, geometric_mean, ratio, typical_edp

OURS = "sparsemap"
BASELINES = {"sage-like": "SAGE-like", "random-pruned": "Sparseloop mapper"}
PRINTED = {"sage-like": "sage_like", "random-pruned": "sparseloop", "sparsemap": "sparsemap"}
"""Searcher to its column in the paper's table."""
CLAIMS = {
    ("sage-like", "edge"): 26.8, ("sage-like", "mobile"): 19.2, ("sage-like", "cloud"): 171.4,
    ("random-pruned", "edge"): 8.8, ("random-pruned", "mobile"): 4.5, ("random-pruned", "cloud"): 158.9,
}  # fmt: skip
"""The average reductions that the paper states in Sections V-D and V-E."""


def printed() -> dict[tuple[str, str], dict[str, float]]:
    """The paper's EDPs by workload and platform, then searcher."""
    rows = read_csv(Path(__file__).with_name("table-iv.csv"))
    places = [(row["workload"], row["platform"]) for row in rows]
    edps = [{name: float(row[column]) for name, column in PRINTED.items()} for row in rows]
    return dict(zip(places, edps, strict=True))


def platform_of(hardware: str) -> str:
    """The paper's platform of a hardware: `edge-16gbps` is another reading of its edge."""
    return hardware.partition("-")[0]


def report(runner: Runner, name: str) -> Report:
    runs = runner.run(name)
    rows = cells(runs)
    hardware = list(dict.fromkeys(row["hardware"] for row in rows))
    means = [mean_row(rows, one, baseline) for baseline in BASELINES for one in hardware]
    headline = "\n".join(
        f"{row['hardware']}: {times(row['mean'])} lower EDP than {BASELINES[row['baseline']]} on average "
        f"(geometric mean {times(row['geometric'])}); the paper: {row['claim']}x"
        for row in means
    )
    seeds = len({run.seed for run in runs})
    text = [page(
        __file__, name, template="table-iv", hardware=", ".join(hardware), runs=runs, seeds=counted(seeds, "seed"),
        means=means_markdown(means), differences=differences(rows),
    )]  # fmt: skip
    for one in hardware:
        text += [f"\n### {one}\n\n", cells_markdown([row for row in rows if row["hardware"] == one])]
    return Report(name, headline, "".join(text), rows, lambda: draw(rows, hardware))


def cells(runs: Sequence[StudyRun]) -> list[dict[str, Any]]:
    """One row per workload and hardware."""
    paper, rows = printed(), []
    for (workload, hardware), group in grouped(runs, lambda run: (run.workload, run.hardware)).items():
        found = grouped(group, lambda run: run.searcher)
        ours, theirs = found[OURS], paper.get((workload, platform_of(hardware)), {})
        best = min(ours, key=lambda run: run.edp).result
        names = ("bound", "energy_pj", "cycles", "gap")
        numbers = {name: math.nan if best[name] is None else float(best[name]) for name in names}
        row: dict[str, Any] = {"workload": workload, "hardware": hardware}
        row |= {f"edp:{name}": typical_edp(found.get(name, ())) for name in (OURS, *BASELINES)}
        row |= {f"ratio:{name}": ratio(row[f"edp:{name}"], row[f"edp:{OURS}"]) for name in BASELINES}
        row |= {f"paper edp:{name}": theirs.get(name, math.nan) for name in (OURS, *BASELINES)}
        row |= {f"paper ratio:{name}": ratio(theirs[name], theirs[OURS]) if theirs else math.nan for name in BASELINES}
        failed = {name: sum(x.edp == math.inf for x in found.get(name, ())) for name in (OURS, *BASELINES)}
        row |= {f"failed seeds:{name}": count for name, count in failed.items()}
        row["bound"] = numbers["bound"]
        row |= {f"possible:{name}": ratio(row[f"edp:{name}"], numbers["bound"]) for name in BASELINES}
        edps = finite(run.edp for run in ours)
        row["spread"] = max(edps) / min(edps) if edps else math.nan
        rows.append(row | {name: numbers[name] for name in ("energy_pj", "cycles", "gap")})
    return rows


def mean_row(rows: Sequence[dict[str, Any]], hardware: str, baseline: str) -> dict[str, Any]:
    """Mean reductions over one baseline on one hardware, ours and the paper's."""
    mine = [row for row in rows if row["hardware"] == hardware]
    ratios = finite(row[f"ratio:{baseline}"] for row in mine)
    theirs = finite(row[f"paper ratio:{baseline}"] for row in mine)
    return {
        "hardware": hardware, "baseline": baseline, "mean": arithmetic_mean(ratios), "geometric": geometric_mean(ratios),
        "largest": max(ratios, default=math.nan), "better": sum(x > 1 for x in ratios), "cells": len(ratios),
        "possible": geometric_mean(finite(row[f"possible:{baseline}"] for row in mine)),
        "none": sum(not math.isfinite(row[f"edp:{baseline}"]) for row in mine),
        "claim": CLAIMS.get((baseline, platform_of(hardware)), math.nan),
        "paper mean": arithmetic_mean(theirs), "paper geometric": geometric_mean(theirs),
    }  # fmt: skip


def means_markdown(means: Sequence[dict[str, Any]]) -> str:
    head = ["over", "hardware", "mean", "paper says", "its table", "geometric mean", "of its table", "largest"]
    lines = []
    for row in means:
        line = [BASELINES[row["baseline"]], row["hardware"], f"**{times(row['mean'])}**", f"{row['claim']}x"]
        line += [times(row["paper mean"]), f"**{times(row['geometric'])}**", times(row["paper geometric"])]
        line += [times(row["largest"]), times(row["possible"]), f"{row['better']} of {row['cells']}", str(row["none"])]
        lines.append(line)
    return markdown_table([[*head, "possible", "better in", "nothing found"], *lines], "<<>")


def cells_markdown(rows: Sequence[dict[str, Any]]) -> str:
    head = ["workload", "SparseMap", "SAGE-like", "Sparseloop m.", "SAGE / ours", "Spl. / ours", "gap to bound"]
    head += ["paper: SparseMap", "SAGE-like", "Sparseloop m.", "SAGE / SparseMap", "Spl. / SparseMap"]

    def whose(row: dict[str, Any], who: str) -> list[str]:
        edps = [number(row[f"{who}edp:{name}"]) for name in (OURS, *BASELINES)]
        return edps + [times(row[f"{who}ratio:{name}"]) for name in BASELINES]

    lines = [[row["workload"], *whose(row, ""), times(row["gap"]), *whose(row, "paper ")] for row in rows]
    return markdown_table([head, *lines])


def differences(rows: Sequence[dict[str, Any]]) -> str:
    """What the data say about the distance between our numbers and the paper's."""
    lines = []
    for hardware, mine in grouped(rows, lambda row: row["hardware"]).items():
        scale = finite(row[f"edp:{OURS}"] / row[f"paper edp:{OURS}"] for row in mine)
        bounded = [row for row in mine if math.isfinite(row["bound"]) and math.isfinite(row[f"paper edp:{OURS}"])]
        below = [row for row in bounded if row[f"paper edp:{OURS}"] < row["bound"]]
        gaps = finite(row["gap"] for row in mine)
        failed = {name: sum(row[f"failed seeds:{name}"] for row in mine) for name in (OURS, *BASELINES)}
        told = ", ".join(f"{count} of {name}" for name, count in failed.items() if count) or "none"
        lines.append(
            f"- **{hardware}**: our EDPs for SparseMap are {times(geometric_mean(scale))} the paper's (geometric mean; "
            f"{times(min(scale, default=math.nan))} to {times(max(scale, default=math.nan))}). The paper's are below "
            f"the bound that this cost model proves in {len(below)} of {len(bounded)} cells. Ours are "
            f"{times(geometric_mean(gaps))} the bound (geometric mean). SparseMap's worst seed of a cell is at most "
            f"{percent(max(finite(row['spread'] for row in mine), default=math.nan) - 1, 1)} above its best. "
            f"Searches that found nothing valid: {told}.\n"
        )
    return "".join(lines) + "".join(outliers(rows))


def outliers(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How much of the paper's averages rests on its two largest ratios."""
    lines = []
    for hardware, mine in grouped(rows, lambda row: row["hardware"]).items():
        for name, label in BASELINES.items():
            ratios = sorted((x, row["workload"]) for row in mine if math.isfinite(x := row[f"paper ratio:{name}"]))
            if len(ratios) < 4:
                continue
            mean, rest = (arithmetic_mean(x for x, _ in some) for some in (ratios, ratios[:-2]))
            largest = " and ".join(f"{workload} ({times(x)})" for x, workload in reversed(ratios[-2:]))
            told = f"{hardware} average over {label}, {times(mean)}, is {times(rest)}"
            lines.append(f"- The paper's {told} without its two largest ratios, {largest}.\n")
    return lines


def draw(rows: Sequence[dict[str, Any]], hardware: Sequence[str]) -> Figure:
    """Reductions per cell, ours filled and the paper's hollow."""
    figure, axes = subplots(len(hardware), 1, figsize=(9, 2.5 * len(hardware) + 0.6), sharex=True, squeeze=False)
    for axis, one in zip(axes[:, 0], hardware, strict=True):
        mine = [row for row in rows if row["hardware"] == one]
        for (name, label), colour, marker, shift in zip(BASELINES.items(), COLOURS, "os", (-0.16, 0.16), strict=False):
            places = [place + shift for place in range(len(mine))]
            ours = [row[f"ratio:{name}"] for row in mine]
            paper = [row[f"paper ratio:{name}"] for row in mine]
            axis.vlines(places, ours, paper, color=colour, alpha=0.35, linewidth=1)
            axis.plot(places, ours, marker, color=colour, label=f"over {label}")
            axis.plot(places, paper, marker, color=colour, markerfacecolor="white", label=f"over {label}, paper")
            for place in (place for place, value in zip(places, ours, strict=True) if not math.isfinite(value)):
                axis.annotate(
                    "none", (place, 0.97), xycoords=axis.get_xaxis_transform(), rotation=90, ha="center", va="top",
                    color=colour, fontsize=7,
                )  # fmt: skip
        axis.axhline(1, color="#444444", linewidth=0.8)
        axis.set(yscale="log", title=one, ylabel="EDP reduction (x)", xlim=(-0.7, len(mine) - 0.3))
        named_ticks(axis.xaxis, [row["workload"] for row in mine], rotation=60, ha="right")
        plain_log(axis.yaxis, (1,) if axis.get_ylim()[1] > 50 else (1, 2, 5))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    nothing = any(not math.isfinite(row[f"ratio:{name}"]) for row in rows for name in BASELINES)
    title = "none: the baseline found no valid design with any seed, so that there is no reduction" if nothing else None
    figure.legend(handles, labels, loc="outside upper center", ncols=4, title=title)
    return figure
