"""Live progress of a command on a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..files import percent

if TYPE_CHECKING:
    from ..searching.driver import Snapshot


def steps_bar(length: int, label: str = "") -> Any:
    """A progress bar of `total` steps on stderr, or nothing without a terminal."""
    return click.progressbar(length=length, label=label, file=sys.stderr if sys.stderr.isatty() else io.StringIO())


Update = Callable[[int, int, str], None]
"""Called with finished steps, the total, and a text."""


@contextmanager
def bar(quiet: bool, total: int | None = None, more: Callable[[], str] | None = None) -> Iterator[Update | None]:
    """A progress bar on stderr with `more()` every second; None without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class More(ProgressColumn):
        max_refresh = 1.0

        def render(self, task: Any) -> Text:
            return Text(more() if more is not None else "")

    columns = (BarColumn(24), MofNCompleteColumn(), TextColumn("{task.description}"), More(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, total, text: progress.update(task, completed=done, total=total, description=text)


@contextmanager
def search_bar(budget: int, unit: str) -> Iterator[Callable[[Snapshot], None]]:
    """Of a search, for a terminal."""
    with bar(False, budget) as update:
        assert update is not None

        def report(snapshot: Snapshot) -> None:
            best = f"best {snapshot.best_score:.3e} {unit}".rstrip()
            best = best if snapshot.best_score < float("inf") else "nothing valid yet"
            best += f"   within {snapshot.gap:.3f}x" if snapshot.gap else ""
            text = f"designs   {best}   {percent(snapshot.valid_fraction)} valid"
            update(snapshot.evaluations, snapshot.budget, text)

        yield report
