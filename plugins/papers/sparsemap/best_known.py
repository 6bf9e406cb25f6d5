"""The best known design of every cell, among all searches of the quality studies, with the proven bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from sparsemap.csv_files import read_csv

from ..runs import Runner, StudyRun, by, finished_runs

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


def page(runner: Runner, name: str) -> dict[str, Any]:
    cells, found = by(runner.run(DEEP), "workload", "hardware"), best_of(known_from(runner))
    known = [bounded(runner, found[cell]) for cell in cells if cell in found]
    return {"rows": [attrs.asdict(one) | {"gap": one.gap} for one in known], "studies": ", ".join(STUDIES)}


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
