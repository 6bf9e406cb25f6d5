"""Runs studies, and reads the results of their searches."""

from __future__ import annotations

import contextlib
import io
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click
import numpy as np

from sparsemap import Problem, Search, SparseMapError, load_problem
from sparsemap.cli.networks import study_progress
from sparsemap.cli.output import say
from sparsemap.csv_files import read_csv
from sparsemap.files import grouped
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.loading import load
from sparsemap.study.cells import Cell, Outcome, built_in, cells_of
from sparsemap.study.study import run_cells, write_tables

from .rows import counted, finite, geometric_mean

T = TypeVar("T")
U = TypeVar("U")


@attrs.frozen(eq=False, slots=False)
class StudyRun:
    """One finished search of a study."""

    workload: str
    hardware: str
    searcher: str
    seed: int
    folder: Path

    @classmethod
    def of(cls, cell: Cell) -> StudyRun:
        return cls(cell.workload, cell.hardware, cell.searcher, cell.seed, Path(cell.folder))

    @cached_property
    def result(self) -> dict[str, Any]:
        """The contents of `result.json`."""
        return json.loads((self.folder / "result.json").read_text("utf-8"))

    def columns(self, *columns: str) -> dict[str, Any]:
        """Cells of a CSV: attributes of the search, or entries of its result."""
        return {name: getattr(self, name) if hasattr(self, name) else self.result[name] for name in columns}

    @property
    def edp(self) -> float:
        """pJ * cycles; infinity without a valid design."""
        return math.inf if self.result["edp"] is None else self.result["edp"]

    @property
    def valid_fraction(self) -> float:
        return self.result["valid_fraction"]

    @cached_property
    def history(self) -> dict[str, Array]:
        """Columns of the convergence, a row per batch."""
        rows = read_csv(self.folder / "history.csv")
        names = ("evaluations", "best_score", "valid", "mean_score")
        return {name: np.array([float(row[name] or "nan") for row in rows]) for name in names}

    @cached_property
    def seconds(self) -> Array:
        """Processor time of the search after each batch of the history."""
        return np.array([float(row["seconds"]) for row in read_csv(self.folder / "timing.csv")])

    def best_at(self, evaluations: Array, column: str = "best_score") -> Array:
        """The best score, or another column, after numbers of evaluations; NaN before the first valid design."""
        at = np.searchsorted(self.history["evaluations"], evaluations, side="right") - 1
        found = np.where(at >= 0, self.history[column][np.maximum(at, 0)], np.nan)
        return np.where(np.isfinite(found), found, np.nan)

    def designs_to(self, score: float) -> float:
        """Designs until the search reaches a score of at most `score`; infinity if never."""
        reached = np.flatnonzero(self.history["best_score"] <= score)
        return float(self.history["evaluations"][reached[0]]) if len(reached) else math.inf


@attrs.frozen
class Runner:
    """Runs studies with the options of the command line."""

    jobs: int = 1
    overwrite: bool = False
    """Discard results of other searches in the folder."""
    work: Path | None = None
    """Folder of the searches; absent: the study's own."""
    scale: float = 1.0
    seeds: int = 0
    workloads: tuple[str, ...] = ()
    out: Path = Path("runs/paper")
    """Folder of the tables; `quality` reads the best known designs there."""
    registry: Any = attrs.field(factory=load)
    clone: Path | None = None
    """A clone of Sparseloop's artifact."""

    def study(self, name: str) -> Any:
        """The study, with the scale, seeds and workloads of the command line."""
        study = self.registry.resolve("study", name)
        parts = study.workloads, study.networks
        unknown = [workload for workload in self.workloads if workload not in (*parts[0], *parts[1])]
        if unknown:
            raise SparseMapError(f"--workload: study '{name}' has no {', '.join(unknown)}")
        kept = (tuple(x for x in known if not self.workloads or x in self.workloads) for known in parts)
        about = {"seeds": study.seeds[: self.seeds or None], "budget": max(1, round(self.scale * study.budget))}
        return attrs.evolve(study, **dict(zip(("workloads", "networks"), kept, strict=True)), **about)

    def folder(self, name: str) -> Path:
        """Folder of the searches of a study; searches of the same kind and budget share a folder."""
        study = self.registry.resolve("study", name)
        folder = self.work / Path(study.out).name if self.work else Path(study.out)
        return folder if self.scale == 1 else folder.with_name(f"{folder.name}-x{self.scale:g}")

    def problem(self, study: Any, workload: Any, hardware: str, space: str = "") -> Problem:
        """A problem with the cost model and the space of a study, or with another space."""
        where = workload, built_in(study.technology, hardware), space or study.space
        return load_problem(*where, cost_model=study.cost_model, registry=self.registry)

    def cells(self, name: str, what: str = "workload") -> list[Cell]:
        """The searches of a study, of its workloads or its networks, in order."""
        return cells_of(self.study(name), self.folder(name).resolve(), what=what)

    def run(self, name: str, cells: Sequence[Cell] = ()) -> list[StudyRun]:
        """All searches of a study, or the given ones, in order, after the unfinished ones have run; writes tables."""
        cells, folder = cells or self.cells(name), self.folder(name)
        outcomes = self.run_cells(name, cells, lambda found: write_tables(found, folder, len(cells)))
        kept = sum(outcome.state == "kept" for outcome in outcomes)
        say(f"{name}: {len(outcomes)} searches, {kept} kept from earlier, are in {folder}")
        return [StudyRun.of(cell) for cell in cells]

    def run_cells(
        self, name: str, cells: Sequence[Cell], keep: Callable[[list[Outcome]], object] = lambda found: None
    ) -> list[Outcome]:
        """Runs the unfinished cells; `SparseMapError` if a search fails."""
        with study_progress(False, cells, self.folder(name)) as progress:
            outcomes = run_cells(cells, keep, jobs=self.jobs, progress=progress, overwrite=self.overwrite)
        if failed := sum(outcome.state == "failed" for outcome in outcomes):
            raise SparseMapError(f"{failed} of {len(outcomes)} searches of study '{name}' failed")
        return outcomes

    def each(self, work: Callable[[U], T], items: Sequence[U]) -> Iterator[T]:
        """`work` of each item, in order; with several `jobs`, in processes."""
        if min(self.jobs, len(items)) < 2:
            yield from map(work, items)
            return
        with ProcessPoolExecutor(self.jobs, get_context("spawn")) as pool:
            yield from pool.map(work, items)


