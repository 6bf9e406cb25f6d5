"""NSGA-II (Deb et al. 2002) with adaptive mutations and repair.

Additions to the textbook: half of the parents are good in one direction of the trade-off (the score, or a random
weighted sum of logarithms), which pushes harder than ranks do. Searches by the score and by each objective alone come
first, since a front without its ends misses the fastest or the most frugal design. The single-gene neighbourhoods of
designs on the front are swept when generations find nothing more, and a converged population restarts."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.boundary import picked, survivors
from sparsemap.pieces.contracts import (
    Context,
    Crossover,
    Genomes,
    Mutation,
    PerDesign,
    Proposals,
    Scored,
    Searcher,
    Selection,
)
from sparsemap.problem.designs import Decoded
from sparsemap.searching.front import Front, crowding, scaled

from ..genes import Seen, neighbourhood
from ..mating import places as places_of
from ..memetic import Memetic
from ..operators.segments import SegmentCrossover, SegmentMoves
from ..operators.selection import Nsga2, values_of
from ..variation import Variation

DIRECTIONS = 16
"""Number of directions per generation."""
BY_SCORE = 4
"""Number of directions equal to the score; the others are random."""
ALONE = 0.2
"""Probability of a direction with a single objective."""
FEWEST = 50
"""Designs below which a search by one objective is not worthwhile."""


@attrs.frozen(kw_only=True)
class Nsga2Search(Searcher):
    """Evolution towards a front of trade-offs, with adaptive mutations, repair, sweeps around the front and restarts."""

    type_name: ClassVar[str] = "nsga2"
    takes_migrants: ClassVar[bool] = True

    population: int = attrs.field(default=128, validator=attrs.validators.ge(4))
    """Survivors per generation."""
    offspring: int = attrs.field(default=256, validator=attrs.validators.ge(1))
    """Designs proposed per generation."""
    sample: float = attrs.field(default=0.1, validator=[attrs.validators.gt(0.0), attrs.validators.lt(1.0)])
    """Share of the budget for the first random sample, at most ten populations."""
    mutations: tuple[Mutation, ...] = attrs.field(
        factory=lambda: (SegmentMoves(),), validator=attrs.validators.min_len(1)
    )
    """Names or tables of mutations; the share of each follows its success."""
    crossover: Crossover = attrs.field(factory=SegmentCrossover)
    """Operator making a child of two parents."""
    crossover_rate: float = attrs.field(default=0.3, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the children with two parents."""
    directed: float = attrs.field(default=0.5, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the parents picked for being good in one direction."""
    greed: float = attrs.field(default=3.0, validator=attrs.validators.gt(0.0))
    """Selection pressure of directions: a parent's place in its direction is drawn as u ** greed."""
    ends: float = attrs.field(default=0.15, validator=[attrs.validators.ge(0.0), attrs.validators.le(0.2)])
    """Share of the budget for a search by the score, and for one by each objective alone, before the front."""
    patience: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Generations without a new design on the front before sweeps, and sweeps without a new design before a restart."""
    selection: Selection = attrs.field(factory=Nsga2)
    """Operator choosing the other parents, and the survivors."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        if len(space) == 0:
            yield np.zeros((1, 0), dtype=np.int64)
            return
        size = max(8, min(self.population, budget.total // 20))
        offspring = max(8, min(self.offspring, budget.total // 10))
        variation, seen = Variation(space, self.mutations, self.crossover, self.crossover_rate), Seen()
        best: Scored | None = yield from self._ends(space, budget, rng, size)
        if best is not None:
            seen.new(best.genomes)
        first = True
        while True:
            parents = yield from self._sampled(space, budget, rng, size, seen)
            if best is not None and (first or rng.random() < 0.5):
                parents = survivors(self.selection, best, parents, size)
            front, swept, first = front_of(parents), Seen(), False
            stalled = 0
            while stalled < 2 * self.patience:
                around = unswept(space, front, swept, seen) if stalled >= self.patience else None
                if around is not None:
                    scored: Scored = yield around
                    parents = survivors(self.selection, parents, scored, size)
                else:
                    context = Context(space, rng, budget.progress)
                    children, used = self._children(parents, offspring, variation, context)
                    fresh = seen.new(children.genomes)
                    if fresh.size < offspring // 8:
                        break  # converged: nearly everything within reach has been seen
                    scored = yield children.take(fresh)
                    parents = survivors(self.selection, parents, scored, size)
                    better = Seen()
                    better.new(parents.genomes[: size // 2])
                    variation.learn(used[fresh[: len(scored)]], better.known(scored.genomes))
                stalled = 0 if front.add(scored.genomes, values_of(scored), scored.scores[:, None]) else stalled + 1
            best = parents if best is None else survivors(self.selection, best, parents, size)

    def _ends(self, space: Space, budget: Budget, rng: np.random.Generator, size: int) -> Proposals:
        """The best designs of searches by the score and by each objective alone: the ends of the front. None without
        such searches."""
        best: Scored | None = None
        objectives = len(space.problem.objective.names)
        for aim in range(-1, objectives if objectives > 1 and round(self.ends * budget.total) >= FEWEST else -1):
            part = Budget(round(self.ends * budget.total))
            alone = Memetic(classes=0.0, jumps=0.0, prune=False).search(space, part, rng)
            batch: Any = next(alone)
            while True:
                scored: Scored = yield batch
                best = scored if best is None else survivors(self.selection, best, scored, size)
                part.spend(len(scored))
                if not part.left:
                    break
                worth = scored.scores if aim < 0 else values_of(scored)[:, aim]
                batch = alone.send(Scored(scored.genomes, np.where(np.isfinite(scored.scores), worth, np.inf)))
            alone.close()
        return best

    def _sampled(self, space: Space, budget: Budget, rng: np.random.Generator, size: int, seen: Seen) -> Proposals:
        """First population of a (re)start: the best of a repaired random sample."""
        count = int(min(max(self.sample * budget.total, 4 * size), 10 * size, max(budget.left, 1)))
        population: Scored | None = None
        while population is None or not np.isfinite(population.scores).any():
            repaired = space.repaired(space.guess(count, rng), rng)
            fresh = seen.new(repaired.genomes)
            scored: Scored = yield repaired.take(fresh if fresh.size else np.arange(1))
            before = scored.take(slice(0)) if population is None else population
            population = survivors(self.selection, before, scored, size)
        return population

    def _children(
        self, parents: Scored, count: int, variation: Variation, context: Context
    ) -> tuple[Decoded, PerDesign]:
        """Children (count, G) with their designs, and the first mutation of each (count,)."""
        pairs = picked(self.selection, parents, count, context)
        aimed = round(self.directed * count)
        pairs[:aimed] = self._directed(parents, aimed, context.rng)
        children, used = variation.mutate(variation.cross(pairs, context), context)
        return context.space.repaired(children, context.rng), used

    def _directed(self, parents: Scored, count: int, rng: np.random.Generator) -> Genomes:
        """Mating pairs (count, 2, G), both parents good in the same direction."""
        valid = parents.take(np.isfinite(parents.scores))
        values = scaled(values_of(valid))
        values = (values - values.min(axis=0)) / np.maximum(np.ptp(values, axis=0), 1e-9)
        objectives = values.shape[1]
        weights = rng.dirichlet(np.ones(objectives), size=DIRECTIONS)
        alone = rng.random(DIRECTIONS) < ALONE
        weights[alone] = np.eye(objectives)[rng.integers(0, objectives, size=int(alone.sum()))]
        aims = sum(values[:, i, None] * weights[:, i] for i in range(objectives))
        aims[:, :BY_SCORE] = valid.scores[:, None]
        order = np.argsort(aims, axis=0, kind="stable")
        places = places_of(len(valid), rng.random((count, 2)), self.greed)
        return valid.genomes[order[places, rng.integers(0, DIRECTIONS, size=count)[:, None]]]


def front_of(scored: Scored) -> Front:
    """The front of a population."""
    front = Front(max(len(scored), 1))
    front.add(scored.genomes, values_of(scored), scored.scores[:, None])
    return front


def unswept(space: Space, front: Front, swept: Seen, seen: Seen) -> Genomes | None:
    """New neighbours of the least crowded front design not in `swept`; None if all are swept.

    The ends of the front and the design with the best score come first."""
    if front.genomes is None:
        return None
    room = crowding(front.values)
    room[np.argmin(front.numbers[:, 0])] = np.inf
    for row in np.argsort(-room, kind="stable"):
        if swept.new(front.genomes[row : row + 1]).size:
            around = neighbourhood(space, front.genomes[row])
            around = around[seen.new(around)]
            if len(around):
                return around
    return None
