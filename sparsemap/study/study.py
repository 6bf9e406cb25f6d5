"""Studies: many cells (workload x hardware x searcher x seed), one after the other or over processes.

Every runner of a cell, this process or a worker, loads its own registry, so plugins need not pickle and the results do
not depend on the number of workers. A repeated study goes on where it stopped: a cell is kept if its `result.json` is
of exactly the same search."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import attrs

from ..csv_files import csv_text
from ..errors import SearchError, SparseMapError, SpecError, traced
from ..file_formats import STUDY
from ..files import four_digits, times
from ..markdown import markdown_table
from ..pieces.loading import load
from ..pieces.registry import Registry, is_path
from ..pieces.study_spec import Study
from ..problem.load import load_problem, piece_of
from ..problem.problem import Problem
from ..searching.budget import Budget
from ..searching.driver import Search
from ..searching.folder import check_result, finished, search_into
from ..searching.journal import JournalBusy, JournalMismatch
from ..searching.result import DESIGN_FILE, RESULT_FILE, Result
from ..searching.start import Start, keep_design, start_of
from ..spec.units import scaled_text
from ..writing import write_texts
from .cells import (
    KEPT,
    NAMES,
    NUMBERS,
    TABLE_FILES,
    Cell,
    Outcome,
    axes_in,
    cells_of,
    check_table,
    folder_of,
    placed,
    read_table,
)
from .plan import plans_of
from .workers import in_processes, on_cluster

logger = logging.getLogger("sparsemap")

Progress = Callable[[int, int, Outcome], None]
"""Called after every ended cell with the number ended, the total, and the last outcome."""


def run_study(
    study: Study | str | os.PathLike[str] | Mapping[str, Any],
    registry_args: Mapping[str, Any] | None = None,
    jobs: int = 1,
    out: str | os.PathLike[str] = "",
    progress: Progress | None = None,
    base: str | os.PathLike[str] = "",
    cluster: str = "",
    overwrite: bool = False,
    live: Callable[[Callable[[], bool]], None] | None = None,
) -> list[Outcome]:
    """Runs the unfinished cells of a study, `jobs` at a time, and writes the study's tables.

    `registry_args` are the arguments of `sparsemap.pieces.loading.load`, for workers to find the plugins. The study may
    be a name, a TOML file or a table; its paths are relative to `base`, by default the folder of its file. `cluster` is
    the address of a Dask scheduler, `dask://HOST:PORT`, with workers to run the cells instead. Outcomes are in the
    order of the study, whatever the order of completion: first the workloads, then the networks, an outcome per network
    with totals; for `progress` the layers of networks are cells. A failing cell does not stop the others. Ctrl-C keeps
    all finished cells, writes the tables and raises KeyboardInterrupt. A result of another search in the folder of a
    cell (`check_places`) is an error before anything runs, unless `overwrite` discards it. `live` is called after each
    cell but the last, with a function that writes the tables so far and returns whether there are any."""
    args = dict(registry_args or {})
    if not isinstance(study, Study):
        named = isinstance(study, str | os.PathLike) and is_path(os.fspath(study))
        base = base or (Path(study).parent if named else "")  # type: ignore[arg-type]
        study = piece_of(load(**args), "study", study)
        assert isinstance(study, Study)
    from .fused import FusedPlan, whole_of
    from .fused_told import kept

    folder, base = folder_of(study, out), Path(base)
    check_table(folder)
    cells = cells_of(study, folder, base)
    made = plans_of(study, folder, base, load(**args)) if study.networks else ()
    plans = [(cell, whole_of(make, study.fuse)) for cell, make in made]

    complete: dict[str, Outcome] = {}

    def whole(outcomes: list[Outcome]) -> list[Outcome]:
        found = {outcome.cell.folder: outcome for outcome in outcomes}
        ended = [found[cell.folder] for cell in cells if cell.folder in found]
        for cell, plan in plans:
            layers = [found[layer.folder] for layer in plan.cells if layer.folder in found]
            if layers and cell.folder not in complete:
                result = kept(plan, layers)
                if len(layers) == len(plan.cells):
                    alone = plan.plan if isinstance(plan, FusedPlan) else plan
                    complete[cell.folder] = alone.outcome(cell, layers, result)
        return [*ended, *(complete[cell.folder] for cell, _ in plans if cell.folder in complete)]

    def keep(found: list[Outcome]) -> None:
        write_tables(whole(found), folder, len(cells) + len(plans))

    def write_some() -> bool:
        """Writes the tables so far, unless a study of networks has none complete."""
        if rows := whole(so_far):
            write_tables(rows, folder, len(cells) + len(plans))
        return bool(rows)

    so_far: list[Outcome] = []

    def follow(done: int, total: int, outcome: Outcome) -> None:
        so_far.append(outcome)
        if live is not None and done < total:
            live(write_some)
        if progress is not None:
            progress(done, total, outcome)

    every = [*cells, *(cell for _, plan in plans for cell in plan.cells)]
    told = progress if live is None else follow
    return whole(run_cells(every, keep, args, jobs, told, cluster, overwrite=overwrite))


def run_cells(
    cells: Sequence[Cell], keep: Callable[[list[Outcome]], object], registry_args: Mapping[str, Any] | None = None,
    jobs: int = 1, progress: Progress | None = None, cluster: str = "",
    problem_of: Callable[[Cell], Problem] | None = None, overwrite: bool = False,
) -> list[Outcome]:  # fmt: skip
    """Outcomes of cells in their order; `keep` writes the outcomes so far, also after an early end.

    Other arguments, and the end, are those of `run_study`. `problem_of` has the problems of cells run by this process."""
    _loaded.cache_clear()  # plugins and specs may have changed since
    ended: dict[str, Outcome] = {}
    args = {key: [os.path.abspath(item) for item in value] for key, value in (registry_args or {}).items()}
    if not overwrite:
        check_places(cells, args, problem_of)
    begun = {folder for cell in cells for folder in cell.after}
    outcomes: Iterable[Outcome] = (run_cell(cell, args, problem_of, cell.folder in begun) for cell in cells)
    if cluster:
        outcomes = on_cluster(run_cell, cells, args, cluster)
    elif jobs > 1 and cells:
        outcomes = in_processes(run_cell, cells, args, jobs)
    interrupted = False
    try:
        for outcome in outcomes:
            if outcome.state == "interrupted":
                interrupted = True
                break
            ended[outcome.cell.folder] = outcome
            about = outcome.cell.name, outcome.state, f": {outcome.error}" * bool(outcome.error)
            level = logging.WARNING if outcome.state == "failed" and progress is None else logging.INFO
            logger.log(level, "%d of %d cells: %s %s%s", len(ended), len(cells), *about)
            if progress is not None:
                progress(len(ended), len(cells), outcome)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        found = [ended[cell.folder] for cell in cells if cell.folder in ended]
        try:
            keep(found)
        except OSError as error:
            raise SearchError(f"{error.filename or 'results'}: {error.strerror or error}") from error
    if interrupted:
        raise KeyboardInterrupt
    return found


def run_cell(
    cell: Cell,
    registry_args: Mapping[str, Any],
    problem_of: Callable[[Cell], Problem] | None = None,
    begun: bool = False,
) -> Outcome:
    """Runs a cell, or resumes it, unless finished; errors become the outcome. `begun`: other cells of this process
    start from its design.

    A journal or result of another search is discarded (`check_places` has already refused protected results). While
    another process writes the cell, this process waits, names the owner, and takes the other's result."""
    try:
        problem, searcher, start = _asked(cell, registry_args, problem_of)
        result: Result | None = None
        overwrite, told = False, ""
        while result is None:
            budget = Budget(cell.budget, count=cell.count)
            kept = finished(cell.folder, problem, searcher, budget, cell.seed, start)
            if kept:
                return Outcome(cell, "kept", {key: kept.get(key) for key in KEPT})
            try:
                result = search_into(cell.folder, problem, budget, cell.seed, searcher, None, overwrite, start)
                if begun and result.best is not None:
                    keep_design(Path(cell.folder, DESIGN_FILE), result.best.design)
            except JournalMismatch:
                if overwrite:
                    raise
                overwrite = True
            except JournalBusy as busy:  # it has been waited for already
                if busy.owner != told:
                    logger.warning("%s: waiting for %s, which is searching it", cell.name, busy.owner)
                told = busy.owner
    except SparseMapError as error:
        return Outcome(cell, "failed", error=traced(error))
    except OSError as error:
        return Outcome(cell, "failed", error=f"{error.filename or cell.folder}: {error.strerror or error}")
    except (Exception, SystemExit, GeneratorExit) as error:
        from ..pieces.faults import raised_in

        named = raised_in(error, error.__traceback__) or f"{type(error).__name__}: {error}"
        return Outcome(cell, "failed", error=traced(error, str(named)))
    table = result.to_dict()
    return Outcome(cell, "interrupted" if result.interrupted else "done", {key: table.get(key) for key in KEPT})


