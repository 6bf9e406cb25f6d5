"""Operators that searchers are composed of: initialisations, selections, crossovers and mutations."""

from .crossover import OnePoint, SegmentCrossover, SensitivityAware, UniformCrossover
from .inits import Hypercube, LatinHypercube, UniformInit
from .mutation import AnnealingMutation, RandomReset, SegmentMoves
from .selection import GreedyRanking, Nsga2, Ranking

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
