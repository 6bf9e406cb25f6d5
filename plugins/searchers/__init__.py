"""Searchers, the operators that they are composed of, and what they share (`variation`, `genes`).

`memetic` is the default search, `pareto` the one for several objectives, `evolution` the paper's evolution strategy,
`islands` runs populations side by side, `baselines` are searchers to compare with; those that need another
package import it when their search starts. `surrogate` descends a model of scores that it trains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemap import hookimpl

from .baselines import SEARCHERS as BASELINES
from .evolution import Evolution
from .islands import Islands
from .memetic import Memetic
from .operators import OPERATORS
from .pareto import Nsga2Search, ParetoObjective
from .surrogate.searcher import MindMappings

if TYPE_CHECKING:
    import click


@hookimpl
def register_operators() -> list[type]:
    return OPERATORS


@hookimpl
def register_searchers() -> list[type]:
    return [*BASELINES, Evolution, Islands, Memetic, MindMappings, Nsga2Search]


@hookimpl
def register_objectives() -> list[type]:
    return [ParetoObjective]


@hookimpl
def register_commands(cli: click.Group) -> None:
    from .commands import train_surrogate

    cli.add_command(train_surrogate)
