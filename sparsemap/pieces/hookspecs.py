"""Every extension point, on one page.

A plugin is a module with functions of these names, each marked `@hookimpl`. A `register_*` hook runs once, at loading.
It returns a list of classes derived from the contract above the hook (see `contracts`), or a table from `type_name` to
the place of a class, `{"banded": "patterns:Banded"}`. A class from a table is imported on first use. No hook runs in an
evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from ..problem.problem import Problem
    from ..searching.best import Best
    from ..searching.driver import Snapshot
    from ..searching.executed import Execution
    from ..searching.result import Result
    from .contracts import Piece

PROJECT = "sparsemap"
"""Name of the hooks, and of the entry-point group of installed plugins."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

CONTRACTS: dict[str, tuple[str, ...]] = {}
"""Names of the contracts of each hook's classes."""


def contracts_of(hook: str) -> tuple[type[Piece], ...]:
    """Contracts of the classes a hook may return."""
    from . import contracts  # with NumPy, which the help of the command does without

    return tuple(getattr(contracts, name) for name in CONTRACTS[hook])


def returns(*contracts: str) -> Callable[[Any], Any]:
    """Marks a hook to return classes derived from one of the contracts."""

    def mark(hook: Any) -> Any:
        CONTRACTS[hook.__name__] = contracts
        return hookspec(hook)

    return mark


@returns("Format")
def register_formats():
    """Compression formats of a tensor rank."""


@returns("Mechanism")
def register_mechanisms():
    """Skip and gate mechanisms."""


@returns("MemoryLevel")
def register_memory_levels():
    """Types of memory, with the keys of a level in a hardware spec."""


@returns("Technology")
def register_technologies():
    """Sources of energies per action."""


@returns("DensityModel")
def register_density_models():
    """Distributions of the nonzeros of a tensor."""


@returns("Workload")
def register_workload_kinds():
    """Ways to describe a workload, such as an einsum."""


@returns("Operation")
def register_operations():
    """Operations between the layers of a network, such as pooling."""


@returns("Segment")
def register_segments():
    """Runs of genes with their decoders."""


@returns("CostModel")
def register_cost_models():
    """Models of energy, cycles and the reasons for invalid designs."""


@returns("Charge")
def register_charges():
    """Hardware costs for the `charges` of a cost model."""


@returns("Objective")
def register_objectives():
    """Scores of an evaluation, lower is better."""


@returns("Init", "Crossover", "Mutation", "Selection")
def register_operators():
    """Parts of evolutionary searchers: four contracts, one hook; a table by name has one table per kind."""


@returns("Searcher")
def register_searchers():
    """Search methods."""


@returns("Exporter")
def register_exporters():
    """Writers of a result in other programs' formats."""


@returns("Piece")
def register_kinds():
    """Kinds of specs of the plugin's own, each a class with equal `kind`, `type_name` and `default_type`."""


@hookspec
def register_specs() -> list[Path]:  # type: ignore[empty-body]
    """TOML folders of a pip-installed plugin; a plugin folder is scanned anyway."""


@hookspec
def register_commands(cli: click.Group) -> None:
    """Adds verbs to the `sparsemap` command."""


@hookspec
def search_progressed(snapshot: Snapshot) -> None:
    """Called by a search after every evaluated batch."""


@hookspec
def search_finished(result: Result, problem: Problem) -> None:
    """Called after every finished search, with its result."""


@hookspec
def search_written(result: Result, problem: Problem, folder: Path) -> Iterable[Path]:  # type: ignore[empty-body]
    """Called when `search --out` has written a result into a folder; returns the files written by the plugin, such as a
    figure."""


@hookspec(firstresult=True)
def execute_design(best: Best, seed: int) -> Execution | str:  # type: ignore[empty-body]
    """Executes one of the best designs of a search on sampled tensors, or returns the reason against an execution."""
