"""Selections by rank: the best are parents, and the best of parents and children survive."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Context, Genomes, Scored, Selection

from ..genes import unique


@attrs.frozen(kw_only=True)
class Ranking(Selection):
    """Parents are the best `share` of the population, in pairs of two different ones (Section IV-H)."""

    type_name: ClassVar[str] = "ranking"

    share: float = attrs.field(default=0.5, validator=[attrs.validators.gt(0), attrs.validators.le(1)])
    """Share of the population that may mate; never an invalid design while there is a valid one."""
    pressure: float = attrs.field(default=1.0, validator=attrs.validators.ge(1))
    """1: all parents are drawn alike. Larger: the r-th of n has weight (1 - r/n)^(pressure - 1)."""

    def pick(self, parents: Scored, count: int, context: Context) -> Genomes:
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


@attrs.frozen(kw_only=True)
class GreedyRanking(Selection):
    """Better designs mate more often, invalid ones never; of equal scores at most two survive.

    Designs with equal scores are nearly always the same design in other genes.
    """

    type_name: ClassVar[str] = "greedy-ranking"

    greed: float = attrs.field(default=3.0, validator=attrs.validators.gt(0.0))
    """How strongly good parents are preferred: a parent's rank is drawn as u ** greed, u uniform in 0..1."""

    def pick(self, parents: Scored, count: int, context: Context) -> Genomes:
        valid = int(np.isfinite(parents.scores).sum())
        first, second = (valid * context.rng.random((2, count)) ** self.greed).astype(np.int64)
        return np.stack([parents.genomes[first], parents.genomes[second]], axis=1)

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        pool = Scored.join([parents, children])
        order = np.argsort(pool.scores, kind="stable")
        scores = pool.scores[order]
        starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
        twins = np.arange(len(scores)) - np.repeat(starts, np.diff(np.append(starts, len(scores))))
        return pool.take(np.concatenate([order[twins < 2], order[twins >= 2]])[:size])
