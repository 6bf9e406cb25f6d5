"""What the reports share: the best design of a result, and its evaluation in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparsemap.errors import SearchError

if TYPE_CHECKING:
    from sparsemap.searching.result import Best, Result


def best_of(result: Result) -> Best:
    """The best design; `SearchError` where a search found none."""
    if result.best is None:
        raise SearchError(f"{result.workload} on {result.hardware}: there is no valid design to write")
    return result.best


def detail_of(best: Best) -> dict[str, Any]:
    """The cost model's detail of a design by level and tensor; empty if it gives none."""
    return best.problem.evaluator.evaluate_designs(best.design.batch, detail=True).detail or {}
