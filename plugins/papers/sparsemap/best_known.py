"""The best design known of every cell, among all searches of the quality studies, with its proven bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from sparsemap.csv_files import read_csv
from sparsemap.files import grouped, times
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, number, page
from ..runs import Runner, StudyRun, finished_runs, geometric_mean

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


KNOWN = tuple(attrs.fields_dict(Known))


def report(runner: Runner, name: str) -> Report:
    cells = dict.fromkeys((run.workload, run.hardware) for run in runner.run(DEEP))
    found = best_of(known_from(runner))
    known = [bounded(runner, found[cell]) for cell in cells if cell in found]
    hardware = grouped(known, lambda one: one.hardware)
    lines = []
    for label, mine in hardware.items():
        gaps = [x.gap for x in mine]
        lines.append([label, str(len(gaps)), times(geometric_mean(gaps)), times(min(gaps)), times(max(gaps))])
    headline = "\n".join(f"{line[0]}: best known EDP is {line[2]} its proven bound (geometric mean)" for line in lines)
    text = page(
        __file__, name, studies=", ".join(STUDIES),
        table=[["hardware", "cells", "gap, geometric mean", "smallest", "largest"], *lines],
        cells=[["workload", "hardware", "EDP", "bound", "gap", "found by"], *map(cell_line, known)],
    )  # fmt: skip
    return Report(name, headline, text, [attrs.asdict(one) | {"gap": one.gap} for one in known], lambda: draw(hardware))


def bounded(runner: Runner, known: Known) -> Known:
    """With the bound of today, which may be tighter than when the searches ran."""
    return attrs.evolve(known, bound=runner.problem(runner.study(DEEP), known.workload, known.hardware).bound)


def known_from(runner: Runner) -> list[Known]:
    """What the searches of the quality studies have found that are there already."""
    folders = dict.fromkeys(runner.folder(study) for study in STUDIES)
    return [found for folder in folders for found in of_runs(finished_runs(folder, SEARCHERS))]


def of_runs(runs: Iterable[StudyRun]) -> list[Known]:
    return [Known(**run.told(*KNOWN)) for run in runs if math.isfinite(run.edp)]


def committed(folder: Path) -> list[Known]:
    """The table of an earlier run."""
    if not (folder / FILE).exists():
        return []
    return [Known(*(row[name] for name in KNOWN)) for row in read_csv(folder / FILE)]


def best_of(known: Iterable[Known]) -> dict[tuple[str, str], Known]:
    """The best by workload and hardware; of equal ones the first."""
    cells = grouped(known, lambda one: (one.workload, one.hardware))
    return {cell: min(found, key=lambda one: one.edp) for cell, found in cells.items()}


def cell_line(x: Known) -> list[str]:
    found_by = f"{x.searcher}, {x.budget:,} designs, seed {x.seed}"
    return [x.workload, x.hardware, number(x.edp), number(x.bound), times(x.gap), found_by]


def draw(hardware: Mapping[str, Sequence[Known]]) -> Figure:
    """Gaps by workload."""
    names = list(dict.fromkeys(x.workload for mine in hardware.values() for x in mine))
    places = {one: [names.index(x.workload) for x in mine] for one, mine in hardware.items()}
    points = [Series(one, at, [x.gap for x in hardware[one]], "") for one, at in places.items()]
    panel = Panel("", "best known EDP / proven bound", points, log="y", plain={"y": (1, 1.5, 2, 3, 5)}, names=names)
    return figure([attrs.evolve(panel, turned=60, levels=[1])], (9, 3.4))
