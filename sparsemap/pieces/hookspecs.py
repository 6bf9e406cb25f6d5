"""Every extension point, on one page.

A plugin is a module with functions of these names, each marked `@hookimpl`. A `register_*` hook runs once, at loading,
and returns a list of classes derived from the contract that stands above it (see `contracts`). None runs in an
evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pluggy

from . import contracts as of

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from ..problem.problem import Problem
    from ..searching.driver import Snapshot
    from ..searching.result import Result

PROJECT = "sparsemap"
"""The name of the hooks, and of the entry-point group in which an installed plugin announces itself."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

CONTRACTS: dict[str, tuple[type[of.Piece], ...]] = {}
"""By hook, the contracts whose classes it may return."""


def returns(*contracts: type[of.Piece]) -> Callable[[Any], Any]:
    """A hook that returns classes derived from one of the contracts."""

    def mark(hook: Any) -> Any:
        CONTRACTS[hook.__name__] = contracts
        return hookspec(hook)

    return mark


@returns(of.Format)
def register_formats():
    """Compression formats of a tensor rank."""


@returns(of.Mechanism)
def register_mechanisms():
    """Skip and gate mechanisms."""


@returns(of.MemoryLevel)
def register_memory_levels():
    """Types of memory, with the keys that a level of a hardware spec may have."""


@returns(of.Technology)
def register_technologies():
    """Sources of energies per action."""


@returns(of.DensityModel)
def register_density_models():
    """How the nonzeros of a tensor are distributed."""


@returns(of.Workload)
def register_workload_kinds():
    """Ways to describe a workload, such as an einsum."""


@returns(of.Operation)
def register_operations():
    """What stands between the layers of a network, such as pooling."""


@returns(of.Segment)
def register_segments():
    """Runs of genes with their decoders."""


@returns(of.CostModel)
def register_cost_models():
    """Models of energy, cycles and the reasons why a design is invalid."""


@returns(of.Charge)
def register_charges():
    """Effects that a cost model charges for or leaves out, as its `charges` say."""


@returns(of.Objective)
def register_objectives():
    """Scores of an evaluation, lower is better."""


@returns(of.Init, of.Crossover, of.Mutation, of.Selection)
def register_operators():
    """Parts of evolutionary searchers: four contracts, one hook."""


@returns(of.Searcher)
def register_searchers():
    """Search methods."""


@returns(of.Exporter)
def register_exporters():
    """Writers of a result in other programs' formats."""


@hookspec
def register_specs() -> list[Path]:  # type: ignore[empty-body]
    """TOML folders of a pip-installed plugin; a plugin folder is scanned anyway."""


@hookspec
def register_commands(cli: click.Group) -> None:
    """Adds verbs to the `sparsemap` command."""


@hookspec
def search_progressed(snapshot: Snapshot) -> None:
    """Called after every batch that a search has evaluated."""


@hookspec
def search_finished(result: Result, problem: Problem) -> None:
    """Called after every finished search, with its result."""
