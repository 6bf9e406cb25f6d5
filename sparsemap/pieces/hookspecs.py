"""Every extension point, on one page.

A plugin is a module with functions of these names, each marked `@hookimpl`. A `register_*` hook runs once, at loading,
and returns a list of classes derived from the contract of its kind in `sparsemap.pieces.contracts`. None runs in an evaluation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

    from ..problem.problem import Problem
    from ..searching.driver import Snapshot
    from ..searching.result import Result
    from .contracts import (
        CostModel,
        Crossover,
        DensityModel,
        Exporter,
        Format,
        Init,
        Mechanism,
        MemoryLevel,
        Mutation,
        Objective,
        Searcher,
        Segment,
        Selection,
        Technology,
        Workload,
    )

PROJECT = "sparsemap"
"""The name of the hooks, and of the entry-point group in which an installed plugin announces itself."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_formats() -> list[type[Format]]:  # type: ignore[empty-body]
    """Compression formats of a tensor rank. Since 0.1."""


@hookspec
def register_mechanisms() -> list[type[Mechanism]]:  # type: ignore[empty-body]
    """Skip and gate mechanisms. Since 0.1."""


@hookspec
def register_memory_levels() -> list[type[MemoryLevel]]:  # type: ignore[empty-body]
    """Types of memory, with the keys that a level of a hardware spec may have. Since 0.1."""


@hookspec
def register_technologies() -> list[type[Technology]]:  # type: ignore[empty-body]
    """Sources of energies per action. Since 0.1."""


@hookspec
def register_density_models() -> list[type[DensityModel]]:  # type: ignore[empty-body]
    """How the nonzeros of a tensor are distributed. Since 0.1."""


@hookspec
def register_workload_kinds() -> list[type[Workload]]:  # type: ignore[empty-body]
    """Ways to describe a workload, such as an einsum. Since 0.1."""


@hookspec
def register_segments() -> list[type[Segment]]:  # type: ignore[empty-body]
    """Runs of genes with their decoders. Since 0.1."""


@hookspec
def register_cost_models() -> list[type[CostModel]]:  # type: ignore[empty-body]
    """Models of energy, cycles and the reasons why a design is invalid. Since 0.1."""


@hookspec
def register_objectives() -> list[type[Objective]]:  # type: ignore[empty-body]
    """Scores of an evaluation, lower is better. Since 0.1."""


@hookspec
def register_operators() -> list[type[Init | Crossover | Mutation | Selection]]:  # type: ignore[empty-body]
    """Parts of evolutionary searchers: four contracts, one hook. Since 0.1."""


@hookspec
def register_searchers() -> list[type[Searcher]]:  # type: ignore[empty-body]
    """Search methods. Since 0.1."""


@hookspec
def register_exporters() -> list[type[Exporter]]:  # type: ignore[empty-body]
    """Writers of a result in other programs' formats. Since 0.1."""


@hookspec
def register_specs() -> list[Path]:  # type: ignore[empty-body]
    """TOML folders of a pip-installed plugin; a plugin folder is scanned anyway. Since 0.1."""


@hookspec
def register_commands(cli: click.Group) -> None:
    """Adds verbs to the `sparsemap` command. Since 0.1."""


@hookspec
def search_progressed(snapshot: Snapshot) -> None:
    """Hears of every batch that a search has evaluated. Since 0.1."""


@hookspec
def study_finished(result: Result, problem: Problem) -> None:
    """Hears of every finished search, with its result. Since 0.1."""
