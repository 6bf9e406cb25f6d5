"""Selection by fitness ranking (Section IV-H): the best are parents, and the best of parents and children survive."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array, Context, Scored, Selection

from .genes import unique


@attrs.frozen(kw_only=True)
class Ranking(Selection):
    """Parents are the best `share` of the population; pairs are drawn from them at random, two different ones."""

    type_name: ClassVar[str] = "ranking"

    share: float = attrs.field(default=0.5, validator=[attrs.validators.gt(0), attrs.validators.le(1)])
    """Share of the population that may mate; never an invalid design while there is a valid one."""
    pressure: float = attrs.field(default=1.0, validator=attrs.validators.ge(1))
    """1: all parents are drawn alike. Larger: the r-th of n has weight (1 - r/n)^(pressure - 1)."""

    def pick(self, parents: Scored, count: int, context: Context) -> Array:
        ranked = parents.best(max(round(self.share * len(parents)), 2))
        living = int(np.isfinite(ranked.scores).sum())
        genomes = ranked.genomes[: living or None]
        size = len(genomes)
        weights = (1.0 - np.arange(size) / size) ** (self.pressure - 1.0)
        first = context.rng.choice(size, size=count, p=weights / weights.sum())
        other = context.rng.integers(1, max(size, 2), size=count)
        second = context.rng.choice(size, size=count, p=weights / weights.sum())
        second = np.where(second == first, (first + other) % size, second)
        return np.stack([genomes[first], genomes[second]], axis=1)

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        """The best `size` distinct designs of both (mu + lambda)."""
        return unique(Scored.join([parents, children])).best(size)
