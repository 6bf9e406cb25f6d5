"""Studies: many cells (workload x hardware x searcher x seed), one after the other or over processes.

A cell is plain data. Whoever runs it, this process or a worker, loads its own registry, so plugins need not pickle and
the results do not depend on the number of workers. A cell's folder holds `cell.json`, what was asked for, and the files
of the result; `result.json` is written last, so a study that is run again goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import attrs

from ..errors import SearchError, SparseMapError, SpecError
from ..files import csv_text, is_temporary, markdown_table, read_bytes, write_text
from ..pieces.data_specs import Study
from ..pieces.registry import Registry, is_path
from ..problem.load import load_problem
from ..searching.driver import OnPluginError, Snapshot
from ..searching.folder import discard, search_into
from ..searching.journal import JOURNAL_FILE, JournalMismatch, designs_in
from ..searching.result import RESULT_FILE, Result, read_result
from ..spec.unstructuring import plain
from .workers import in_processes, on_cluster

CELL_FILE = "cell.json"
TABLE_FILES = ("table.csv", "table.md")
COMPARISON_FILES = ("comparison.csv", "comparison-means.csv", "comparison.md")
NAMES = ("workload", "hardware", "searcher", "seed")
LABEL = 60
"""Characters of a workload, hardware or searcher in the name of a cell's folder."""
NUMBERS = ("edp", "energy_pj", "cycles", "evaluations", "valid_fraction")


@attrs.frozen(kw_only=True)
class Cell:
    """One search of a study, as plain data. `workload`, `hardware` and `searcher` are what the tables call them."""

    workload: str
    hardware: str
    searcher: str
    seed: int
    budget: int
    parts: Mapping[str, Any]
    """Arguments of `load_problem`, and `searcher`: names, paths of files, or tables."""
    folder: str
    """Where the files of the cell go."""
    on_plugin_error: OnPluginError = "stop"
    identity: str
    """JSON text of all that the result depends on: a finished cell with the same text is not run again."""

    @property
    def name(self) -> str:
        return f"{self.workload} on {self.hardware} with {self.searcher}, seed {self.seed}"


@attrs.frozen
class Outcome:
    """How a cell ended: "done", "kept" from an earlier run, "failed" or "interrupted"."""

    cell: Cell
    state: str
    numbers: Mapping[str, Any] = attrs.field(factory=dict)
    """Values of `NUMBERS`; None where no valid design was found."""
    error: str = ""

    @property
    def row(self) -> dict[str, Any]:
        """The row of the cell in the tables."""
        return {key: getattr(self.cell, key) for key in NAMES} | {key: self.numbers.get(key) for key in NUMBERS}


Progress = Callable[[int, int, Outcome], None]
"""Hears of every cell that has ended: how many have, of how many, and the last one."""


def run_study(
    study: Study,
    registry_args: Mapping[str, Any] | None = None,
    jobs: int = 1,
    out: str | os.PathLike[str] = "",
    progress: Progress | None = None,
    base: str | os.PathLike[str] = ".",
    cluster: str = "",
) -> list[Outcome]:
    """Runs the cells of a study that are not finished yet, `jobs` at a time, and writes its tables.

    `registry_args` are the arguments of `sparsemap.pieces.loading.load`, by which workers find the plugins. Paths in the study
    are relative to `base`. `cluster` is the address of a Dask scheduler, `dask://HOST:PORT`, whose workers then run the
    cells instead. Outcomes are in the order of the study, whatever the order in which they ended. A cell that fails
    does not stop the others. Ctrl-C keeps what has ended, writes the tables and raises KeyboardInterrupt.
    """
    folder = folder_of(study, out)
    cells = cells_of(study, folder, Path(base))
    ended: dict[str, Outcome] = {}
    args = {key: [os.path.abspath(item) for item in value] for key, value in (registry_args or {}).items()}
    outcomes: Iterable[Outcome] = (run_cell(cell, args) for cell in cells)
    if cluster:
        outcomes = on_cluster(run_cell, cells, args, cluster)
    elif jobs > 1 and cells:
        outcomes = in_processes(partial(run_cell, parent=(platform.node(), os.getpid())), cells, args, jobs)
    interrupted = False
    try:
        for outcome in outcomes:
            if outcome.state == "interrupted":
                interrupted = True
                break
            ended[outcome.cell.folder] = outcome
            if progress is not None:
                progress(len(ended), len(cells), outcome)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        found = [ended[cell.folder] for cell in cells if cell.folder in ended]
        try:
            write_tables(found, folder)
        except OSError as error:
            raise SearchError(f"{error.filename or folder}: {error.strerror or error}") from error
    if interrupted:
        raise KeyboardInterrupt
    return found


