"""Several objectives at once: `pareto:energy,delay`, NSGA-II as selection and as search, and the front as a plot."""

from sparsemap import hookimpl

from .objective import ParetoObjective
from .plot import ParetoPlot
from .searcher import Nsga2Search
from .selection import Nsga2


@hookimpl
def register_objectives():
    return [ParetoObjective]


@hookimpl
def register_operators():
    return [Nsga2]


@hookimpl
def register_searchers():
    return [Nsga2Search]


@hookimpl
def register_exporters():
    return [ParetoPlot]
