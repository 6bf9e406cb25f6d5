"""A memetic search: demes evolving by the segments' moves, with local search around their best designs.

The search keeps the paper's encoding and adds features enabled by cheap evaluation. Initial designs are guesses of the
segments. Every proposal is repaired before evaluation, and no two equivalent designs are evaluated. The single-gene
neighbourhood of a deme's best design is swept when progress stops. Formats and mechanisms good with one tiling are good
with nearly all, and with bad formats or mechanisms a tiling says little. So all guesses after the first change one part
of a good design, mostly the loops. Selection, crossover and mutations are operators; the default mutations are the
moves of the segments (loops swap levels, a tensor changes its formats).

The first rounds make several times more proposals than are evaluated; a forecast from the designs tried selects the
most promising (`forecast`).

If the cost model has classes of designs with bounds (`Space.classes`), designs are not evaluated, at no cost, if the
class cannot contain anything better than the best design so far. After the first sample, a part of each sample comes
from the classes with the best bounds, and from the second round on a part of the children moves into these classes;
also in the first round, if the best design stays far from all bounds.

Designs with nearly equal scores often have very different tilings, with nothing good in between. So a round begins with
demes that do not mix: one holds the designs from which the search starts, or the best of the previous round. A
converged deme restarts. Then the best of all demes form one population. When this population has converged, or spent
the round's plan, a new round begins. All demes propose at once, so a batch is as large as for one population. Only the
end of the search depends on the budget: a larger budget is never worse."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import ClassVar, Literal

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.inner.arrays import powers
from sparsemap.pieces.boundary import locked, picked, survivors
from sparsemap.pieces.contracts import (
    Array,
    Context,
    Crossover,
    Genomes,
    Mutation,
    Proposals,
    Rows,
    Scored,
    Searcher,
    Selection,
)
from sparsemap.problem.designs import Decoded

from .forecast import Forecast
from .genes import Seen, neighbourhood, renewed
from .operators.segments import GreedyRanking, SegmentCrossover, SegmentMoves
from .variation import Variation

EXHAUSTED = 50
"""Consecutive batches without a new design after which the space counts as exhausted."""
ROUNDS = (500, 2_000, 20_000)
"""Numbers of designs at the ends of rounds, at the latest; each further round has ten times as many."""
SHORTEST = 1.25
"""Smallest end of a round, relative to the designs at its beginning."""
FEWEST = 5_000
"""Designs planned per deme before several demes are used."""
PROGRESS = 0.005
"""Relative improvement of the score counted as progress of a deme."""
REMEMBERED = 4
"""Designs of a converged deme passed on to the common population."""
STEP = 0.2
"""Fraction of the initial sample drawn at random; the rest mutates the best of these."""
FORESEEN, MANY = 500, 6
"""Largest round with a forecast, and proposals per evaluated design; in larger rounds, evaluation is cheaper than the
forecast."""
LOOPS = 0.6
"""Share of the renewed designs with new loops."""
LATE, FAR = 0.4, 3.0
"""A first round counts as lost after this share, if the best design exceeds the minimum bound of all classes by this
factor."""


@attrs.define(eq=False)
class Deme:
    """A separate population: its best designs, sorted, and its progress."""

    size: int
    patience: int
    """Stalled generations before a sweep; twice as many, with a sweep, count as convergence."""
    selection: Selection
    parents: Scored
    stalled: int = 0
    """Consecutive generations without progress."""
    swept: bool = False
    """Whether the neighbourhood of the best design has been swept."""
    sweeps: bool = True
    """Whether the deme sweeps at all."""
    mark: float = np.inf
    """Best score counted as progress."""
    left: int = 0
    """Designs of the deme's sample still to draw."""

    @property
    def valid(self) -> bool:
        """Whether the deme has a valid design."""
        return len(self.parents) > 0 and bool(np.isfinite(self.parents.scores[0]))

    @property
    def converged(self) -> bool:
        return self.valid and (self.swept or not self.sweeps) and self.stalled >= 2 * self.patience

    @property
    def proposes(self) -> Literal["sample", "sweep", "children"]:
        """Kind of the deme's next proposals."""
        if self.left or not self.valid:
            return "sample"
        return "sweep" if self.stalled >= self.patience and self.sweeps and not self.swept else "children"

    def receive(self, scored: Scored) -> None:
        """Add the deme's own proposals, or designs of other demes."""
        self.stalled += 1
        if not len(scored):
            return
        self.parents = locked(survivors(self.selection, self.parents, scored, self.size))  # once, for all that get them
        if self.parents.scores[0] < (1.0 - PROGRESS) * self.mark:
            self.stalled, self.swept, self.mark = 0, False, self.parents.scores[0]


