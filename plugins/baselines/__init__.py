"""Classical search methods to compare with. Those that need another package import it when their search starts."""

from sparsemap.hookspecs import hookimpl

from .gamma import Gamma
from .random_search import RandomSearch
from .swarms import ParticleSwarm, PopulationAdaptation

__all__ = ["Gamma", "ParticleSwarm", "PopulationAdaptation", "RandomSearch", "register_searchers"]


@hookimpl
def register_searchers() -> list[type]:
    return [Gamma, ParticleSwarm, PopulationAdaptation, RandomSearch]
