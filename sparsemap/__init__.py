"""SparseMap finds the mapping and the sparse strategy of a sparse tensor accelerator together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import DesignError, EvaluationError, PluginError, SearchError, SparseMapError, SpecError
from .evaluation import Evaluation
from .hookspecs import hookimpl
from .kinds import (
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
from .result import Best, Result
from .search import Budget, Search, search

if TYPE_CHECKING:
    from .api import evaluate, gym_env, load_problem
    from .problem import Problem

__version__ = "0.1.0"

__all__ = [
    "Best",
    "Budget",
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
    "SparseMapError",
    "SpecError",
    "Technology",
    "Tensor",
    "Units",
    "Workload",
    "evaluate",
    "gym_env",
    "hookimpl",
    "load_problem",
    "search",
]

_LATER = {"Problem": "problem", "evaluate": "api", "gym_env": "api", "load_problem": "api"}
"""Names whose modules read TOML and build pieces; they are imported when first asked for."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
