"""The best design known of every cell, among all searches of the quality studies, with its proven bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from sparsemap.files import read_csv, times
from sparsemap.plots import COLOURS, MARKERS, Figure, named_ticks, plain_log, subplots

from ..report import Report, number, page
from ..runs import Run, Runner, by, finished_runs, geometric_mean

DEEP = "quality-200000"
STUDIES = ("quality-2000", "quality-20000", DEEP)
SEARCHERS = ("sparsemap", "sparsemap-paper")
FILE = "best-known.csv"


@attrs.frozen
class Known:
    """The best design known of a cell."""

    workload: str
    hardware: str
    edp: float = attrs.field(converter=float)
    searcher: str
    budget: int = attrs.field(converter=int)
    seed: int = attrs.field(converter=int)
    bound: float = attrs.field(converter=lambda bound: float(bound or "nan"))

    @property
    def gap(self) -> float:
        return self.edp / self.bound


def report(runner: Runner, name: str) -> Report:
    cells = dict.fromkeys((run.workload, run.hardware) for run in runner.run(DEEP))
    found = best_of(known_from(runner))
    known = [bounded(runner, found[cell]) for cell in cells if cell in found]
    hardware = by(known, lambda one: one.hardware)
    lines = []
    for label, mine in hardware.items():
        gaps = [x.gap for x in mine]
        lines.append([label, str(len(gaps)), times(geometric_mean(gaps)), times(min(gaps)), times(max(gaps))])
    headline = "\n".join(f"{line[0]}: best known EDP is {line[2]} its proven bound (geometric mean)" for line in lines)
    text = page(
        __file__,
        name,
        studies=", ".join(STUDIES),
        table=[["hardware", "cells", "gap, geometric mean", "smallest", "largest"], *lines],
        cells=[["workload", "hardware", "EDP", "bound", "gap", "found by"], *map(cell_line, known)],
    )
    return Report(name, headline, text, [attrs.asdict(one) | {"gap": one.gap} for one in known], lambda: draw(hardware))


def bounded(runner: Runner, known: Known) -> Known:
    """With the bound of today, which may be tighter than when the searches ran."""
    return attrs.evolve(known, bound=runner.problem(runner.study(DEEP), known.workload, known.hardware).bound)


def known_from(runner: Runner) -> list[Known]:
    """What the searches of the quality studies have found that are there already."""
    folders = dict.fromkeys(runner.folder(study) for study in STUDIES)
    return [found for folder in folders for found in of_runs(finished_runs(folder, SEARCHERS))]


def of_runs(runs: Iterable[Run]) -> list[Known]:
    return [
        Known(run.workload, run.hardware, run.edp, run.searcher, run.result["budget"], run.seed, run.result["bound"])
        for run in runs
        if math.isfinite(run.edp)
    ]


def committed(folder: Path) -> list[Known]:
    """The table of an earlier run."""
    if not (folder / FILE).exists():
        return []
    return [Known(*(row[name] for name in attrs.fields_dict(Known))) for row in read_csv(folder / FILE)]


def best_of(known: Iterable[Known]) -> dict[tuple[str, str], Known]:
    """The best by workload and hardware; of equal ones the first."""
    cells = by(known, lambda one: (one.workload, one.hardware))
    return {cell: min(found, key=lambda one: one.edp) for cell, found in cells.items()}


def cell_line(x: Known) -> list[str]:
    found_by = f"{x.searcher}, {x.budget:,} designs, seed {x.seed}"
    return [x.workload, x.hardware, number(x.edp), number(x.bound), times(x.gap), found_by]


def draw(hardware: Mapping[str, Sequence[Known]]) -> Figure:
    """Gaps by workload."""
    figure, axis = subplots(1, 1, figsize=(9, 3.2))
    workloads = list(dict.fromkeys(x.workload for mine in hardware.values() for x in mine))
    for (one, mine), colour, marker in zip(hardware.items(), COLOURS, MARKERS, strict=False):
        axis.plot([workloads.index(x.workload) for x in mine], [x.gap for x in mine], marker, color=colour, label=one)
    axis.axhline(1, color="#444444", linewidth=0.8)
    axis.set(yscale="log", ylabel="best known EDP / proven bound", xlim=(-0.7, len(workloads) - 0.3))
    named_ticks(axis.xaxis, workloads, rotation=60, ha="right")
    plain_log(axis.yaxis, (1, 1.5, 2, 3, 5))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=len(hardware))
    return figure
