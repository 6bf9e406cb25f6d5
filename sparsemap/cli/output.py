"""What the command line prints: reports in colour on a terminal, plain text elsewhere, and live progress on stderr."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import SearchError, readable
from ..files import aligned, told

if TYPE_CHECKING:
    from ..problem.problem import Problem
    from ..searching.driver import Snapshot
    from ..searching.result import Result
    from ..study.cells import Outcome

PIPED_WIDTH = 100
WIDTHS = (50, 100)
"""The least and the most; in wider reports the eye loses the line."""
PLAIN = str.maketrans({"─": "-", "│": "|", "·": ".", "→": ">"})

STYLES = (
    (r"─+", "dim"),
    (r"(?m)^(?P<h>\S.*?) ─", {"h": "bold cyan"}),
    (r"(?m)^\S.*? ── (?P<h>[^─]+?) ─", {"h": "default"}),
    (r"(?P<h>(?:Skip|Gate|[A-Z][a-z]+) \S+ <-?>? \S+?)(?=,| ─| |$)", {"h": "bold magenta"}),
    (r"no skip or gate", "dim"),
    (r"(?m)^ +(?P<h>for) ", {"h": "bold"}),
    (r"(?m)^ +(?P<h>par-for) ", {"h": "bold green"}),
    (r"(?m)^ +(?:par-)?for (?P<h>\S+) in ", {"h": "cyan"}),
    (r"\b\d[\d,]* of \d[\d,]* [A-Za-z]\w*$", "dim"),
    (r"(?m)^(?P<h>EDP|score|energy|cycles|search|sizes|density|padded)  ", {"h": "bold"}),
    (r"(?m)^(?P<h>formats, outer to inner|rejected designs by reason.*|front of .*|total  .*)$", {"h": "bold"}),
    (r"bound by .*$", "yellow"),
    (r"\A.+", "bold"),
)
"""Colours of reports by pattern; the texts themselves are plain, so that any exporter can write them."""


def width() -> int:
    """Columns that a report may have."""
    columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
    return min(max(columns, WIDTHS[0]), WIDTHS[1])


def show(text: str) -> None:
    """Prints a report, in colour where a terminal reads it."""
    text = readable(text.rstrip("\n"), len(text))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(PLAIN).encode(encoding, "replace").decode(encoding)
    if not (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        click.echo(text)
        return
    from rich.console import Console
    from rich.text import Text

    coloured = Text(text)
    for pattern, style in STYLES:
        for match in re.finditer(pattern, text, re.M if not pattern.startswith(r"\A") else 0):
            for group, name in style.items() if isinstance(style, Mapping) else ((0, style),):
                coloured.stylize(name, *match.span(group))
    Console(highlight=False).print(coloured, soft_wrap=True)


def say(text: str, colour: str | None = None) -> None:
    """Prints a note to stderr, where it does not mix with results."""
    click.secho(readable(text), err=True, fg=colour)


def report(result: Result, problem: Problem, exporter: str, **fields: Any) -> str | None:
    """The text that an exporter writes; None if no plugin registers it."""
    registry = problem.registry
    if exporter not in registry.names("exporter"):
        return None
    cls = registry.types("exporter").get(exporter)
    known = {key: value for key, value in fields.items() if hasattr(cls, key)}
    piece: Any = registry.build("exporter", {"type": exporter, **known})
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join(path.read_text("utf-8") for path in piece.write(result, problem, Path(folder)))


def front_plots(result: Result, problem: Problem, folder: str) -> list[Path]:
    """The files of the front as a figure, if there is a front; says what is missing to draw it."""
    registry = problem.registry
    if not result.front or "pareto-plot" not in registry.names("exporter"):
        return []
    piece: Any = registry.get("exporter", "pareto-plot")
    try:
        return list(piece.write(result, problem, Path(folder)))
    except SearchError as error:
        say(str(error), "yellow")
    except OSError as error:
        say(f"{told(error)}; there is no figure of the front", "yellow")
    return []


def table(rows: list[list[str]]) -> str:
    return "\n".join(aligned(rows, "<", gap=2))


# ------------------------------------------------------------------------------------------------------------- progress

Update = Callable[[int, int, str], None]
"""Done, of how many, and a text."""


@contextmanager
def _bar(quiet: bool, total: int | None = None, more: Callable[[], str] | None = None) -> Iterator[Update | None]:
    """A progress bar on stderr, which asks for `more` to show every second; None where nobody is there to see it."""
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
def search_progress(budget: int, quiet: bool) -> Iterator[Callable[[Snapshot], None] | None]:
    """Designs evaluated, best score and share of valid ones, live."""
    with _bar(quiet, budget) as update:
        if update is None:
            yield None
            return

        def hear(snapshot: Snapshot) -> None:
            best = f"best {snapshot.best_score:.3e}" if snapshot.best_score < float("inf") else "nothing valid yet"
            text = f"designs   {best}   {100 * snapshot.valid_fraction:.0f} % valid"
            update(snapshot.evaluations, snapshot.budget, text)

        yield hear


@contextmanager
def study_progress(
    quiet: bool, running: Callable[[], tuple[int, int]] = lambda: (0, 0)
) -> Iterator[Callable[[int, int, Outcome], None]]:
    """Cells that have ended, live; failed ones are told at once. `running`: cells that are on, and designs in them."""

    def more() -> str:
        cells, designs = running()
        return f"{cells} running: {designs:,} designs" if cells else ""

    with _bar(quiet, more=more) as update:

        def hear(done: int, total: int, outcome: Outcome) -> None:
            if outcome.state == "failed":
                say(f"{outcome.cell.name}: {outcome.error}", "red")
            if update is not None:
                update(done, total, f"cells   {outcome.cell.name}")

        yield hear