def said_by(verb: str, *words: str) -> str:
    """The output of a verb, perhaps of another plugin."""
    from sparsemap.cli.main import cli

    command = cli.get_command(click.Context(cli), verb)
    if command is None:
        raise SparseMapError(f"the verb `{verb}` is missing: its plugin is not loaded")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        command.main(list(words), standalone_mode=False)
    return said.getvalue()


def traced(run: Search) -> tuple[Array, Array]:
    """(n, G) genomes of a search and (n,) their EDPs, infinite for invalid designs."""
    genomes, edps = [], []
    while (asked := run.ask()) is not None:
        found = run.evaluate()
        genomes.append(asked)
        edps.append(np.where(found.valid, found.edp, np.inf))
        run.tell(found)
    return np.concatenate(genomes), np.concatenate(edps)


def finished_runs(folder: Path, searchers: Sequence[str]) -> list[StudyRun]:
    """All finished searches in a folder, of any study."""
    found = []
    for path in sorted(folder.glob("*--*--*--seed*/result.json")):
        workload, hardware, searcher, seed = path.parent.name.split("--")
        if searcher in searchers:
            found.append(StudyRun(workload, hardware, searcher, int(seed.removeprefix("seed")), path.parent))
    return found


def by(items: Iterable[Any], *names: str) -> dict[Any, list[Any]]:
    """Objects by the value of an attribute, by tuples of values for several names."""
    return grouped(items, attrgetter(*names))


def typical_edp(runs: Sequence[StudyRun]) -> float:
    """Geometric mean over seeds with a valid design; infinity without any."""
    found = finite(run.edp for run in runs)
    return geometric_mean(found) if found else math.inf


def edps_of(runs: Iterable[StudyRun], *names: str) -> dict[Any, dict[str, float]]:
    """Typical EDPs by the values of some attributes, and by searcher."""
    places = by(runs, *names).items()
    return {place: {one: typical_edp(same) for one, same in by(found, "searcher").items()} for place, found in places}


def effort(runs: Sequence[StudyRun]) -> str:
    """Budget and repetitions of searches: 2,000 designs, 3 seeds."""
    return f"{runs[0].result['budget']:,} designs, {counted(len({run.seed for run in runs}), 'seed')}"


def curve(label: str, runs: Sequence[StudyRun], column: str = "best_score", unit: float = 1.0) -> list[dict[str, Any]]:
    """Median and range of several searches by number of designs; a search without a valid design counts as infinite.

    `top` is the upper end of the drawn range, `label` the drawn one."""
    last = min(run.history["evaluations"][-1] for run in runs)
    evaluations = np.unique(np.geomspace(max(last / 200, 1), last, 200).astype(int))
    scores = np.stack([run.best_at(evaluations, column) for run in runs]) / unit
    scores = np.where(np.isnan(scores), np.inf, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the median between infinities
        middle = np.median(scores, axis=0)
    low, high = scores.min(axis=0), scores.max(axis=0)
    every = evaluations, middle, low, high, np.where(np.isfinite(high), high, middle)
    names, seen = ("label", "evaluations", "edp", "lowest", "highest", "top"), np.isfinite(middle).any()
    label = label if seen else f"{label}: no line, as no design was valid"
    return [
        dict(zip(names, (label, *line), strict=True)) for line in zip(*(one.tolist() for one in every), strict=True)
    ]


def at(curve: Sequence[Mapping[str, Any]], evaluations: float) -> float:
    """The median after a number of designs."""
    return [row["edp"] for row in curve if row["evaluations"] <= evaluations][-1]
