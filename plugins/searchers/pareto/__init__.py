"""Several objectives at once: `pareto:energy,delay`, the search for their front, and the front as a plot."""

from .objective import ParetoObjective
from .plot import ParetoPlot
from .searcher import Nsga2Search

__all__ = [
    "Nsga2Search",
    "ParetoObjective",
    "ParetoPlot",
]
