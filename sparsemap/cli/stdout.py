"""Standard output of verbs: text, or with `--json` a JSON value.

A verb hands data and text to `answer`. With `--json` standard output gets the data alone, once the verb ends; other text
of the verb goes to standard error. A verb without data answers with the lines of its text."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import readable
from .answers import answers

if TYPE_CHECKING:
    from ..spec.notes import Imported


class Answers:
    """The answer of one command, which keeps standard output to itself until `finish`."""

    def __init__(self) -> None:
        self.data: Any = None
        self.text, self.out = StringIO(), sys.stdout
        sys.stdout = self.text

    def give(self, data: Any) -> None:
        """The first answer counts; verbs that the command runs besides add none."""
        self.data = data if self.data is None else self.data

    def finish(self) -> None:
        if sys.stdout is not self.text:
            return
        sys.stdout, text = self.out, self.text.getvalue()
        if self.data is None and text:
            self.data = {"output": text.splitlines()}
        else:
            click.echo(text, nl=False, err=True)
        if self.data is not None:
            click.echo(json.dumps(_plain(self.data), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """Data as JSON has them: null for infinities, text for paths."""
    if isinstance(value, Mapping):
        return {str(key): _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def answer(data: Any, text: str | Iterable[str] | Callable[[], object] = "") -> None:
    """Gives `--json` the data, or else shows the text, lines, or whatever a function prints."""
    if (found := answers()) is not None:
        found.give(data)
    elif callable(text):
        text()
    else:
        from .output import show

        show(text if isinstance(text, str) else "\n".join(text))


def wrote(paths: Iterable[Path | str], text: str = "", **about: Any) -> None:
    """Answers with the files of a verb: a line of all files after a `text`, or a line each."""
    files = [str(path) for path in paths]
    lines = [f"{text} {', '.join(files)}"] if text else files
    answer({**about, "files": files}, lambda: click.echo("\n".join(map(readable, lines))))


def imported(paths: Iterable[Path], found: Imported) -> None:
    """Answers with the files of an import, after its notes on values assumed or without a counterpart."""
    from ..spec.notes import line

    notes = {verdict: [line(x) for x in found.notes if x.verdict == verdict] for verdict in ("assumed", "missing")}
    for verdict, texts in notes.items():
        for text in texts:
            click.echo(readable(f"{verdict}: {text}"))
    wrote(paths, "wrote", **notes)