@attrs.frozen(kw_only=True)
class Memetic(Searcher):
    """Evolution of demes with repair, coordinate descent and restarts."""

    type_name: ClassVar[str] = "memetic"
    takes_migrants: ClassVar[bool] = True
    nested: ClassVar[bool] = True

    population: int = attrs.field(default=64, validator=attrs.validators.ge(8))
    """Survivors per generation; half as many in a deme."""
    offspring: int = attrs.field(default=256, validator=attrs.validators.ge(1))
    """Designs proposed per generation by all demes together."""
    generations: int = attrs.field(default=40, validator=attrs.validators.ge(1))
    """Minimum number of generations in a round: a deme proposes at most 1 / `generations` of the round's designs per
    generation, and holds at most 1.5 times as many."""
    demes: int = attrs.field(default=4, validator=[attrs.validators.ge(1), attrs.validators.le(1000)])
    """Number of separate populations; fewer in the first, short rounds."""
    apart: float = attrs.field(default=0.6, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of a round's designs spent by separate demes."""
    sample: float = attrs.field(default=0.15, validator=[attrs.validators.gt(0.0), attrs.validators.lt(1.0)])
    """Share of a round for its first random sample, at most ten populations per deme."""
    mutations: tuple[Mutation, ...] = attrs.field(
        factory=lambda: (SegmentMoves(),), validator=attrs.validators.min_len(1)
    )
    """Names or tables of mutations. Their shares are constant, because the most frequent successes are changes with
    hardly any effect."""
    crossover: Crossover = attrs.field(factory=SegmentCrossover)
    """Operator making a child of two parents."""
    crossover_rate: float = attrs.field(default=0.5, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the children with two parents."""
    selection: Selection = attrs.field(factory=GreedyRanking)
    """Operator choosing parents and survivors."""
    patience: int = attrs.field(default=8, validator=attrs.validators.ge(1))
    """Generations without progress before the neighbourhood of the best design is swept, if the sweep takes at most a
    quarter of the round; twice as many end a deme."""

    classes: float = attrs.field(default=0.5, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of each sample except the first from the classes with the best bounds."""
    jumps: float = attrs.field(default=0.1, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the children moved to a class with a good bound; in the first round only if the best design stays far
    from all bounds."""
    prune: bool = attrs.field(default=True)
    """Whether to omit proposals, at no cost, if their class cannot contain anything better than the best design so far."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        if len(space) == 0:
            yield np.zeros((1, 0), dtype=np.int64)
            return
        run = _Run(self, space, budget, rng)
        best: list[Scored] = []
        while not run.exhausted:
            run.begin_round()
            demes = run.demes(max(1, min(self.demes, run.planned // FEWEST)), self.population // 2)
            if best:
                demes += run.demes(1, demes[0].size)
                demes[-1].receive(Scored.join(best))
            until = budget.spent + self.apart * run.planned
            while budget.spent < until and not run.exhausted:
                for place, deme in enumerate(demes):
                    if deme.converged:
                        best.append(deme.parents.best(REMEMBERED))
                        (demes[place],) = run.demes(1, deme.size)
                yield from run.generation(demes)
                demes += run.given_deme(demes[0].size)
            best += [deme.parents for deme in demes if deme.valid]
            (one,) = run.demes(1, self.population)
            if best:
                one.receive(Scored.join(best))
            while not (one.converged or run.exhausted or budget.spent >= run.end):
                yield from run.generation([one])
            best = [one.parents]


class _Run:
    """State shared by all generations of a search."""

    def __init__(self, searcher: Memetic, space: Space, budget: Budget, rng: np.random.Generator) -> None:
        self.searcher, self.space, self.budget, self.rng = searcher, space, budget, rng
        self.variation = Variation(space, searcher.mutations, searcher.crossover, searcher.crossover_rate)
        self.seen = Seen()
        self.forecast = Forecast.of(space)
        self.rounds = 0
        self.planned, self.end = 0, 0
        """Designs planned for the round, and total number of designs at its end."""
        self.classes = space.classes if searcher.classes or searcher.jumps or searcher.prune else None
        self.nothing = Scored(space.low[None, :][:0], np.zeros(0))
        self.best = np.inf
        """The best score so far."""
        self.stale = 0
        """Consecutive batches without a new design."""
        self.given: Scored | None = None
        """Designs from which the search starts, until they have a deme; None before the first batch is back."""

    @property
    def exhausted(self) -> bool:
        """Whether nothing new is found, or no class can contain a better design."""
        proved = self.classes is not None and self.searcher.prune and self.classes.least.min() >= self.best
        return self.stale >= EXHAUSTED or proved

    @property
    def lost(self) -> bool:
        """Whether much of the first round is spent with the best design far above the bounds."""
        assert self.classes is not None
        return bool(self.budget.spent > LATE * self.end and self.best > FAR * self.classes.least.min())

    def begin_round(self) -> None:
        """Plan up to the next of `ROUNDS`. Sizes follow this plan, not the whole budget, so a smaller budget tries the
        same designs as the beginning of a larger budget."""
        least = SHORTEST * self.budget.spent
        self.end = next((end for end in ROUNDS if end > least), ROUNDS[-1])
        while self.end <= least:
            self.end *= 10
        self.planned = self.end - self.budget.spent
        if self.planned > FORESEEN:
            self.forecast = None
        self.rounds += 1

    def demes(self, count: int, size: int) -> list[Deme]:
        """New populations without designs."""
        size = max(8, min(size, 3 * self.planned // (2 * self.searcher.generations)))
        around = np.minimum(self.space.high - self.space.low, 64).sum()
        sweeps = bool(4 * around <= self.planned)
        return [
            Deme(size, self.searcher.patience, self.searcher.selection, self.nothing, sweeps=sweeps)
            for _ in range(count)
        ]

    def given_deme(self, size: int) -> list[Deme]:
        """Deme for the designs from which the search starts, once: among guesses, these would be the only parents."""
        given, self.given = self.given, self.nothing
        if given is None or not len(given):
            return []
        (deme,) = self.demes(1, size)
        deme.receive(given)
        return [deme]

    def generation(self, demes: Sequence[Deme]) -> Proposals:
        """One batch of new proposals of all demes; each deme receives its part."""
        most = self.planned // self.searcher.generations
        share = max(8, min(self.searcher.offspring // len(demes), most))
        context = Context(self.space, self.rng, self.budget.spent / self.end)
        actions = [deme.proposes for deme in demes]
        many = MANY if self.forecast is not None and self.forecast.knows else 1
        parts, wanted = zip(*(self._proposed(deme, share, len(demes), many, context) for deme in demes), strict=True)
        owner = np.repeat(np.arange(len(demes)), [len(part) for part in parts])
        genomes = np.concatenate(parts)
        children = np.flatnonzero(np.array([action == "children" for action in actions])[owner])
        genomes[children], _ = self.variation.mutate(genomes[children], context)
        if self.classes is not None and self.searcher.jumps and (self.rounds > 1 or self.lost):
            jumping = children[self.rng.random(len(children)) < self.searcher.jumps]
            if jumping.size:
                to = self._picked(len(jumping))
                genomes[jumping] = self.classes.moved(self.space, genomes[jumping], to, self.rng)
        repaired = self.space.repaired(genomes, self.rng)
        if self.classes is not None and self.searcher.prune:
            hopeful = np.flatnonzero(self.classes.hopeful(repaired.designs, self.best))
            repaired, owner = repaired.take(hopeful), owner[hopeful]
        names = self.space.canonical(repaired.genomes)
        fresh = self.seen.unseen(names)
        if many > 1:
            fresh = self._promising(repaired, fresh, owner, wanted)
        self.seen.add(names[fresh])
        self.stale = 0 if fresh.size else self.stale + 1
        batch = repaired.take(fresh)
        scored: Scored = yield batch
        self.best = min(self.best, scored.scores.min(initial=np.inf))
        owner, tried = owner[fresh][: len(scored)], batch.take(np.arange(len(scored)))
        if self.given is None:  # they are in place of the worst of the first batch
            theirs = (scored.genomes != tried.genomes).any(axis=1)
            self.given, owner = scored.take(np.flatnonzero(theirs)), np.where(theirs, -1, owner)
        if self.forecast is not None:
            mine = np.flatnonzero(owner >= 0)
            self.forecast.receive(tried.take(mine), scored.scores[mine])
        for place, (deme, action) in enumerate(zip(demes, actions, strict=True)):
            rows = np.flatnonzero(owner == place)
            deme.receive(scored.take(rows))
            if action == "children" and rows.size < share // 8:
                deme.stalled = 2 * deme.patience  # nearly everything within reach has been seen

    def _promising(self, proposed: Decoded, rows: Rows, owner: Array, wanted: Sequence[int]) -> Rows:
        """The most promising rows among the proposals, as many per deme as `wanted`, ascending."""
        assert self.forecast is not None
        if not rows.size:
            return rows
        rows = rows[self.forecast.promise(proposed, rows).argsort(kind="stable")]
        return np.sort(np.concatenate([rows[owner[rows] == place][:most] for place, most in enumerate(wanted)]))

    def _proposed(self, deme: Deme, share: int, demes: int, many: int, context: Context) -> tuple[Genomes, int]:
        """Proposals of a deme, (n, G), before mutation and repair, and the number wanted, one in `many`."""
        if deme.proposes == "children":
            pairs = picked(self.searcher.selection, deme.parents, share * many, context)
            return self.variation.cross(pairs, context), share
        if deme.proposes == "sweep":
            deme.swept = True
            around = neighbourhood(self.space, deme.parents.genomes[0])
            return around, len(around)
        whole = int(min(max(self.searcher.sample * self.planned / demes, 4 * deme.size), 10 * deme.size))
        deme.left = deme.left or whole
        count = min(deme.left, max(8, int(STEP * whole)))
        deme.left -= count
        guesses = self._guessed(count * many)
        if not deme.valid:
            return guesses, count
        parents = picked(self.searcher.selection, deme.parents, count * many, context)[:, 0]
        return renewed(self.space, parents, guesses, LOOPS, self.rng), count

    def _guessed(self, count: int) -> Genomes:
        """Initial designs (count, G); from the second sample on, a part comes from the classes with the best bounds."""
        draw = self.space.sample if self.stale else self.space.guess  # guesses need not reach every design
        of_classes = int(self.searcher.classes * count) if self.stale or self.given is not None else 0
        if self.classes is None or not of_classes:
            return draw(count, self.rng)
        drawn = self.classes.draw(self.space, self._picked(of_classes), self.rng)
        return np.concatenate([drawn, draw(count - of_classes, self.rng)])

    def _picked(self, count: int) -> Array:
        """Random classes (count,) with bounds below the best score; the logarithm of the rank is uniform."""
        assert self.classes is not None
        ranking = self.classes.ranking
        some = max(1, bisect_left(ranking, self.best, key=self.classes.least.item))
        return ranking[powers(some, self.rng.random(count)).astype(np.int64) - 1]
