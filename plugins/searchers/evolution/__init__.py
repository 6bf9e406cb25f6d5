"""The paper's evolution strategy (Sections IV-D, IV-E, IV-H), each part an operator that can be used alone.

Calibration finds the genes that matter (Eq. 2-5); hypercube initialisation spreads over them; crossover keeps them
together; mutation turns from them to the rest as the budget is spent (Eq. 6-7). Plain operators are here too.
"""

from .annealing import AnnealingMutation, RandomReset
from .crossover import OnePoint, SensitivityAware, UniformCrossover
from .hypercube import Hypercube
from .sampling import LatinHypercube, UniformInit
from .searcher import Evolution
from .selection import Ranking

__all__ = [
    "AnnealingMutation",
    "Evolution",
    "Hypercube",
    "LatinHypercube",
    "OnePoint",
    "RandomReset",
    "Ranking",
    "SensitivityAware",
    "UniformCrossover",
    "UniformInit",
]

OPERATORS: list[type] = [
    AnnealingMutation,
    Hypercube,
    LatinHypercube,
    OnePoint,
    RandomReset,
    Ranking,
    SensitivityAware,
    UniformCrossover,
    UniformInit,
]
