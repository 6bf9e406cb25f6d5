"""A memetic search: demes that evolve by moves the segments offer, with local search around their best designs.

It keeps the paper's encoding and adds what cheap evaluation allows: a search starts from guesses of the segments, every
proposal is repaired before it is evaluated, the share of each mutation follows its success, and the single-gene
neighbourhood of a deme's best design is swept when progress stops. Selection, crossover and mutations are operators;
unless others are named, mutations are the moves of the segments (loops swap levels, a tensor changes its formats).

Designs with nearly the same score often have tilings far apart, with nothing good in between. So a round begins with
demes that do not mix; one that has converged starts anew. The best of all then become one population, and when that has
converged, a new round begins. All demes propose at once, so that a batch is as large as that of one population.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.boundary import picked, survivors
from sparsemap.pieces.contracts import Context, Crossover, Genomes, Mutation, Proposals, Scored, Searcher, Selection

from .genes import Seen, neighbourhood
from .operators.crossover import SegmentCrossover
from .operators.mutation import SegmentMoves
from .operators.selection import GreedyRanking
from .variation import Variation

EXHAUSTED = 50
"""Batches in a row without a design that is new, after which the space has no more to offer."""
FEWEST = 5_000
"""Designs that a deme should have before there are several."""
REMEMBERED = 4
"""Designs of a converged deme that take part in the population of all."""


@attrs.define(eq=False)
class Deme:
    """A population that does not mix with others: its best designs, sorted, and how its progress goes."""

    size: int
    patience: int
    """Stalled generations before a sweep; twice as many, with a sweep, mean convergence."""
    selection: Selection
    parents: Scored
    stalled: int = 0
    """Generations in a row without a better design."""
    swept: bool = False
    """Whether the neighbourhood of the best design has been proposed."""

    @property
    def valid(self) -> bool:
        """Whether it has a valid design."""
        return len(self.parents) > 0 and bool(np.isfinite(self.parents.scores[0]))

    @property
    def converged(self) -> bool:
        return self.valid and self.swept and self.stalled >= 2 * self.patience

    @property
    def proposes(self) -> Literal["sample", "sweep", "children"]:
        """What it should propose next."""
        if not self.valid:
            return "sample"
        return "sweep" if self.stalled >= self.patience and not self.swept else "children"

    def receive(self, scored: Scored) -> None:
        """Takes in the designs that it proposed, or those of other demes."""
        self.stalled += 1
        if not len(scored):
            return
        before = self.parents.scores[:1]
        self.parents = survivors(self.selection, self.parents, scored, self.size)
        if not len(before) or self.parents.scores[0] < before[0]:
            self.stalled, self.swept = 0, False


@attrs.frozen(kw_only=True)
class Memetic(Searcher):
    """Evolution of demes with repair, adaptive mutations, coordinate descent and restarts."""

    type_name: ClassVar[str] = "memetic"
    takes_migrants: ClassVar[bool] = True

    population: int = attrs.field(default=64, validator=attrs.validators.ge(8))
    """Survivors per generation; demes have half of it."""
    offspring: int = attrs.field(default=512, validator=attrs.validators.ge(1))
    """Designs proposed per generation by all demes, at most a twentieth of the budget by each."""
    demes: int = attrs.field(default=4, validator=[attrs.validators.ge(1), attrs.validators.le(1000)])
    """Populations that do not mix; fewer if the budget is small."""
    apart: float = attrs.field(default=0.6, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the rest of the budget that goes to the demes of a round."""
    sample: float = attrs.field(default=0.15, validator=[attrs.validators.gt(0.0), attrs.validators.lt(1.0)])
    """Share of the budget for the first random sample, at most ten populations per deme."""
    mutations: tuple[Mutation, ...] = attrs.field(
        factory=lambda: (SegmentMoves(),), validator=attrs.validators.min_len(1)
    )
    """Names or tables of mutations; the share of each follows its success."""
    crossover: Crossover = attrs.field(factory=SegmentCrossover)
    """Makes a child of two parents."""
    crossover_rate: float = attrs.field(default=0.5, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the children with two parents."""
    selection: Selection = attrs.field(factory=GreedyRanking)
    """What picks the parents, and the survivors."""
    patience: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Generations without a better design before its neighbourhood is swept; twice as many end a deme."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        if len(space) == 0:
            yield np.zeros((1, 0), dtype=np.int64)
            return
        run = _Run(self, space, budget, rng)
        best: list[Scored] = []
        while not run.exhausted:
            demes = run.demes(max(1, min(self.demes, budget.left // FEWEST)), self.population // 2)
            until = budget.spent + self.apart * budget.left
            while budget.spent < until and not run.exhausted:
                for place, deme in enumerate(demes):
                    if deme.converged:
                        best.append(deme.parents.best(REMEMBERED))
                        (demes[place],) = run.demes(1, deme.size)
                yield from run.generation(demes)
            best += [deme.parents for deme in demes if deme.valid]
            (one,) = run.demes(1, self.population)
            if best:
                one.receive(Scored.join(best))
            while not (one.converged or run.exhausted):
                yield from run.generation([one])
            best = [one.parents]


class _Run:
    """What all generations of a search share."""

    def __init__(self, searcher: Memetic, space: Space, budget: Budget, rng: np.random.Generator) -> None:
        self.searcher, self.space, self.budget, self.rng = searcher, space, budget, rng
        self.variation = Variation(space, searcher.mutations, searcher.crossover, searcher.crossover_rate)
        self.seen = Seen()
        self.stale = 0
        """Batches in a row without a new design."""

    @property
    def exhausted(self) -> bool:
        return self.stale >= EXHAUSTED

    def demes(self, count: int, size: int) -> list[Deme]:
        """New populations without designs."""
        size = max(8, min(size, self.budget.total // 20))
        nothing = Scored(self.space.low[None, :][:0], np.zeros(0))
        return [Deme(size, self.searcher.patience, self.searcher.selection, nothing) for _ in range(count)]

    def generation(self, demes: Sequence[Deme]) -> Proposals:
        """One batch of what all demes propose, without designs proposed before; each deme receives its part."""
        share = max(8, min(self.searcher.offspring // len(demes), self.budget.total // 20))
        context = Context(self.space, self.rng, self.budget.progress)
        actions = [deme.proposes for deme in demes]
        parts = [self._proposed(deme, share, len(demes), context) for deme in demes]
        owner = np.repeat(np.arange(len(demes)), [len(part) for part in parts])
        used = np.full(len(owner), -1)
        genomes = np.concatenate(parts)
        children = np.flatnonzero(np.array([action == "children" for action in actions])[owner])
        genomes[children], used[children] = self.variation.mutate(genomes[children], context)
        repaired = self.space.repaired(genomes, self.rng)
        fresh = self.seen.new(repaired.genomes)
        self.stale = 0 if fresh.size else self.stale + 1
        scored: Scored = yield repaired.take(fresh)
        owner, used = owner[fresh][: len(scored)], used[fresh][: len(scored)]
        for place, (deme, action) in enumerate(zip(demes, actions, strict=True)):
            rows = np.flatnonzero(owner == place)
            mine = scored.take(rows)
            if action == "children" and rows.size:
                better = mine.scores < deme.parents.scores[len(deme.parents) // 2]  # survives in the better half
                self.variation.learn(used[rows], better)
            deme.receive(mine)
            if action == "children" and rows.size < share // 8:
                deme.stalled = 2 * deme.patience  # nearly everything within reach has been seen

    def _proposed(self, deme: Deme, share: int, demes: int, context: Context) -> Genomes:
        """What a deme proposes, (n, G), before mutation and repair."""
        if deme.proposes == "children":
            return self.variation.cross(picked(self.searcher.selection, deme.parents, share, context), context)
        if deme.proposes == "sweep":
            deme.swept = True
            return neighbourhood(self.space, deme.parents.genomes[0])
        count = int(min(max(self.searcher.sample * self.budget.total / demes, 4 * deme.size), 10 * deme.size))
        draw = self.space.sample if self.stale else self.space.guess  # guesses need not reach every design
        return draw(count, self.rng)
