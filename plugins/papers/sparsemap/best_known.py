"""The best design known of every cell, among all searches of the quality studies, with its proven bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from sparsemap.files import markdown_table, read_csv, times
from sparsemap.plots import COLOURS, MARKERS, plain_log, subplots

from ..report import Report, number
from ..runs import Run, Runner, finished_runs, geometric_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEEP = "quality-200000"
STUDIES = ("quality-2000", "quality-20000", DEEP)
SEARCHERS = ("sparsemap", "sparsemap-paper")
FILE = "best-known.csv"


@attrs.frozen
class Known:
    """The best design known of a cell."""

    workload: str
    hardware: str
    edp: float
    searcher: str
    budget: int
    seed: int
    bound: float

    @property
    def gap(self) -> float:
        return self.edp / self.bound

    @property
    def row(self) -> dict[str, Any]:
        return attrs.asdict(self) | {"gap": self.gap}


def report(runner: Runner, name: str) -> Report:
    cells = dict.fromkeys((run.workload, run.hardware) for run in runner.run(DEEP))
    found = best_of(known_from(runner))
    return table(name, [found[cell] for cell in cells if cell in found])


def known_from(runner: Runner) -> list[Known]:
    """What the searches of the quality studies have found that are there already."""
    folders = dict.fromkeys(runner.folder(study) for study in STUDIES)
    return [found for folder in folders for found in of_runs(finished_runs(folder, SEARCHERS))]


def of_runs(runs: Iterable[Run]) -> list[Known]:
    return [
        Known(
            run.workload, run.hardware, run.edp, run.searcher, run.result["budget"], run.seed,
            run.result["bound"] or math.nan,
        )
        for run in runs
        if math.isfinite(run.edp)
    ]  # fmt: skip


def committed(folder: Path) -> list[Known]:
    """The table of an earlier run."""
    if not (folder / FILE).exists():
        return []
    rows = read_csv(folder / FILE)
    return [
        Known(
            row["workload"], row["hardware"], float(row["edp"]), row["searcher"], int(row["budget"]), int(row["seed"]),
            float(row["bound"] or "nan"),
        )
        for row in rows
    ]  # fmt: skip


def best_of(known: Iterable[Known]) -> dict[tuple[str, str], Known]:
    """The best by workload and hardware; of equal ones the first."""
    found: dict[tuple[str, str], Known] = {}
    for one in known:
        cell = one.workload, one.hardware
        if cell not in found or one.edp < found[cell].edp:
            found[cell] = one
    return found


def table(name: str, known: Sequence[Known]) -> Report:
    hardware: dict[str, list[Known]] = {}
    for one in known:
        hardware.setdefault(one.hardware, []).append(one)
    lines = []
    for name_of, mine in hardware.items():
        gaps = [x.gap for x in mine]
        lines.append(
            [name_of, str(len(gaps)), *(times(value) for value in (geometric_mean(gaps), min(gaps), max(gaps)))]
        )
    headline = "\n".join(f"{line[0]}: best known EDP is {line[2]} its proven bound (geometric mean)" for line in lines)
    text = (
        f"# Best known EDP of every cell\n\n"
        f"`sparsemap paper {name}`: the best of all searches of the studies {', '.join(STUDIES)} that have been run. "
        "The bound is proven: no design of the cell has a lower EDP. The gap is the EDP divided by the bound.\n\n"
        + markdown_table([["hardware", "cells", "gap, geometric mean", "smallest", "largest"], *lines])
        + "\n"
        + markdown_table(
            [["workload", "hardware", "EDP", "bound", "gap", "found by"], *(cell_line(one) for one in known)], "<<>>><"
        )
    )
    return Report(name, headline, text, [one.row for one in known], lambda: draw(hardware))


def cell_line(x: Known) -> list[str]:
    found_by = f"{x.searcher}, {x.budget:,} designs, seed {x.seed}"
    return [x.workload, x.hardware, number(x.edp), number(x.bound), times(x.gap), found_by]


def cell_texts(one: Known) -> list[str]:
    return [one.workload, one.hardware, number(one.edp), number(one.bound), times(one.gap)]


def draw(hardware: Mapping[str, Sequence[Known]]) -> Figure:
    """Gaps by workload."""

    figure, axis = subplots(1, 1, figsize=(9, 3.2))
    workloads = list(dict.fromkeys(x.workload for mine in hardware.values() for x in mine))
    for (one, mine), colour, marker in zip(hardware.items(), COLOURS, MARKERS, strict=False):
        axis.plot([workloads.index(x.workload) for x in mine], [x.gap for x in mine], marker, color=colour, label=one)
    axis.axhline(1, color="#444444", linewidth=0.8)
    axis.set(yscale="log", ylabel="best known EDP / proven bound", xlim=(-0.7, len(workloads) - 0.3))
    axis.set_xticks(range(len(workloads)), workloads, rotation=60, ha="right")
    axis.grid(axis="x", visible=False)
    plain_log(axis.yaxis, (1, 1.5, 2, 3, 5))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=len(hardware))
    return figure
