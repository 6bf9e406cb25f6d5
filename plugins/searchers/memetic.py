"""A memetic search: demes that evolve by moves the segments offer, with local search around their best designs.

It keeps the paper's encoding and adds what cheap evaluation allows: a search starts from guesses of the segments, every
proposal is repaired before it is evaluated, no two designs that mean the same are, and the single-gene neighbourhood of a
deme's best design is swept when progress stops. Formats and mechanisms that are good with one tiling are good with nearly
all, and a tiling says little where they are bad: so all but the first guesses change one part of a design that is good,
mostly its loops. Selection, crossover and mutations are operators; unless others are named, mutations are the moves of the
segments (loops swap levels, a tensor changes its formats).

In the first rounds there are several times as many proposals as designs to evaluate: those are that a forecast from what has
been tried finds most promising (`forecast`).

Where the cost model knows classes of designs, each with a bound (`Space.classes`), no design is evaluated whose class has
nothing better than the best design so far, which spends nothing. After the first sample a part of each comes from the
classes with the best bounds, and from the second round on a part of the children moves into them; in the first one, too,
where its best design stays far from all bounds.

Designs with nearly the same score often have tilings far apart, with nothing good in between. So a round begins with
demes that do not mix, one of them of the designs that the search starts from, or of the best ones of the round before; one
that has converged starts anew. The best of all then become one population, and when that has converged, or spent what the
round was planned for, a new round begins. All demes propose at once, so that a batch is as large as that of one population.
Nothing depends on the budget but where the search ends: more is never worse.
"""

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
"""Batches in a row without a design that is new, after which the space has no more to offer."""
ROUNDS = (500, 2_000, 20_000)
"""Designs at which a round ends at the latest; each further one has ten times as many."""
SHORTEST = 1.25
"""A round ends no earlier than at so many times the designs that it begins with."""
FEWEST = 5_000
"""Designs that a deme of guesses should have before there are several."""
PROGRESS = 0.005
"""Share of the score by which a design has to be better to count as progress of its deme."""
REMEMBERED = 4
"""Designs of a converged deme that take part in the population of all."""
STEP = 0.2
"""Share of a sample that is drawn at once; what follows renews the best of it."""
FORESEEN, MANY = 500, 6
"""Designs of the rounds with a forecast, at most, and proposals for each one that is evaluated; later evaluating is cheaper."""
LOOPS = 0.6
"""Share of the renewed designs that have other loops."""
LATE, FAR = 0.4, 3.0
"""Share of the first round after which it is lost if its best design is so many times the least bound of a class."""


