"""Selections: the best mate, and the best of parents and children survive; with several objectives, the non-dominated
designs (NSGA-II; Deb, Pratap, Agarwal, Meyarivan, IEEE Trans. Evol. Comp. 2002)."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap.inner.arrays import powers
from sparsemap.pieces.contracts import Context, Genomes, PerDesign, Rows, Scored, Selection, Values
from sparsemap.searching.front import crowding, non_dominated

from .common import unique


@attrs.frozen(kw_only=True)
class Ranking(Selection):
    """Parents are the best `share` of the population, in pairs of two different designs (Section IV-H)."""

    type_name: ClassVar[str] = "ranking"

    share: float = attrs.field(default=0.5, validator=[attrs.validators.gt(0), attrs.validators.le(1)])
    """Share of the population allowed to mate; no invalid design mates while a valid design exists."""
    pressure: float = attrs.field(default=1.0, validator=attrs.validators.ge(1))
    """1: all parents are equally likely. Larger: the r-th of n has weight (1 - r/n)^(pressure - 1)."""

    def pick(self, parents: Scored, count: int, context: Context) -> Genomes:
        ranked = parents.best(max(round(self.share * len(parents)), 2))
        living = int(np.isfinite(ranked.scores).sum())
        genomes = ranked.genomes[: living or None]
        size = len(genomes)
        weights = powers(1.0 - np.arange(size) / size, self.pressure - 1.0)
        first = context.rng.choice(size, size=count, p=weights / weights.sum())
        other = context.rng.integers(1, max(size, 2), size=count)
        second = context.rng.choice(size, size=count, p=weights / weights.sum())
        second = np.where(second == first, (first + other) % size, second)
        return np.stack([genomes[first], genomes[second]], axis=1)

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        """The best `size` distinct designs of parents and children (mu + lambda)."""
        return unique(Scored.join([parents, children])).best(size)


@attrs.frozen(kw_only=True)
class Nsga2(Selection):
    """Better ranks mate and survive first and, within a rank, less crowded designs.

    With a single objective, this is a tournament by score and survival of the best."""

    type_name: ClassVar[str] = "nsga2"

    tournament: int = attrs.field(default=2, validator=attrs.validators.ge(1))
    """Number of designs competing to be a parent."""

    def pick(self, parents: Scored, count: int, context: Context) -> Genomes:
        place = np.empty(len(parents), dtype=np.int64)
        place[best_first(values_of(parents))] = np.arange(len(parents))
        drawn = context.rng.integers(0, len(parents), size=(count, 2, self.tournament))
        winners = np.take_along_axis(drawn, place[drawn].argmin(axis=2)[:, :, None], axis=2)[:, :, 0]
        return parents.genomes[winners]

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        """The best `size` of parents and children, best first; designs with repeated values come last."""
        pool = Scored.join([parents, children])
        values = values_of(pool)
        first = np.unique(values, axis=0, return_index=True)[1]
        repeated = np.ones(len(pool), dtype=bool)
        repeated[first] = False
        first.sort()
        order = np.concatenate([first[best_first(values[first], size)], np.flatnonzero(repeated)])
        return pool.take(order[:size])


def values_of(scored: Scored) -> Values:
    """(n, M) values; for a single objective, the scores."""
    return scored.scores[:, None] if scored.values is None else scored.values


def best_first(values: Values, enough: int | None = None) -> Rows:
    """Rows of `values` (n, M) sorted by rank, then by decreasing room; exact for the first `enough` rows only."""
    rank = ranks(values, enough)
    distance = np.zeros(len(values))
    for front in range(int(rank.max(initial=-1)) + 1):
        rows = np.flatnonzero(rank == front)
        if np.isfinite(values[rows]).all():
            distance[rows] = crowding(values[rows])
    return np.lexsort([-distance, rank])


def ranks(values: Values, enough: int | None = None) -> PerDesign:
    """(n,) int64: 0 for the non-dominated rows, 1 for rows dominated by rank 0 only, and so on.

    Once `enough` rows have a rank, all others share the next rank. Rows with infinite or missing values come last."""
    rank_of = np.full(len(values), -1, dtype=np.int64)
    rest = np.flatnonzero(np.isfinite(values).all(axis=1))
    count, rank = 0, 0
    while rest.size and (enough is None or count < enough):
        first = non_dominated(values[rest])
        rank_of[rest[first]] = rank
        count, rank, rest = count + int(first.sum()), rank + 1, rest[~first]
    rank_of[rest] = rank
    rank_of[rank_of < 0] = rank + bool(rest.size)
    return rank_of