def folder_of(study: Study, out: str | os.PathLike[str] = "") -> Path:
    """Where the results of a study go: `out`, or else what the study says.

    A study may come from somebody else, so that what it says has to be a folder below the working directory, one that
    is new, empty or a study's already: it must not overwrite anything.
    """
    if out:
        return Path(out).expanduser().resolve()
    if not study.out:
        raise SearchError(f"study '{study.name}' does not say where its results go: set 'out' in it, or give a folder")
    here, folder = Path.cwd().resolve(), Path(study.out).resolve()
    if study.out.startswith("~") or here not in folder.parents:
        raise SearchError(f"study '{study.name}': out = {study.out!r} is not below the working directory; give --out")
    for entry in folder.iterdir() if folder.is_dir() else ():
        if not _is_of_study(entry):
            found = f"holds {entry.name!r}, which is not of a study"
            raise SearchError(f"study '{study.name}': out = {study.out!r} {found}; give another folder with --out")
    return folder


def running(cells: Iterable[Cell]) -> tuple[int, int]:
    """How many cells have a search that has begun and not ended, and about how many designs it has evaluated."""
    counts = [count for cell in cells if (count := designs_in(Path(cell.folder, JOURNAL_FILE)))]
    return len(counts), sum(counts)


def _is_of_study(entry: Path) -> bool:
    """Whether a study made this file or folder."""
    if entry.is_dir():
        return (entry / CELL_FILE).is_file() or all(is_temporary(below) for below in entry.iterdir())
    return entry.name in (*TABLE_FILES, *COMPARISON_FILES) or is_temporary(entry)


def cells_of(study: Study, folder: Path, base: Path = Path(".")) -> list[Cell]:
    """The cells of a study, in its order: workload, hardware, searcher, seed."""
    workloads, hardware, searchers = map(_labels, (study.workloads, study.hardware, study.searchers))
    seeds = dict.fromkeys(study.seeds)
    cells = []
    for (work, work_label), (hard, hard_label), (searcher, searcher_label), seed in product(
        workloads.items(), hardware.items(), searchers.items(), seeds
    ):
        parts = {
            "workload": work,
            "hardware": hard,
            "searcher": searcher,
            "space": study.spaces.get(searcher, study.space),
            "objective": study.objective,
            "cost_model": study.cost_model,
        }
        parts = {key: plain(placed(value, base) if names_file(key, value) else value) for key, value in parts.items()}
        described = {key: _described(value) if names_file(key, value) else value for key, value in parts.items()}
        described |= {"budget": study.budget, "seed": seed}
        name = "--".join((work_label, hard_label, searcher_label, f"seed{seed}"))
        cells.append(
            Cell(
                workload=work_label,
                hardware=hard_label,
                searcher=searcher_label,
                seed=seed,
                budget=study.budget,
                parts=parts,
                folder=str(folder / name),
                on_plugin_error=study.on_plugin_error,
                identity=json.dumps(described, indent=2, sort_keys=True) + "\n",
            )
        )
    return cells


def run_cell(cell: Cell, registry_args: Mapping[str, Any], parent: tuple[str, int] | None = None) -> Outcome:
    """Runs one cell unless it is finished; errors become the outcome.

    A worker whose `parent` (machine and process) was killed stops, so that it is not in the way of the study's next run.
    """
    kept = _finished(cell)
    try:
        if _orphaned(parent):
            return Outcome(cell, "interrupted")
        if kept is not None:
            discard(cell.folder)  # killed between writing the result and removing the journal
            return Outcome(cell, "kept", kept)
        result = _searched(cell, _registry(registry_args), parent)
    except SparseMapError as error:
        return Outcome(cell, "failed", error=str(error))
    except OSError as error:
        return Outcome(cell, "failed", error=f"{error.filename or cell.folder}: {error.strerror or error}")
    except Exception as error:
        return Outcome(cell, "failed", error=f"{type(error).__name__}: {error}")
    table = result.to_dict()
    return Outcome(cell, "interrupted" if result.interrupted else "done", {key: table.get(key) for key in NUMBERS})


