"""Searches with files in a folder: running a search into a folder, identifying its search, and checking for its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import DesignError, PluginError, SearchError
from ..files import shown
from ..pieces.contracts import Array, Searcher
from ..pieces.defaults import JOURNAL_FILE
from ..problem import design_file
from ..problem.designs import Design
from ..problem.problem import Problem
from ..writing import sweep
from .budget import Budget
from .driver import Search, Snapshot
from .identity import Identity, in_the_way
from .journal import Journal, JournalMismatch
from .result import DESIGN_FILE, FRONT_FOLDER, PARTIAL_FOLDER, RESULT_FILE, Result
from .run import SearchStopped, completed, started
from .written import read_result

if TYPE_CHECKING:
    from .start import Given, Start

ADVICE = "Choose another folder, or overwrite it (--overwrite, in Python overwrite=True)"


def check_place(folder: Path, identity: Identity, overwrite: bool) -> None:
    """`JournalMismatch` if a result in a folder, or in `partial` below, is of another search, see `in_the_way`. Skipped
    with `overwrite`, or if a search has already begun to replace the result."""
    if not (overwrite or unfinished(folder)):
        check_result(folder, identity, partial=True)


def check_result(folder: Path, identity: Identity, apart: Sequence[str] = (), partial: bool = False) -> None:
    """Like `check_place`, regardless of a search in progress. Only complete results count, unless `partial`; a design
    without a result then counts as well. Keys `apart` may differ."""
    for place in (folder, folder / PARTIAL_FOLDER)[: 1 + partial]:
        if table := _result(place, partial):
            about = f"{table.get('workload')} on {table.get('hardware')}"
            check_file(place / RESULT_FILE, about, table.get("identity", {}), identity, apart)
        elif partial and (place / DESIGN_FILE).exists():
            text = f"{shown(place / DESIGN_FILE)} is of a search that is not known, without a {RESULT_FILE} that can be read"
            raise JournalMismatch(f"{text}. {ADVICE}")


def check_file(file: Path, about: str, there: Identity, wanted: Identity, apart: Sequence[str] = ()) -> None:
    """Like `check_result`, for any file with the results of a search, described by `about`."""
    if differ := in_the_way(there, wanted, apart):
        text = f"{shown(file)} is of another search, {about}; {differ}"
        raise JournalMismatch(f"{text}. {ADVICE}")


def search_into(
    folder: str | os.PathLike[str],
    problem: Problem,
    budget: Budget | int | str = 20_000,
    seed: int = 0,
    searcher: Searcher | str | Mapping[str, Any] | None = None,
    progress: Callable[[Snapshot], None] | None = None,
    overwrite: bool = False,
    start: Sequence[Given] | Array | Start | None = None,
    execute: int = 0,
) -> Result:
    """Like `search`, with the result written to `folder`, and a journal there until the end.

    A stopped search, for whatever reason, resumes and ends with the same result. On a failure, the best design so far
    is written as the result of an interrupted search. A complete result stays until the next complete result
    (`Result.place`); the result of another search is only replaced with `overwrite`. Two searches cannot write to the
    same folder at a time."""
    folder = Path(folder)
    run = started(problem, searcher, budget, seed, start, execute)
    identity = run.identity
    check_place(folder, identity, overwrite)
    with Journal(folder / JOURNAL_FILE, identity, overwrite) as journal:
        try:
            result = completed(run, progress, journal, execute)
        except (PluginError, SearchStopped) as error:
            if error.result is not None:
                error.result = attrs.evolve(error.result, interrupted=True)
                with suppress(OSError):  # what made the search fail is what has to be reported
                    error.result.write(folder, overwrite=True)
            raise
        result = attrs.evolve(result, asked=identity)
        try:
            result.write(folder, overwrite=True)
            sweep(folder / FRONT_FOLDER)
            if not result.interrupted:
                journal.path.unlink(missing_ok=True)  # while nobody else may have it
        except OSError as error:
            text = f"{error.filename or folder}: {error.strerror or error}; the search is over and its journal is kept"
            stopped = SearchStopped(f"{text}, run it again to have its files written")
            stopped.result = result
            raise stopped from error
    return result


def finished(
    folder: str | os.PathLike[str],
    problem: Problem,
    searcher: Any,
    budget: Budget | int | str,
    seed: int,
    start: Sequence[Given] | Array | Start | None = None,
) -> dict[str, Any]:
    """The table of the result in a folder if it is of exactly this search, else empty.

    Also empty if the design file is missing. Removes a journal beside the result: the process was killed between the
    two."""
    table = _result(Path(folder))
    if not table or table.get("identity") != Search(problem, searcher, budget, seed, start).identity:
        return {}
    if table.get("genome") and not Path(folder, DESIGN_FILE).is_file():
        with suppress(DesignError):  # no file can hold it
            there = problem.laid_out(
                {**problem.loops.sizes, **{dim: size for dim, (_, size) in table["padded"].items()}}
            )
            design_file.dump(Design.of(there, there.space.decode(np.array([table["genome"]], np.int64))))
            return {}
    with suppress(OSError):
        (Path(folder) / JOURNAL_FILE).unlink(missing_ok=True)
    return table


def _result(folder: Path, partial: bool = False) -> dict[str, Any]:
    """The table of the result in a folder, if complete, or also if `partial`; empty without a result."""
    try:
        table = read_result(folder)
    except SearchError:
        return {}
    return table if table.get("interrupted") in (False, partial) else {}


def unfinished(folder: str | os.PathLike[str]) -> bool:
    """Whether a search in this folder was stopped."""
    try:
        return (Path(folder) / JOURNAL_FILE).stat().st_size > 0
    except OSError:
        return False
