"""Variation of parents to children: crossover of some, then mutations with shares following their success.

variation = Variation(space, mutations, crossover, rate)
children, used = variation.mutate(variation.cross(pairs, context), context)
scored = yield children
variation.learn(used, scored.scores < bar)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsemap import Space
from sparsemap.pieces.boundary import crossed, mutated
from sparsemap.pieces.contracts import Array, Context, Crossover, Genomes, Mutation, PerDesign

from . import mating
from .operators.segments import SegmentMove

AGAIN = 0.45
"""Probability of a further mutation after each mutation."""
FLOOR = 0.06
"""Smallest share of a mutation; less with many mutations."""


class Variation:
    """Crossover and mutations of a search. A mutation's share grows with its success in producing survivors."""

    def __init__(self, space: Space, mutations: Sequence[Mutation], crossover: Crossover, rate: float) -> None:
        self.crossover, self.rate = crossover, rate
        parts = [part for mutation in mutations for part in mutation.parts(space)]
        self.mutations = [mutation for mutation, _ in parts]
        self.segments = places_of(self.mutations, space)
        weights = np.array([weight for _, weight in parts], dtype=np.float64)
        self.prior = weights / weights.sum() if parts else weights
        self.tried = 20.0 * self.prior
        self.worked = 20.0 * self.prior * 0.1
        self._ends: Array | None = None

    @property
    def shares(self) -> Array:
        """(mutations,) probability of each mutation to be next."""
        rates = self.worked / self.tried * np.sqrt(self.prior)
        floor = min(FLOOR, 0.5 / len(rates))
        shares = floor + (1.0 - floor * len(rates)) * rates / rates.sum()
        return shares / shares.sum()

    @property
    def ends(self) -> Array:
        """(mutations,) cumulative shares."""
        if self._ends is None:
            ends = self.shares.cumsum()
            self._ends = ends / ends[-1]
        return self._ends

    def cross(self, pairs: Genomes, context: Context) -> Genomes:
        """(n, 2, G) -> (n, G): copies of the first parent, or with probability `rate` children of both."""
        children = pairs[:, 0].copy()
        mixed = np.flatnonzero(context.rng.random(len(pairs)) < self.rate)
        if mixed.size:
            children[mixed] = crossed(self.crossover, pairs[mixed], context)
        return children

    def mutate(self, genomes: Genomes, context: Context) -> tuple[Genomes, PerDesign]:
        """Genomes (n, G) after one or a few mutations each, and the index of the first mutation of each (n,). The
        numbers of mutations are drawn first, so each mutation handles many genomes at once, one mutation after the
        other."""
        rng, count = context.rng, len(genomes)
        if not self.mutations:  # no gene has a choice
            return genomes.copy(), np.zeros(count, dtype=np.int64)
        times, used = mating.times(self.ends, AGAIN, count, rng)
        if self.segments is not None:
            moves = np.zeros((len(context.space.slices), count), dtype=np.int64)
            moves[self.segments] = times
            return context.space.varied(genomes, moves, rng), used
        changed = genomes.copy()
        for mutation, often in zip(self.mutations, times, strict=True):
            for again in range(often.max(initial=0)):
                rows = np.flatnonzero(often > again)
                changed[rows] = mutated(mutation, changed[rows], context)
        return changed, used

    def learn(self, used: PerDesign, worked: PerDesign) -> None:
        """Learn whether the designs (n,) first varied by the mutations `used` turned out well."""
        self._ends = None
        for index in range(len(self.mutations)):
            mine = used == index
            self.tried[index] = 0.9 * self.tried[index] + mine.sum() + 0.1
            self.worked[index] = 0.9 * self.worked[index] + worked[mine].sum() + 0.05


def places_of(mutations: Sequence[Mutation], space: Space) -> list[int] | None:
    """Indices of the segments moved by these mutations, if each mutation is the moves of one segment, in the order of
    the space; else None."""
    names = [mutation.segment for mutation in mutations if type(mutation) is SegmentMove]
    places = [place for place, name in enumerate(space.slices) if name in names]
    return places if len(names) == len(mutations) and names == [[*space.slices][place] for place in places] else None
