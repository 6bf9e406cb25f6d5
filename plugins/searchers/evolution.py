"""The paper's evolution strategy (Section IV-H): calibrate, initialise, then cross, mutate, evaluate, select.

Calibration finds the sensitive genes (Eq. 2-5). Hypercube initialisation spreads over these genes, and crossover keeps
them together. Mutation turns from sensitive genes to the rest as the budget is spent (Eq. 6-7). All steps except
calibration are operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.boundary import crossed, filled, mutated, picked, survivors
from sparsemap.pieces.contracts import (
    Context,
    Crossover,
    Genomes,
    Init,
    Mutation,
    Proposals,
    Scored,
    Searcher,
    Selection,
)

from .calibration import Calibration
from .genes import Seen
from .operators.crossover import OnePoint
from .operators.inits import UniformInit
from .operators.mutation import RandomReset
from .operators.selection import Ranking
from .screening import screened, steps_of

ENDED = 1e-3
"""Relative change of the score of a re-evaluated design, below which re-evaluation ends."""
TRIES = 100
"""Number of batches with only known designs after which a search without `repeats` ends."""


@attrs.frozen(kw_only=True)
class Evolution(Searcher):
    """A (mu + lambda) evolution strategy over genes, with exchangeable operators.

    Operators are given by name or as tables: `mutation = { type = "annealing", rate = 0.9 }`."""

    type_name: ClassVar[str] = "evolution"
    takes_migrants: ClassVar[bool] = True

    population: int = attrs.field(default=100, validator=attrs.validators.ge(2))
    """Survivors per generation, mu; reduced for budgets of fewer than ten generations."""
    offspring: int = attrs.field(default=100, validator=attrs.validators.ge(1))
    """Designs proposed per generation, lambda."""
    init: Init = attrs.field(factory=UniformInit)
    """Operator for the first population."""
    selection: Selection = attrs.field(factory=Ranking)
    """Operator choosing parents and survivors."""
    crossover: Crossover = attrs.field(factory=OnePoint)
    """Operator making a child of two parents."""
    mutation: Mutation = attrs.field(factory=RandomReset)
    """Operator changing the children."""
    calibrate: bool = False
    """Whether to find the high-sensitivity genes first; otherwise no gene counts as high."""
    calibration: Calibration = attrs.field(factory=Calibration)
    """Measurement of sensitivities."""

    repeats: bool = True
    """Whether to propose known children again, as in the paper. For expensive evaluations: a search without repeats
    ends when no new children are found."""

    repairs: bool = False
    """Whether to repair designs before proposing them; a batch then never exceeds the remaining budget."""
    again: bool = False
    """Whether each batch repeats the best design, until its score changes by less than a thousandth: for evaluations
    continuing from their last state."""

    screen: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Children made per evaluated child; the most promising, judged by all designs tried, are evaluated."""
    steps: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Number of designs per batch differing from the best design by one step of an ordered gene. The least known of
    these are chosen, because their forecasts rest on few designs."""

    @property
    def hears_all(self) -> bool:
        return self.screen > 1

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        notes: Mapping[str, Any] = {}
        if self.calibrate:
            notes = yield from self.calibration.measure(space, budget, rng)
        size = min(self.population, max(budget.total // 10, 2))
        first = filled(self.init, size, Context(space, rng, budget.progress, notes))
        parents = yield from self._repaired(first, space, rng) if self.repairs else first
        seen = Seen()
        seen.new(parents.genomes)
        known, ended = parents, set[tuple[int, ...]]()
        while True:
            while not np.isfinite(parents.scores).any():  # nothing valid to select from: keep sampling
                sampled = yield space.sample(4 * self.offspring, rng)
                parents = survivors(self.selection, parents, sampled, size)
            context = Context(space, rng, budget.progress, notes)
            pairs = picked(self.selection, parents, self.offspring * self.screen, context)
            genomes = mutated(self.mutation, crossed(self.crossover, pairs, context), context)
            if self.repairs:
                genomes = space.repair(genomes, rng)
            if not self.repeats:
                genomes = self._fresh(genomes, seen, context)
                if not len(genomes):
                    return
            best = parents.best(1)
            if self.screen > 1:
                near = self._stepped(space, known, best.genomes, seen, rng)
                genomes = genomes[screened(space, known, genomes, self.offspring - len(near))]
                genomes = np.concatenate([near, genomes[(genomes[:, None] != near).any(axis=2).all(axis=1)]])
            if not self.repeats:
                seen.add(genomes)
            again = self.again and tuple(best.genomes[0]) not in ended
            if again:
                genomes = np.concatenate([best.genomes, genomes])
            children: Scored = yield genomes[: budget.left] if self.repairs else genomes
            if again:  # its last score counts
                parents, known = (some.take((some.genomes != best.genomes).any(axis=1)) for some in (parents, known))
                if abs(children.scores[0] / best.scores[0] - 1.0) < ENDED:
                    ended.add(tuple(best.genomes[0]))
            known = Scored.join([known, children])
            parents = survivors(self.selection, parents, children, size)

    def _repaired(self, proposals: Proposals, space: Space, rng: np.random.Generator) -> Proposals:
        """The same proposals after repair; returns their return value."""
        scored: Any = None
        while True:
            try:
                genomes = proposals.send(scored)
            except StopIteration as end:
                return end.value
            scored = yield space.repair(genomes, rng)

    def _stepped(self, space: Space, known: Scored, best: Genomes, seen: Seen, rng: np.random.Generator) -> Genomes:
        """New genomes one step from the best."""
        found = steps_of(space, best) if self.steps else best[:0]
        found = space.canonical(space.repair(found, rng) if self.repairs and len(found) else found)
        found = found[seen.unseen(found)]
        return found[screened(space, known, found, min(self.steps, self.offspring), unknown=True)]

    def _fresh(self, genomes: Genomes, seen: Seen, context: Context) -> Genomes:
        """Genomes with new meaning; without any, new random samples; empty if these are known as well."""
        for _ in range(TRIES):
            genomes = context.space.canonical(genomes)
            fresh = genomes[seen.unseen(genomes)]
            if len(fresh):
                return fresh
            genomes = context.space.sample(self.offspring, context.rng)
            if self.repairs:
                genomes = context.space.repair(genomes, context.rng)
        return genomes[:0]
