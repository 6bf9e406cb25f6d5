"""Searchers, the operators that they are composed of, and what they share (`variation`, `genes`).

`memetic` is the default search, `pareto` the one for several objectives, `evolution` the paper's evolution strategy,
`islands` runs populations side by side, `baselines` are searchers to compare with; those that need another
package import it when their search starts.
"""

from sparsemap import hookimpl

from .baselines import SEARCHERS as BASELINES
from .evolution import Evolution
from .islands import Islands
from .memetic import Memetic
from .operators import OPERATORS
from .pareto import Nsga2Search, ParetoObjective, ParetoPlot


@hookimpl
def register_operators() -> list[type]:
    return OPERATORS


@hookimpl
def register_searchers() -> list[type]:
    return [*BASELINES, Evolution, Islands, Memetic, Nsga2Search]


@hookimpl
def register_objectives() -> list[type]:
    return [ParetoObjective]


@hookimpl
def register_exporters() -> list[type]:
    return [ParetoPlot]
