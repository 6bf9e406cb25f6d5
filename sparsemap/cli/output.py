"""Output of the command line: reports in colour on a terminal, plain text elsewhere, and live progress on stderr."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from ..errors import readable
from ..files import aligned
from ..pieces.defaults import REPORT

if TYPE_CHECKING:
    from ..problem.problem import Problem
    from ..searching.result import Result

PIPED_WIDTH = 100
NARROWEST = 20
"""Least width of a wrapped column in tables."""
WIDTHS = (50, 100)
"""Least and largest width; wider reports are hard to read."""
PLAIN = str.maketrans({"─": "-", "│": "|", "·": ".", "→": ">"})

STYLES = {
    "strong": "bold", "faint": "dim", "heading": "bold cyan", "name": "cyan", "parallel": "bold green",
    "action": "bold magenta", "warning": "yellow",
}  # fmt: skip


def width() -> int:
    """Columns available to a report."""
    columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
    return min(max(columns, WIDTHS[0]), WIDTHS[1])


def terminal() -> int | None:
    """Columns of the terminal; None in a pipe or a file, for lines of any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wrapped(text: str, indent: str = "") -> str:
    """A line of words; on a terminal wrapped into lines with an indent."""
    room = terminal()
    return text if room is None else textwrap.fill(text, room, subsequent_indent=indent, break_on_hyphens=False)


def show(text: str) -> None:
    """Prints a report, in colour on a terminal."""
    from ..pieces.contracts import parts, plain

    text = text.rstrip("\n")
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(PLAIN).encode(encoding, "replace").decode(encoding)
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        click.echo(readable(plain(text), len(text)))
        return
    from rich.console import Console
    from rich.text import Text

    coloured = Text.assemble(*((readable(part, len(part)), STYLES.get(style, "")) for part, style in parts(text)))
    Console(highlight=False).print(coloured, soft_wrap=True)


def say(text: str, colour: str | None = None) -> None:
    """Prints a note to stderr, apart from results."""
    click.secho(readable(text), err=True, fg=colour)


def show_result(result: Result, problem: Problem) -> None:
    """Prints the default report of a result, or a line without a plugin for the report."""
    if problem.registry.has("exporter", REPORT):
        show(problem.registry.get("exporter", REPORT).text(result, problem, width()))
    else:
        click.echo(one_line(result))


def one_line(result: Result) -> str:
    return f"{result.workload} on {result.hardware}: {result.found.headline}"


def table(rows: list[list[str]], align: str = "<", gap: int = 2, margin: int = 0, less: Sequence[int] = ()) -> str:
    """Rows as aligned columns. On a terminal the widest cells are wrapped; if still too wide, columns with the indices
    `less` are left out, the first in the list first. Elsewhere a row is a line."""
    kept, room = list(range(len(rows[0]) if rows else 0)), terminal()
    least = [min(max(map(len, column)), NARROWEST) for column in zip(*rows, strict=True)]
    for index in less:
        if room is not None and margin + sum(least[i] for i in kept) + gap * (len(kept) - 1) > room:
            kept.remove(index)
    marks = align.ljust(len(least), align[-1])
    cells = [[row[i] for i in kept] for row in rows]
    if room is not None:
        from .fitting import fitted

        cells = fitted(cells, gap, margin)
    return "\n".join(" " * margin + line for line in aligned(cells, "".join(marks[i] for i in kept) or "<", gap))


def search_progress(budget: int, quiet: bool, unit: str = "") -> AbstractContextManager[Any]:
    """Live display of designs evaluated, best score and share of valid designs: a function to call with a `Snapshot`;
    None if stderr is neither a terminal nor a file."""
    from .progress import search_bar, shows

    if quiet or not shows():
        return nullcontext()

    return search_bar(budget, unit)
