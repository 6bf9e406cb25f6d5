"""Several objectives at once: `pareto:energy,delay`, the search for their front, and the front as a plot."""

from .objective import ParetoObjective as ParetoObjective
from .plot import ParetoPlot as ParetoPlot
from .searcher import Nsga2Search as Nsga2Search
