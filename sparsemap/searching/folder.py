"""A search whose files are in a folder: it can be killed at any moment, and the same call goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from ..errors import SearchError
from ..files import is_temporary
from .driver import OnPluginError, SearchFailed, SearchStopped, Snapshot, search
from .journal import JOURNAL_FILE
from .result import Result

if TYPE_CHECKING:
    from ..pieces.contracts import Searcher
    from ..problem.problem import Problem


def search_into(
    folder: str | os.PathLike[str],
    problem: Problem,
    budget: int = 20_000,
    seed: int = 0,
    searcher: Searcher | str | Mapping[str, Any] | None = None,
    progress: Callable[[Snapshot], None] | None = None,
    overwrite: bool = False,
    on_plugin_error: OnPluginError = "stop",
) -> Result:
    """Like `search`, with the result written to `folder`, and the journal there until it is.

    A search that was stopped, by whatever, goes on where it was and ends with the same result. If it fails, the best
    design so far is written as that of an interrupted search.
    """
    folder = Path(folder)
    journal = folder / JOURNAL_FILE
    try:
        result = search(problem, budget, seed, searcher, progress, journal, overwrite, on_plugin_error)
    except (SearchFailed, SearchStopped) as error:
        if error.result is not None:
            with suppress(OSError):  # what made the search fail is what has to be told
                attrs.evolve(error.result, interrupted=True).write(folder)
        raise
    try:
        result.write(folder)
        for path in folder.glob(".*.tmp"):
            if is_temporary(path):  # of a process that died
                path.unlink(missing_ok=True)
        if not result.interrupted:
            journal.unlink(missing_ok=True)
    except OSError as error:
        text = f"{error.filename or folder}: {error.strerror or error}; the search is over and its journal is kept"
        stopped = SearchStopped(f"{text}, run it again to have its files written")
        stopped.result = result
        raise stopped from error
    return result


def unfinished(folder: str | os.PathLike[str]) -> bool:
    """Whether a search in this folder was stopped."""
    try:
        return (Path(folder) / JOURNAL_FILE).stat().st_size > 0
    except OSError:
        return False


def discard(folder: str | os.PathLike[str]) -> None:
    """Removes the journal of a search whose result is there."""
    try:
        (Path(folder) / JOURNAL_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise SearchError(f"{error.filename}: {error.strerror or error}") from None
