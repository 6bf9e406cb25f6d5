"""The best known design of every cell, among all searches of the quality studies, with the proven bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from sparsemap.csv_files import read_csv
from sparsemap.files import times
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, by, number, page
from ..runs import Runner, StudyRun, finished_runs, geometric_mean

DEEP = "quality-200000"
STUDIES = ("quality-2000", "quality-20000", DEEP)
SEARCHERS = ("sparsemap", "sparsemap-paper")
FILE = "best-known.csv"


@attrs.frozen
class Known:
    """The best known design of a cell."""

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
    cells, found = by(runner.run(DEEP), "workload", "hardware"), best_of(known_from(runner))
    known = [bounded(runner, found[cell]) for cell in cells if cell in found]
    hardware = {label: [x.gap for x in mine] for label, mine in by(known, "hardware").items()}
    table = [
        [label, str(len(gaps)), *map(times, (geometric_mean(gaps), min(gaps), max(gaps)))]
        for label, gaps in hardware.items()
    ]
    headline = "\n".join(f"{line[0]}: best known EDP is {line[2]} its proven bound (geometric mean)" for line in table)
    text = page(
        __file__, name, studies=", ".join(STUDIES),
        table=[["hardware", "cells", "gap, geometric mean", "smallest", "largest"], *table],
        cells=[["workload", "hardware", "EDP", "bound", "gap", "found by"], *map(cell_line, known)],
    )  # fmt: skip
    return Report(name, headline, text, [attrs.asdict(one) | {"gap": one.gap} for one in known], lambda: draw(known))


def bounded(runner: Runner, known: Known) -> Known:
    """With today's bound, perhaps tighter than the bound of the search."""
    return attrs.evolve(known, bound=runner.problem(runner.study(DEEP), known.workload, known.hardware).bound)


def known_from(runner: Runner) -> list[Known]:
    """The designs of all finished searches of the quality studies."""
    folders = dict.fromkeys(runner.folder(study) for study in STUDIES)
    return [found for folder in folders for found in of_runs(finished_runs(folder, SEARCHERS))]


def of_runs(runs: Iterable[StudyRun]) -> list[Known]:
    return [Known(**run.columns(*KNOWN)) for run in runs if math.isfinite(run.edp)]


def committed(folder: Path) -> list[Known]:
    """The table of an earlier run."""
    rows = read_csv(folder / FILE) if (folder / FILE).exists() else []
    return [Known(*(row[name] for name in KNOWN)) for row in rows]


def best_of(known: Iterable[Known]) -> dict[tuple[str, str], Known]:
    """The best by workload and hardware; the first of equals."""
    cells = by(known, "workload", "hardware")
    return {cell: min(found, key=lambda one: one.edp) for cell, found in cells.items()}


def cell_line(x: Known) -> list[str]:
    found_by = f"{x.searcher}, {x.budget:,} designs, seed {x.seed}"
    return [x.workload, x.hardware, number(x.edp), number(x.bound), times(x.gap), found_by]


def draw(known: Sequence[Known]) -> Figure:
    """Gaps by workload."""
    names = list(dict.fromkeys(x.workload for x in known))
    hardware: Mapping[str, list[Known]] = by(known, "hardware")
    points = [
        Series(x, [names.index(y.workload) for y in mine], [y.gap for y in mine], "") for x, mine in hardware.items()
    ]
    panel = Panel("", "best known EDP / proven bound", points, log="y", plain={"y": (1, 1.5, 2, 3, 5)}, names=names)
    return figure([attrs.evolve(panel, turned=60, levels=[1])], (9, 3.4))
