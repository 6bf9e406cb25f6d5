"""A search whose files are in a folder: it can be killed at any moment, and the same call goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from ..errors import PluginError, SearchError
from ..files import is_temporary
from .budget import Budget
from .driver import Search, SearchStopped, Snapshot, completed
from .identity import identity_of
from .journal import JOURNAL_FILE, Journal
from .result import FRONT_FOLDER, Result, read_result
from .start import Given, Start

if TYPE_CHECKING:
    from ..pieces.contracts import Array, Searcher
    from ..problem.problem import Problem


def search_into(
    folder: str | os.PathLike[str],
    problem: Problem,
    budget: Budget | int = 20_000,
    seed: int = 0,
    searcher: Searcher | str | Mapping[str, Any] | None = None,
    progress: Callable[[Snapshot], None] | None = None,
    overwrite: bool = False,
    start: Sequence[Given] | Array | Start | None = None,
) -> Result:
    """Like `search`, with the result written to `folder`, and the journal there until it is.

    A search that was stopped, by whatever, goes on where it was and ends with the same result. If it fails, the best
    design so far is written as that of an interrupted search. What an earlier search left stays until the new result
    is written; two searches cannot write to one folder at a time.
    """
    folder = Path(folder)
    run = Search(problem, searcher, budget, seed, start)
    identity = identity_of(problem, run.searcher, budget, seed, run.start)
    with Journal(folder / JOURNAL_FILE, identity, overwrite) as journal:
        try:
            result = completed(run, progress, journal)
        except (PluginError, SearchStopped) as error:
            if error.result is not None:
                with suppress(OSError):  # what made the search fail is what has to be reported
                    attrs.evolve(error.result, interrupted=True).write(folder)
            raise
        result = attrs.evolve(result, identity=identity)
        try:
            result.write(folder)
            for path in (*folder.glob(".*.tmp"), *(folder / FRONT_FOLDER).glob(".*.tmp")):
                if is_temporary(path):  # of a process that died
                    path.unlink(missing_ok=True)
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
    budget: Budget | int,
    seed: int,
    start: Sequence[Given] | Array | Start | None = None,
) -> dict[str, Any]:
    """The table of the result in a folder if it is that of this very search, else an empty one.

    A journal beside it is removed: the process was killed between the two.
    """
    try:
        table = read_result(Path(folder))
    except SearchError:
        return {}
    if not isinstance(table, dict) or table.get("interrupted", True):
        return {}
    run = Search(problem, searcher, budget, seed, start)
    identity = identity_of(problem, run.searcher, budget, seed, run.start)
    if table.get("identity") != identity:
        return {}
    with suppress(OSError):
        (Path(folder) / JOURNAL_FILE).unlink(missing_ok=True)
    return table


def unfinished(folder: str | os.PathLike[str]) -> bool:
    """Whether a search in this folder was stopped."""
    try:
        return (Path(folder) / JOURNAL_FILE).stat().st_size > 0
    except OSError:
        return False