def check_places(
    cells: Iterable[Cell], registry_args: Mapping[str, Any], problem_of: Callable[[Cell], Problem] | None = None
) -> None:
    """`JournalMismatch` if a cell's folder has the complete result of another search (`folder.check_result`).

    Starting designs from other cells are not known yet, and not compared."""
    for cell in cells:
        if Path(cell.folder, RESULT_FILE).exists():
            alone = attrs.evolve(cell, after=(), start=()) if cell.after else cell
            try:
                problem, searcher, start = _asked(alone, registry_args, problem_of)
                budget = Budget(cell.budget, count=cell.count)
                identity = Search(problem, searcher, budget, cell.seed, start).identity
            except Exception:  # what is wrong with a cell is told when it is run
                continue
            check_result(Path(cell.folder), identity, ("start",) if cell.after else ())


def _asked(
    cell: Cell, registry_args: Mapping[str, Any], problem_of: Callable[[Cell], Problem] | None
) -> tuple[Problem, Any, Start | None]:
    """Problem, searcher, and starting designs of a cell."""
    parts = dict(cell.parts)
    searcher = parts.pop("searcher")
    problem = problem_of(cell) if problem_of else _problem(json.dumps(parts), _registry(registry_args))
    if (problem.bounded, problem.raced) != (cell.bounded, cell.raced):
        problem = attrs.evolve(problem, bounded=cell.bounded, raced=cell.raced)
    designs = [path for folder in cell.after if (path := Path(folder, DESIGN_FILE)).exists()]
    designs += [Path(file) for file in cell.start]
    return problem, searcher, start_of(problem, designs, count=len(designs), seed=cell.seed) if designs else None


