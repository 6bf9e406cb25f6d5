"""A memetic search: a population that evolves by moves the segments offer, and local search around its best designs.

It keeps the paper's encoding and adds what cheap evaluation allows: every proposal is repaired before it is evaluated, moves
are structured (factors swap levels, a tensor changes its formats together), the share of each kind of move follows its
success, the single-gene neighbourhood of the best design is swept when progress stops, and a population that has
converged is restarted around the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from sparsemap.kinds import Array, Proposals, Scored, Searcher
from sparsemap.moves import Moves, Seen, cross, neighbourhood

if TYPE_CHECKING:
    from sparsemap.search import Budget
    from sparsemap.space import Space


@attrs.frozen(kw_only=True)
class Memetic(Searcher):
    """Evolution with repair, structured moves, coordinate descent and restarts."""

    type_name: ClassVar[str] = "memetic"
    takes_migrants: ClassVar[bool] = True

    population: int = attrs.field(default=128, validator=attrs.validators.ge(4))
    """Survivors per generation."""
    offspring: int = attrs.field(default=512, validator=attrs.validators.ge(1))
    """Designs proposed per generation."""
    sample: float = attrs.field(default=0.15, validator=[attrs.validators.gt(0.0), attrs.validators.lt(1.0)])
    """Share of the budget for the first random sample, at most ten populations."""
    crossover: float = attrs.field(default=0.3, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the children with two parents."""
    greed: float = attrs.field(default=3.0, validator=attrs.validators.gt(0.0))
    """How strongly good parents are preferred: a parent's rank is drawn as u ** greed."""
    patience: int = attrs.field(default=6, validator=attrs.validators.ge(1))
    """Generations without a better design before its neighbourhood is swept, and again before a restart."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        size = max(8, min(self.population, budget.total // 20))
        offspring = max(8, min(self.offspring, budget.total // 10))
        known = Seen()
        best: Scored | None = None
        moves = Moves(space)
        while True:
            parents = yield from self._fresh(space, budget, rng, size, known, best)
            quiet, swept = 0, False
            top = parents.scores[0]
            while quiet < 3 * self.patience:
                if quiet >= self.patience and not swept:
                    parents = yield from self._descend(space, rng, parents, size, known)
                    swept = True
                else:
                    children, used = self._children(space, parents, offspring, moves, rng)
                    fresh = known.new(children)
                    if fresh.size < offspring // 8:
                        break  # converged: nearly everything within reach has been seen
                    scored: Scored = yield children[fresh]
                    better = scored.scores < parents.scores[len(parents) // 2]  # survives in the better half
                    moves.learn(used[fresh[: len(scored)]], better)
                    parents = survivors(parents, scored, size)
                if parents.scores[0] < top:
                    top, quiet, swept = parents.scores[0], 0, False
                else:
                    quiet += 1
            best = parents.best(1) if best is None else Scored.join([best, parents]).best(1)

    def _fresh(
        self, space: Space, budget: Budget, rng: np.random.Generator, size: int, known: Seen, best: Scored | None
    ) -> Proposals:
        """The first population of a (re)start: the best of a repaired random sample, after a restart with the best so far."""
        if len(space) == 0:
            yield np.zeros((1, 0), dtype=np.int64)
            return
        count = int(min(max(self.sample * budget.total, 4 * size), 10 * size, max(budget.left, 1)))
        found: Scored | None = None
        while True:
            genomes = space.repair(space.sample(count, rng), rng)
            fresh = known.new(genomes)
            scored = yield genomes[fresh] if fresh.size else genomes[:1]
            found = scored.best(size) if found is None else Scored.join([found, scored]).best(size)
            if np.isfinite(found.scores[0]):
                break
        return found if best is None or rng.random() < 0.5 else Scored.join([best, found]).best(size)

    def _children(
        self, space: Space, parents: Scored, count: int, moves: Moves, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Children (count, G), and the segment of the first move of each (count,)."""
        alive = max(1, int(np.isfinite(parents.scores).sum()))
        picks = (alive * rng.random((2, count)) ** self.greed).astype(np.int64)
        children = parents.genomes[picks[0]].copy()
        mixed = np.flatnonzero(rng.random(count) < self.crossover)
        if mixed.size:
            children[mixed] = cross(space, children[mixed], parents.genomes[picks[1][mixed]], rng)
        children, used = moves.vary(children, rng)
        return space.repair(children, rng), used

    def _descend(self, space: Space, rng: np.random.Generator, parents: Scored, size: int, known: Seen) -> Proposals:
        """Sweeps all single-gene neighbours of the best design until none is better."""
        while True:
            around = neighbourhood(space, parents.genomes[0])
            fresh = known.new(around)
            if not fresh.size:
                return parents
            before = parents.scores[0]
            scored = yield around[fresh]
            parents = survivors(parents, scored, size)
            if not parents.scores[0] < before:
                return parents


def survivors(parents: Scored, children: Scored, size: int) -> Scored:
    """The best, with at most a few of one score: equal scores are nearly always the same design in other genes."""
    pool = Scored.join([parents, children])
    order = np.argsort(pool.scores, kind="stable")
    scores = pool.scores[order]
    starts = np.concatenate([[True], scores[1:] != scores[:-1]])
    place = np.arange(len(scores)) - np.maximum.accumulate(np.where(starts, np.arange(len(scores)), 0))
    kept = order[place < 2]
    if len(kept) < size:
        kept = np.concatenate([kept, order[place >= 2][: size - len(kept)]])
    return pool.take(kept[:size])
