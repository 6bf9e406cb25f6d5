"""Reports of a design: the loop nest as in the paper's Fig. 13, energies and cycles, and files for other programs; and
the verbs that explain, compare and draw designs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemap import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sparsemap import Problem, Result


@hookimpl
def register_exporters():
    return {
        "breakdown": "breakdown:BreakdownText",
        "csv": "exports:EnergyTable",
        "json": "exports:JsonReport",
        "loop-nest": "loop_nest:LoopNestText",
        "orders": "exports:OrdersText",
        "summary": "summary:SummaryText",
    }


@hookimpl
def search_written(result: Result, problem: Problem, folder: Path) -> Iterable[Path]:
    """The figure of a front."""
    from .front import write_front

    return write_front(result, problem, folder) if result.front else ()