@attrs.define(eq=False)
class Deme:
    """A population that does not mix with others: its best designs, sorted, and how its progress goes."""

    size: int
    patience: int
    """Stalled generations before a sweep; twice as many, with a sweep, mean convergence."""
    selection: Selection
    parents: Scored
    stalled: int = 0
    """Generations in a row without progress."""
    swept: bool = False
    """Whether the neighbourhood of the best design has been proposed."""
    sweeps: bool = True
    """Whether it ever is."""
    mark: float = np.inf
    """The best score that was worth noting."""
    left: int = 0
    """Designs of its sample that have yet to be drawn."""

    @property
    def valid(self) -> bool:
        """Whether it has a valid design."""
        return len(self.parents) > 0 and bool(np.isfinite(self.parents.scores[0]))

    @property
    def converged(self) -> bool:
        return self.valid and (self.swept or not self.sweeps) and self.stalled >= 2 * self.patience

    @property
    def proposes(self) -> Literal["sample", "sweep", "children"]:
        """What it should propose next."""
        if self.left or not self.valid:
            return "sample"
        return "sweep" if self.stalled >= self.patience and self.sweeps and not self.swept else "children"

    def receive(self, scored: Scored) -> None:
        """Takes in the designs that it proposed, or those of other demes."""
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

    population: int = attrs.field(default=64, validator=attrs.validators.ge(8))
    """Survivors per generation; demes have half of it."""
    offspring: int = attrs.field(default=256, validator=attrs.validators.ge(1))
    """Designs proposed per generation by all demes."""
    generations: int = attrs.field(default=40, validator=attrs.validators.ge(1))
    """Those that a round has at least: a deme proposes no more designs in one than those of the round over this, and has
    half as many more."""
    demes: int = attrs.field(default=4, validator=[attrs.validators.ge(1), attrs.validators.le(1000)])
    """Populations that do not mix; fewer in the first rounds, which are short."""
    apart: float = attrs.field(default=0.6, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the designs of a round that goes to its demes."""
    sample: float = attrs.field(default=0.15, validator=[attrs.validators.gt(0.0), attrs.validators.lt(1.0)])
    """Share of a round for its first random sample, at most ten populations per deme."""
    mutations: tuple[Mutation, ...] = attrs.field(
        factory=lambda: (SegmentMoves(),), validator=attrs.validators.min_len(1)
    )
    """Names or tables of mutations. Their shares stay: what succeeds most often are changes that hardly matter."""
    crossover: Crossover = attrs.field(factory=SegmentCrossover)
    """Makes a child of two parents."""
    crossover_rate: float = attrs.field(default=0.5, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the children with two parents."""
    selection: Selection = attrs.field(factory=GreedyRanking)
    """What picks the parents, and the survivors."""
    patience: int = attrs.field(default=8, validator=attrs.validators.ge(1))
    """Generations without progress before the neighbourhood of the best design is swept, where that takes no more than a
    quarter of the round; twice as many end a deme."""

    classes: float = attrs.field(default=0.5, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of each sample, but the first, that comes from the classes with the best bounds."""
    jumps: float = attrs.field(default=0.1, validator=[attrs.validators.ge(0.0), attrs.validators.le(1.0)])
    """Share of the children that move to such a class; in the first round only where its best design stays far from all
    bounds."""
    prune: bool = attrs.field(default=True)
    """Whether proposals are left out, unspent, whose class cannot have anything better than the best design so far."""

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
    """What all generations of a search share."""

    def __init__(self, searcher: Memetic, space: Space, budget: Budget, rng: np.random.Generator) -> None:
        self.searcher, self.space, self.budget, self.rng = searcher, space, budget, rng
        self.variation = Variation(space, searcher.mutations, searcher.crossover, searcher.crossover_rate)
        self.seen = Seen()
        self.forecast = Forecast.of(space)
        self.rounds = 0
        self.planned, self.end = 0, 0
        """Designs that the round is planned for, and those that the search then has."""
        self.classes = space.classes if searcher.classes or searcher.jumps or searcher.prune else None
        self.nothing = Scored(space.low[None, :][:0], np.zeros(0))
        self.best = np.inf
        """The best score so far."""
        self.stale = 0
        """Batches in a row without a new design."""
        self.given: Scored | None = None
        """Designs that the search starts from, until they have a deme; None before the first batch is back."""

    @property
    def exhausted(self) -> bool:
        """Whether nothing new is found any more, or no class can hold anything better."""
        proved = self.classes is not None and self.searcher.prune and self.classes.least.min() >= self.best
        return self.stale >= EXHAUSTED or proved

    @property
    def lost(self) -> bool:
        """Whether much of the first round is spent and its best design far from what the bounds leave open."""
        assert self.classes is not None
        return bool(self.budget.spent > LATE * self.end and self.best > FAR * self.classes.least.min())

    def begin_round(self) -> None:
        """Plans up to the next of `ROUNDS`. Sizes follow this plan, never the whole budget: a smaller budget then tries the
        same designs as the beginning of a larger one."""
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
        """A population for the designs that the search starts from, once: among guesses they would be the only parents."""
        given, self.given = self.given, self.nothing
        if given is None or not len(given):
            return []
        (deme,) = self.demes(1, size)
        deme.receive(given)
        return [deme]

    def generation(self, demes: Sequence[Deme]) -> Proposals:
        """One batch of what all demes propose, without designs proposed before; each deme receives its part."""
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
        """Of some rows of what is proposed, as many of each deme as are `wanted`, ascending."""
        assert self.forecast is not None
        if not rows.size:
            return rows
        rows = rows[self.forecast.promise(proposed, rows).argsort(kind="stable")]
        return np.sort(np.concatenate([rows[owner[rows] == place][:most] for place, most in enumerate(wanted)]))

    def _proposed(self, deme: Deme, share: int, demes: int, many: int, context: Context) -> tuple[Genomes, int]:
        """What a deme proposes, (n, G), before mutation and repair, and how much of it is wanted: one of `many`."""
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
        """Designs (count, G) to start from; from the second sample on, a part is of the classes with the best bounds."""
        draw = self.space.sample if self.stale else self.space.guess  # guesses need not reach every design
        of_classes = int(self.searcher.classes * count) if self.stale or self.given is not None else 0
        if self.classes is None or not of_classes:
            return draw(count, self.rng)
        drawn = self.classes.draw(self.space, self._picked(of_classes), self.rng)
        return np.concatenate([drawn, draw(count - of_classes, self.rng)])

    def _picked(self, count: int) -> Array:
        """Classes (count,) that may hold something better than the best design: any rank is as likely as its half."""
        assert self.classes is not None
        ranking = self.classes.ranking
        some = max(1, bisect_left(ranking, self.best, key=self.classes.least.item))
        return ranking[powers(some, self.rng.random(count)).astype(np.int64) - 1]
