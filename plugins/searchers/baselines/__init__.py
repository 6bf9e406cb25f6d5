"""Classical search methods to compare with. Those that need another package import it when their search starts."""

from .exhaustive import Exhaustive
from .gamma import Gamma
from .mcts import TreeSearch
from .random_search import RandomPruned, RandomSearch
from .reinforcement import DeepQ, PolicyOptimization
from .swarms import ParticleSwarm, PopulationAdaptation

SEARCHERS: list[type] = [
    DeepQ,
    Exhaustive,
    Gamma,
    ParticleSwarm,
    PolicyOptimization,
    PopulationAdaptation,
    RandomPruned,
    RandomSearch,
    TreeSearch,
]
