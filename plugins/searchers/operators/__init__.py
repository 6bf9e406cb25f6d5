"""Operators that searchers are composed of: initialisations, selections, crossovers and mutations."""

from .crossover import OnePoint, SegmentCrossover, SensitivityAware, UniformCrossover
from .hypercube import Hypercube
from .mutation import AnnealingMutation, RandomReset, SegmentMoves
from .nsga2 import Nsga2
from .sampling import LatinHypercube, UniformInit
from .selection import GreedyRanking, Ranking

OPERATORS: list[type] = [
    AnnealingMutation,
    GreedyRanking,
    Hypercube,
    LatinHypercube,
    Nsga2,
    OnePoint,
    RandomReset,
    Ranking,
    SegmentCrossover,
    SegmentMoves,
    SensitivityAware,
    UniformCrossover,
    UniformInit,
]

__all__ = ["OPERATORS", *(cls.__name__ for cls in OPERATORS)]
