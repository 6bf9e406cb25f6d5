"""What the text reports share: an exporter that writes one text, and tables of aligned columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import attrs

from sparsemap import Exporter
from sparsemap.errors import SearchError
from sparsemap.spec.toml_io import write_text_atomic

if TYPE_CHECKING:
    from sparsemap.problem.problem import Problem
    from sparsemap.searching.result import Best, Result


@attrs.frozen(kw_only=True)
class TextExporter(Exporter):
    """Writes one text file; a report says what is in it."""

    file_name: ClassVar[str] = ""

    def text(self, result: Result, problem: Problem) -> str:
        raise NotImplementedError

    def write(self, result: Result, problem: Problem, path: Path) -> Iterator[Path]:
        file = Path(path) / self.file_name
        write_text_atomic(file, self.text(result, problem))
        yield file


def best_of(result: Result) -> Best:
    """The best design; `SearchError` where a search found none."""
    if result.best is None:
        raise SearchError(f"{result.workload} on {result.hardware}: there is no valid design to write")
    return result.best


def aligned(rows: Sequence[Sequence[str]], left: int = 1, gap: int = 3) -> list[str]:
    """Rows of equal length as lines; the first `left` columns align to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * gap).join(cells).rstrip())
    return lines


def percent(share: float) -> str:
    """0.1234 -> "12 %"; what is not nothing does not look like nothing, and what is not all does not look like all."""
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return "99 %"
    return f"{100 * share:.0f} %"
