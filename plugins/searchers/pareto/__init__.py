"""Several objectives at once: `pareto:energy,delay`, NSGA-II as selection and as search, and the front as a plot."""

from .objective import ParetoObjective
from .plot import ParetoPlot
from .searcher import Nsga2Search
from .selection import Nsga2

__all__ = [
    "Nsga2",
    "Nsga2Search",
    "ParetoObjective",
    "ParetoPlot",
]
