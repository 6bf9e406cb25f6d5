"""Several objectives at once: `pareto:energy,delay`, and the search for their front."""

from .objective import ParetoObjective as ParetoObjective
from .searcher import Nsga2Search as Nsga2Search
