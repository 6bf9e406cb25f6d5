"""Reports of a design: loop nest as in the paper's Fig. 13, energies, cycles and files for other programs; and the
verbs to explain, compare and draw designs."""

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
        "pareto-plot": "front:ParetoPlot",
        "summary": "summary:SummaryText",
    }


@hookimpl
def search_written(result: Result, problem: Problem, folder: Path) -> Iterable[Path]:
    """Write the figure of a front."""
    return problem.registry.get("exporter", "pareto-plot").write(result, problem, folder) if result.front else ()
