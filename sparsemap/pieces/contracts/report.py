"""Exporters: texts and files about a result, and the marks for colours of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from ...errors import SearchError
from .base import Piece

if TYPE_CHECKING:
    from ...problem.problem import Problem
    from ...searching.result import Result

MARKED = re.compile("\x02([a-z]+)\x1f([^\x02\x1f\x03]*)\x03")


def styled(text: str, style: str) -> str:
    """Marks a part of a report to stand out on a terminal; styled parts cannot be nested.

    Styles: `strong`, `faint`, `heading`, `name`, `action`, `parallel`, `warning`; any other shows as plain text. Marks
    count in `len`, so align first and mark then."""
    return f"\x02{style}\x1f{text}\x03"


def plain(text: str) -> str:
    """The text without the marks of `styled`."""
    return MARKED.sub(r"\2", text)


def parts(text: str) -> Iterator[tuple[str, str]]:
    """Pieces of the text, each with its style; "" for unmarked text."""
    pieces = MARKED.split(text)
    yield pieces[0], ""
    for style, marked, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        yield marked, style
        yield after, ""


@attrs.frozen(kw_only=True)
class Exporter(Piece):
    """Text, data or files about the best design of a result. A report has a `file_name` and a `text`."""

    kind: ClassVar[str] = "exporter"
    file_name: ClassVar[str] = ""
    """File for `text`, made by `write`; "" for exporters without text, with a `write` of their own."""

    def text(self, result: Result, problem: Problem, width: int = 80) -> str:
        """Text of the file, and of `sparsemap show NAME` in `width` columns; parts may be `styled`."""
        raise SearchError(f"exporter '{self.name}' writes files and has no text: Result.export({self.name!r}, FOLDER)")

    def data(self, result: Result, problem: Problem) -> dict[str, Any]:
        """Plain data for `sparsemap show NAME --json`; by default the numbers of the result."""
        return result.to_dict()

    def write(self, result: Result, problem: Problem, path: Path) -> Iterator[Path]:
        """Writes files below `path` and yields their paths; by default the text, without marks."""
        from ...writing import write_text

        file = Path(path) / self.file_name
        write_text(file, plain(self.text(result, problem)))
        yield file
