"""Random search, what any other method has to beat, and one that never evaluates a design twice (`random-pruned`).

The latter prunes as Timeloop's mapper does by default: permutations of loops with bound one, and all permutations of
the innermost level. The first is done by `space.canonical`, with all else that makes two genomes one design. The second
holds for dense tensors only: of a compressed one, the innermost loops decide which rank is innermost, and so the
metadata. It is not done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Genomes, Proposals, Searcher

from ..genes import Seen
from .exhaustive import Enumeration

FRUITLESS = 100
"""Batches in a row without a new design after which even a large space is taken to be exhausted."""


@attrs.frozen(kw_only=True)
class RandomSearch(Searcher):
    """Every design uniform and independent."""

    type_name: ClassVar[str] = "random"

    batch: int = attrs.field(default=1024, validator=attrs.validators.ge(1))
    """Designs proposed at a time; it changes the speed, not the result."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        while True:
            yield space.sample(self.batch, rng)


@attrs.frozen(kw_only=True)
class RandomPruned(Searcher):
    """Distinct designs in random order; when draws hardly find new ones, the rest is listed, and the search ends."""

    type_name: ClassVar[str] = "random-pruned"

    batch: int = attrs.field(default=1024, validator=attrs.validators.ge(1))
    """Genomes drawn at a time."""
    rare: float = attrs.field(default=0.05, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Share of new designs in a batch below which the rest is listed, if the space is small enough."""
    limit: float = attrs.field(default=1e6, validator=attrs.validators.gt(0))
    """Distinct designs up to which a space is small enough."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        seen = Seen(limit=math.inf)
        fruitless, small = 0, None
        while fruitless < FRUITLESS:
            genomes = space.canonical(space.sample(self.batch, rng))
            fresh = genomes[seen.new(genomes)]
            fruitless = 0 if len(fresh) else fruitless + 1
            if len(fresh):
                yield fresh
            if len(fresh) < self.rare * self.batch:
                small = Enumeration(space).count(rng) <= self.limit if small is None else small
                if small:
                    break
        if small:
            yield from self._rest(space, seen, rng)

    def _rest(self, space: Space, seen: Seen, rng: np.random.Generator) -> Iterator[Genomes]:
        left = [genomes[seen.new(genomes)] for genomes in Enumeration(space).genomes()]
        rows = rng.permutation(np.concatenate(left))
        for start in range(0, len(rows), self.batch):
            yield rows[start : start + self.batch]
