"""What the text reports share: an exporter that writes one text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from sparsemap import Exporter
from sparsemap.errors import SearchError
from sparsemap.files import write_text

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
        write_text(file, self.text(result, problem))
        yield file


def best_of(result: Result) -> Best:
    """The best design; `SearchError` where a search found none."""
    if result.best is None:
        raise SearchError(f"{result.workload} on {result.hardware}: there is no valid design to write")
    return result.best


def detail_of(best: Best) -> dict[str, Any]:
    """What the cost model says of a design by level and tensor; empty if nothing."""
    return best.problem.evaluator.evaluate_designs(best.design.batch, detail=True).detail or {}