def _orphaned(parent: tuple[str, int] | None) -> bool:
    """Whether the process that handed out the work is gone."""
    if parent is None or os.name != "posix" or parent[0] != platform.node():
        return False
    try:
        os.kill(parent[1], 0)  # asks, and does not kill
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _searched(cell: Cell, registry: Registry, parent: tuple[str, int] | None = None) -> Result:
    """Runs the search of a cell, or goes on with it, and writes its files, `cell.json` first and `result.json` last.

    A journal that does not fit, such as that of a cell which the study has changed since, is discarded.
    """
    parts = dict(cell.parts)
    searcher = parts.pop("searcher")
    problem = load_problem(**parts, registry=registry)
    folder = Path(cell.folder)
    (folder / RESULT_FILE).unlink(missing_ok=True)
    write_text(folder / CELL_FILE, cell.identity)

    def stop_if_orphaned(_: Snapshot) -> None:
        if _orphaned(parent):
            raise KeyboardInterrupt

    def searched(overwrite: bool) -> Result:
        hear, policy = stop_if_orphaned if parent else None, cell.on_plugin_error
        return search_into(folder, problem, cell.budget, cell.seed, searcher, hear, overwrite, on_plugin_error=policy)

    try:
        return searched(overwrite=False)
    except JournalMismatch:
        return searched(overwrite=True)


def _finished(cell: Cell) -> dict[str, Any] | None:
    """The numbers of a cell that an earlier run has finished; None if it has to be run."""
    folder = Path(cell.folder)
    try:
        if (folder / CELL_FILE).read_text("utf-8") != cell.identity:
            return None
        table = read_result(folder)
    except (OSError, UnicodeDecodeError, SearchError):
        return None
    if not isinstance(table, dict) or table.get("interrupted") or not all(key in table for key in NUMBERS):
        return None
    return {key: table[key] for key in NUMBERS}


def _registry(args: Mapping[str, Any]) -> Registry:
    """One registry per process (and thread, should a cluster's worker have several) and set of plugins."""
    return _loaded(json.dumps(args, sort_keys=True), threading.get_ident())


@lru_cache(maxsize=8)
def _loaded(args: str, thread: int) -> Registry:
    from ..pieces.loading import load

    return load(**json.loads(args))


# --------------------------------------------------------------------------------------------------------------- tables


def write_tables(outcomes: Iterable[Outcome], folder: Path) -> list[Path]:
    """`table.csv` with full precision and `table.md` for reading, one row per cell, whole or not at all."""
    rows = [outcome.row for outcome in outcomes]
    paths = [folder / name for name in TABLE_FILES]
    for path, text in zip(paths, (csv_text(rows), markdown_text(rows)), strict=True):
        write_text(path, text)
    return paths


def markdown_text(rows: Iterable[Mapping[str, Any]]) -> str:
    table = [[*NAMES, *NUMBERS], *([_shown(key, row[key]) for key in (*NAMES, *NUMBERS)] for row in rows)]
    return markdown_table(table, "<" * (len(NAMES) - 1) + ">")


def _shown(key: str, value: Any) -> str:
    """A value of a table for people."""
    if value is None:
        return "-"
    if key in ("edp", "energy_pj"):
        return f"{value:.4g}"
    if key in ("cycles", "evaluations"):
        return f"{value:,.0f}"
    if key == "valid_fraction":
        return f"{value:.3f}"
    return str(value).replace("|", "\\|")


# --------------------------------------------------------------------------------------------------- names and identity


def _labels(references: Iterable[str]) -> dict[str, str]:
    """What to call each of the names and paths: a file without folder and ending, as long as that is clear."""
    references = list(dict.fromkeys(references))
    stems = [Path(text).stem if is_path(text) else text for text in references]
    long = [re.sub(r"\.toml$", "", text) if is_path(text) else text for text in references]
    labels = [stem if stems.count(stem) == 1 else text for stem, text in zip(stems, long, strict=True)]
    slugs = [re.sub(r"[^0-9A-Za-z._+=-]+", "-", label).strip("-.") or "unnamed" for label in labels]
    return {
        text: slug if slugs.count(slug) == 1 and len(slug) <= LABEL else f"{slug[:LABEL]}-{_digest(text)}"
        for text, slug in zip(references, slugs, strict=True)
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:6]


def names_file(key: str, value: Any) -> bool:
    """Whether a part of a study is the path of a file; the slash of an objective is a division."""
    return isinstance(value, str) and (value.endswith(".toml") if key == "objective" else is_path(value))


def placed(value: str, base: Path) -> str:
    """A path of a study, which is relative to the study's folder, or else to the working directory."""
    try:
        beside = base / Path(value).expanduser()
        return str(beside.resolve() if beside.exists() else Path(value).expanduser())
    except (OSError, RuntimeError):  # too long for a name, or a home that nobody has: told when it is read
        return value


def _described(value: str) -> dict[str, str]:
    """A file by its name and what is in it, so that it may be moved but not changed."""
    try:
        digest = hashlib.sha256(read_bytes(value)).hexdigest()
    except SpecError:
        digest = ""
    return {"file": Path(value).name, "sha256": digest}
