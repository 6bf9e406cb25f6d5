"""Of which search the files in a folder are, and whether it has ended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SearchError
from ..files import shown
from ..pieces.contracts import Array
from ..pieces.defaults import JOURNAL_FILE
from ..problem.problem import Problem
from .budget import Budget
from .driver import Search
from .identity import Identity, in_the_way
from .journal import JournalMismatch
from .result import RESULT_FILE, read_result

if TYPE_CHECKING:
    from .start import Given, Start


def check_place(folder: Path, identity: Identity, overwrite: bool) -> None:
    """`JournalMismatch` if the complete result in a folder is of another search, see `in_the_way`, unless that one is to be
    overwritten, or a search has begun to take its place."""
    if not (overwrite or unfinished(folder)):
        check_result(folder, identity)


def check_result(folder: Path, identity: Identity, apart: Sequence[str] = ()) -> None:
    """The same whether a search has begun or not; keys that are `apart` may differ."""
    table = _complete(folder)
    if table:
        about = f"{table.get('workload')} on {table.get('hardware')}"
        check_file(folder / RESULT_FILE, about, table.get("identity", {}), identity, apart)


def check_file(file: Path, about: str, there: Identity, wanted: Identity, apart: Sequence[str] = ()) -> None:
    """The same of any file with the complete results of a search, of which it says what it is `about`."""
    if differ := in_the_way(there, wanted, apart):
        text = f"{shown(file)} is of another search, {about}; {differ}"
        raise JournalMismatch(f"{text}. Choose another folder, or overwrite it (--overwrite)")


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
    table = _complete(Path(folder))
    if not table or table.get("identity") != Search(problem, searcher, budget, seed, start).identity:
        return {}
    with suppress(OSError):
        (Path(folder) / JOURNAL_FILE).unlink(missing_ok=True)
    return table


def _complete(folder: Path) -> dict[str, Any]:
    """The table of the complete result in a folder, empty if there is none."""
    try:
        table = read_result(folder)
    except SearchError:
        return {}
    return table if isinstance(table, dict) and not table.get("interrupted", True) else {}


def unfinished(folder: str | os.PathLike[str]) -> bool:
    """Whether a search in this folder was stopped."""
    try:
        return (Path(folder) / JOURNAL_FILE).stat().st_size > 0
    except OSError:
        return False
