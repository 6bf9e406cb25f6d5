"""Exporters: what is written about a result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import attrs

from .base import Piece

if TYPE_CHECKING:
    from ...problem.problem import Problem
    from ...searching.result import Result


@attrs.frozen(kw_only=True)
class Exporter(Piece):
    kind: ClassVar[str] = "exporter"

    def write(self, result: Result, problem: Problem, path: Path) -> Iterator[Path]:
        """Writes the best design of a result below `path` and yields the files written."""
        raise NotImplementedError
