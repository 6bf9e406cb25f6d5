"""Random search: every design uniform and independent, what any other method has to beat."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Proposals, Searcher


@attrs.frozen(kw_only=True)
class RandomSearch(Searcher):
    type_name: ClassVar[str] = "random"

    batch: int = attrs.field(default=1024, validator=attrs.validators.ge(1))
    """Designs proposed at a time; it changes the speed, not the result."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        while True:
            yield space.sample(self.batch, rng)
