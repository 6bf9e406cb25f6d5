"""A memetic search: demes that evolve by moves the segments offer, with local search around their best designs.

It keeps the paper's encoding and adds what cheap evaluation allows: every proposal is repaired before it is evaluated, moves
are structured (loops swap levels, a tensor changes its formats together), the share of each kind of move follows its
success, and the single-gene neighbourhood of a deme's best design is swept when its progress stops.

Designs whose scores are near often have tilings far apart, with nothing good in between. So the first part of the budget
goes to several small demes that do not mix; one that has converged starts anew. The rest goes to one population of the
best of all. All demes propose at once: a batch is as large as that of a single population.
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


@attrs.define(eq=False)
class Deme:
    """A population that does not mix with others: its best designs, sorted."""

    size: int
    parents: Scored | None = None
    quiet: int = 0
    """Batches without a better design."""
    swept: bool = False
    """Whether the neighbourhood of its best design has been proposed."""

    @property
    def found(self) -> bool:
        return self.parents is not None and bool(np.isfinite(self.parents.scores[0]))

    def hear(self, scored: Scored) -> None:
        before = self.parents.scores[0] if self.parents is not None else np.inf
        self.parents = survivors(scored if self.parents is None else Scored.join([self.parents, scored]), self.size)
        if self.parents.scores[0] < before:
            self.quiet, self.swept = 0, False
        else:
            self.quiet += 1


@attrs.frozen(kw_only=True)
class Memetic(Searcher):
    """Evolution of demes with repair, structured moves, coordinate descent and restarts."""

    type_name: ClassVar[str] = "memetic"
    takes_migrants: ClassVar[bool] = True

    population: int = attrs.field(default=32, validator=attrs.validators.ge(4))
    """Survivors of a deme per generation."""
    offspring: int = attrs.field(default=128, validator=attrs.validators.ge(1))
    """Designs that a deme proposes per generation."""
    demes: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    merged: float = attrs.field(default=0.6)
    """Share of the budget after which the demes become one population, as large as all of them."""
    sample: float = attrs.field(default=0.15, validator=[attrs.validators.gt(0.0), attrs.validators.lt(1.0)])
    """Share of the budget for the first random sample, at most ten populations."""
    crossover: float = attrs.field(default=0.3, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the children with two parents."""
    greed: float = attrs.field(default=3.0, validator=attrs.validators.gt(0.0))
    """How strongly good parents are preferred: a parent's rank is drawn as u ** greed."""
    patience: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Generations without a better design before its neighbourhood is swept, and again before a restart."""
    finalpop: int = 64
    uniform: float = 0.0

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        if len(space) == 0:
            yield np.zeros((1, 0), dtype=np.int64)
            return
        number = max(1, min(self.demes, budget.total // 500))
        size = max(8, min(self.population, budget.total // 20))
        share = max(8, min(self.offspring, budget.total // 20))
        demes = [Deme(size) for _ in range(number)]
        hall: list[Scored] = []
        known, moves = Seen(), Moves(space)
        final = False
        while True:
            if not final and budget.progress >= self.merged:
                final = True
                pool = [*hall, *(d.parents for d in demes if d.parents is not None)]
                one = Deme(self.finalpop, survivors(Scored.join(pool), self.finalpop)) if pool else Deme(size)
                demes, share = [one], share * number
            for deme in demes:
                if deme.quiet >= 2 * self.patience and deme.found:
                    hall.append(deme.parents.best(4))
                    deme.parents, deme.quiet, deme.swept = None, 0, False
            kinds = [self._kind(deme) for deme in demes]
            parts = [np.zeros((0, len(space)), dtype=np.int64)] * len(demes)
            evolving = [i for i, kind in enumerate(kinds) if kind == "evolve"]
            tags = [np.full(0, -1)] * len(demes)
            if evolving:
                children, used = self._children(space, [demes[i].parents for i in evolving], share, moves, rng)
                for place, i in enumerate(evolving):
                    parts[i] = children[place * share : (place + 1) * share]
                    tags[i] = used[place * share : (place + 1) * share]
            for i, (deme, kind) in enumerate(zip(demes, kinds, strict=True)):
                if kind == "sweep":
                    parts[i] = neighbourhood(space, deme.parents.genomes[0])
                    deme.swept = True
                elif kind == "sample":
                    count = int(min(max(self.sample * budget.total / number, 4 * deme.size), 10 * deme.size))
                    parts[i] = space.guess(count, rng)
                    uni = int(self.uniform * count)
                    parts[i][:uni] = space.sample(uni, rng)
            mend = [i for i, kind in enumerate(kinds) if kind != "sweep"]
            if mend:
                whole = space.repair(np.concatenate([parts[i] for i in mend]), rng)
                for i, part in zip(mend, np.split(whole, np.cumsum([len(parts[i]) for i in mend])[:-1]), strict=True):
                    parts[i] = part
            for i, deme in enumerate(demes):
                fresh = known.new(parts[i])
                if kinds[i] == "evolve":
                    tags[i] = tags[i][fresh]
                    if fresh.size < share // 8:
                        deme.quiet = 99
                parts[i] = parts[i][fresh]
            sizes = [len(p) for p in parts]
            if not sum(sizes):
                continue
            scored: Scored = yield np.concatenate(parts)
            start = 0
            for i, (deme, n) in enumerate(zip(demes, sizes, strict=True)):
                mine = scored.take(slice(start, start + n))
                start += n
                if not len(mine):
                    continue
                if kinds[i] == "evolve":
                    better = mine.scores < deme.parents.scores[len(deme.parents) // 2]
                    moves.learn(tags[i][: len(mine)], better)
                deme.hear(mine)

    def _kind(self, deme):
        if not deme.found:
            return "sample"
        return "sweep" if deme.quiet >= self.patience and not deme.swept else "evolve"

    def _children(
        self, space: Space, demes, count: int, moves: Moves, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Children (count, G), and the segment of the first move of each (count,)."""
        alive = np.array([max(1, int(np.isfinite(p.scores).sum())) for p in demes])
        starts = np.cumsum([0] + [len(p) for p in demes[:-1]])
        picks = (alive[:, None] * rng.random((2, len(demes), count)) ** self.greed).astype(np.int64) + starts[:, None]
        picks = picks.reshape(2, -1)
        genomes = np.concatenate([p.genomes for p in demes])
        children = genomes[picks[0]]
        mixed = np.flatnonzero(rng.random(len(children)) < self.crossover)
        if mixed.size:
            children[mixed] = cross(space, children[mixed], genomes[picks[1][mixed]], rng)
        return moves.vary(children, rng)


def survivors(pool: Scored, size: int) -> Scored:
    """The best, with at most a few of one score: equal scores are nearly always the same design in other genes."""
    order = np.argsort(pool.scores, kind="stable")
    scores = pool.scores[order]
    starts = np.concatenate([[True], scores[1:] != scores[:-1]])
    place = np.arange(len(scores)) - np.maximum.accumulate(np.where(starts, np.arange(len(scores)), 0))
    kept = order[place < 2]
    if len(kept) < size:
        kept = np.concatenate([kept, order[place >= 2][: size - len(kept)]])
    return pool.take(kept[:size])
