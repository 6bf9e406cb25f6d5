"""Hill climbing: random neighbours of the best design so far."""
import attrs
import numpy as np
from sparsemap import Scored, Searcher, hookimpl


@attrs.frozen(kw_only=True)
class MySearcher(Searcher):
    type_name = "my-searcher"
    batch: int = attrs.field(default=64, validator=attrs.validators.ge(1))

    def search(self, space, budget, rng):
        best = (yield space.sample(10 * self.batch, rng)).best(1)
        while True:
            near = np.repeat(best.genomes, self.batch, axis=0)
            genes = rng.integers(len(space), size=self.batch)
            near[np.arange(self.batch), genes] = rng.integers(space.low[genes], space.high[genes], endpoint=True)
            best = Scored.join([best, (yield near)]).best(1)


@hookimpl
def register_searchers():
    return [MySearcher]
