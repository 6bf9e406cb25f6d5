"""A searcher, `plugin-name`."""

from pathlib import Path

import attrs
import numpy as np

from sparsemap import Searcher, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Searcher):
    """Simulated annealing of many designs side by side: worse neighbours are taken less and less often."""

    type_name = "plugin-name"
    walkers: int = attrs.field(default=64, validator=attrs.validators.ge(1))
    """Designs that walk at a time."""
    warmth: float = attrs.field(default=0.5, validator=attrs.validators.gt(0))
    """Relative loss that is taken at first with a probability of 37 %."""

    def search(self, space, budget, rng):
        """Yields genomes (n, G), receives them scored, until the driver closes it when the budget is spent."""
        here = yield space.repair(space.guess(self.walkers, rng), rng)
        rows = np.arange(self.walkers)
        while len(here) == self.walkers:
            near = here.genomes.copy()
            genes = rng.integers(len(space), size=self.walkers)
            near[rows, genes] = rng.integers(space.low[genes], space.high[genes], endpoint=True)
            there = yield space.repair(near, rng)
            if len(there) < self.walkers:
                return
            with np.errstate(invalid="ignore", over="ignore"):
                loss = np.log(there.scores) - np.log(here.scores)
                chance = np.exp(-loss / (self.warmth * max(1 - budget.progress, 1e-9)))
            taken = (there.scores <= here.scores) | (rng.random(self.walkers) < chance)
            genomes = np.where(taken[:, None], there.genomes, here.genomes)
            here = attrs.evolve(here, genomes=genomes, scores=np.where(taken, there.scores, here.scores))


@hookimpl
def register_searchers():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
