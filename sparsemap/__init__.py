"""SparseMap finds the mapping and the sparse strategy of a sparse tensor accelerator together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import DesignError, EvaluationError, PluginError, SearchError, SparseMapError, SpecError
from .pieces.contracts import (
    Charge,
    Context,
    CostModel,
    Crossover,
    DensityModel,
    Exporter,
    Fiber,
    Filter,
    Format,
    Genes,
    Init,
    Loops,
    Mechanism,
    MemoryLevel,
    Mutation,
    Objective,
    Occupancy,
    Operation,
    Proposals,
    Scored,
    Searcher,
    Segment,
    Selection,
    Technology,
    Tensor,
    Units,
    Workload,
)
from .pieces.hookspecs import hookimpl
from .problem.evaluation import Evaluation
from .problem.space import Space
from .searching.driver import Budget, Search, search
from .searching.result import Best, Result

if TYPE_CHECKING:
    from .problem.load import evaluate, load_problem
    from .problem.problem import Problem
    from .study.networks import search_network

__version__ = "0.1.0"

__all__ = [
    "Best",
    "Budget",
    "Charge",
    "Context",
    "CostModel",
    "Crossover",
    "DensityModel",
    "DesignError",
    "Evaluation",
    "EvaluationError",
    "Exporter",
    "Fiber",
    "Filter",
    "Format",
    "Genes",
    "Init",
    "Loops",
    "Mechanism",
    "MemoryLevel",
    "Mutation",
    "Objective",
    "Occupancy",
    "Operation",
    "PluginError",
    "Problem",
    "Proposals",
    "Result",
    "Scored",
    "Search",
    "SearchError",
    "Searcher",
    "Segment",
    "Selection",
    "Space",
    "SparseMapError",
    "SpecError",
    "Technology",
    "Tensor",
    "Units",
    "Workload",
    "evaluate",
    "hookimpl",
    "load_problem",
    "search",
    "search_network",
]

_LATER = {
    "Problem": "problem.problem",
    "evaluate": "problem.load",
    "load_problem": "problem.load",
    "search_network": "study.networks",
}
"""Names whose modules read TOML and build pieces; they are imported when first asked for."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
