"""Progress of a command on stderr: a live bar on a terminal, a line every ten seconds in a log file."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..files import percent

if TYPE_CHECKING:
    from ..searching.driver import Snapshot


def steps_bar(length: int, label: str = "") -> Any:
    """A progress bar of `length` steps on stderr, hidden without a terminal."""
    return click.progressbar(length=length, label=label, file=sys.stderr if sys.stderr.isatty() else io.StringIO())


Update = Callable[[int, int, str], None]
"""Called with the steps done, the total, and a text."""


@contextmanager
def bar(quiet: bool, total: int | None = None, more: Callable[[], str] | None = None) -> Iterator[Update | None]:
    """Progress on stderr with `more()`: a bar refreshed every second on a terminal, lines in a log file; else None."""
    if quiet or not shows():
        yield None
        return
    if not sys.stderr.isatty():
        with lines(total, more) as update:
            yield update
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


LOG_SECONDS = "SPARSEMAP_LOG_SECONDS"
"""Environment variable with the time between lines of a log file, 10 s by default; 0 for no lines."""


def log_seconds() -> float:
    try:
        return max(0.0, float(os.environ.get(LOG_SECONDS, "10")))
    except ValueError:
        return 10.0


def shows() -> bool:
    """Whether stderr is a terminal or a file of its own, not a buffer of another program in this process."""
    try:
        return sys.stderr.isatty() or sys.stderr.fileno() >= 0
    except (AttributeError, OSError, ValueError):
        return False


@contextmanager
def lines(total: int | None, more: Callable[[], str] | None = None) -> Iterator[Update]:
    """The state of the work as a line on stderr at intervals (`LOG_SECONDS`)."""
    state, ended, begun = ["", ""], threading.Event(), time.monotonic()
    stream, seconds = sys.stderr, log_seconds()

    def update(done: int, count: int, text: str) -> None:
        state[:] = f"{done:,} of {count:,}", text

    def write() -> None:
        while not ended.wait(seconds or None):
            parts = [state[0] or (f"0 of {total:,}" if total else "0"), state[1], more() if more is not None else ""]
            told = "   ".join(filter(None, parts))
            print(f"{time.monotonic() - begun:,.0f} s   {told}", file=stream, flush=True)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield update
    finally:
        ended.set()
        writer.join()


@contextmanager
def search_bar(budget: int, unit: str) -> Iterator[Callable[[Snapshot], None]]:
    """Progress of a search, where it shows."""
    with bar(False, budget) as update:
        assert update is not None

        def report(snapshot: Snapshot) -> None:
            best = f"best {snapshot.best_score:.3e} {unit}".rstrip()
            best = best if snapshot.best_score < float("inf") else "nothing valid yet"
            best += f"   within {snapshot.gap:.3f}x" if snapshot.gap else ""
            text = f"designs   {best}   {percent(snapshot.valid_fraction)} valid"
            update(snapshot.evaluations, snapshot.budget, text)

        yield report
