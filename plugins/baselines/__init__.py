"""Classical search methods to compare with. Those that need another package import it when their search starts."""

from sparsemap.hookspecs import hookimpl

from .gamma import Gamma
from .mcts import TreeSearch
from .random_search import RandomSearch
from .reinforcement import DeepQ, PolicyOptimization
from .swarms import ParticleSwarm, PopulationAdaptation

__all__ = [
    "DeepQ",
    "Gamma",
    "ParticleSwarm",
    "PolicyOptimization",
    "PopulationAdaptation",
    "RandomSearch",
    "TreeSearch",
    "register_searchers",
]


@hookimpl
def register_searchers() -> list[type]:
    return [DeepQ, Gamma, ParticleSwarm, PolicyOptimization, PopulationAdaptation, RandomSearch, TreeSearch]