def _registry(args: Mapping[str, Any]) -> Registry:
    """A registry per process (and per thread, for a cluster's worker with several) and set of plugins."""
    return _loaded(json.dumps(args, sort_keys=True), threading.get_ident())


@lru_cache(maxsize=8)
def _loaded(args: str, thread: int) -> Registry:
    return load(**json.loads(args))


@lru_cache(maxsize=1)
def _problem(parts: str, registry: Registry) -> Problem:
    """The problem of consecutive cells, such as cells with other seeds, made once with its tables."""
    return load_problem(**json.loads(parts), registry=registry)


def write_tables(outcomes: Iterable[Outcome], folder: Path, cells: int) -> list[Path]:
    """`table.csv` with full precision and `table.md` for reading, one row per cell, and `study.json` with their format.

    Unless all `cells` have ended well, the tables do not replace tables with more finished cells (`cells.placed`)."""
    rows = [outcome.row for outcome in outcomes]
    ended = sum(row["evaluations"] is not None for row in rows)
    earlier = 0
    with suppress(OSError, ValueError, SpecError):
        earlier = sum(bool(row.get("evaluations")) for row in read_table(folder))
    place = placed(folder, TABLE_FILES, partial=ended < cells, stays=ended < earlier)
    about = STUDY.stamped({"cells": cells, "ended": ended, "columns": list(rows[0]) if rows else []})
    texts = (csv_text(rows), markdown_text(rows), json.dumps(about, indent=2) + "\n")
    return write_texts({place / name: text for name, text in zip(TABLE_FILES, texts, strict=True)})


def markdown_text(rows: Iterable[Mapping[str, Any]]) -> str:
    table = shown_rows(rows)
    return markdown_table(table, "<" * table[0].index("seed") + ">")


def shown_rows(rows: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """The head, then the visible columns of each row: names, EDP, energy, cycles, time with several hardware, designs."""
    rows = list(rows)
    known = rows[0] if rows else dict.fromkeys(NAMES)
    several = len({row["hardware"] for row in rows}) > 1 and any(row.get("seconds") for row in rows)
    worth = ("seconds", "edp_js") if several else ("edp",)  # pJ * cycles of two clocks do not compare
    keys = (*NAMES[:3], *axes_in(known), "seed", *worth, *NUMBERS[1:])
    keys += ("broken_bound",) if any("broken_bound" in row for row in rows) else ()
    return [list(keys), *([_shown(key, row.get(key)) for key in keys] for row in rows)]


SHOWN: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("edp", "edp_js", "energy_pj"), four_digits),
    **dict.fromkeys(("cycles", "evaluations"), "{:,.0f}".format),
    "broken_bound": times,
    "seconds": partial(scaled_text, unit="s"),
    "valid_fraction": "{:.3f}".format,
}


def _shown(key: str, value: Any) -> str:
    """A value of a table in readable form."""
    return "-" if value is None else SHOWN.get(key, str)(value)
