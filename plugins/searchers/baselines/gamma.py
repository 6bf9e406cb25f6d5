"""GAMMA's genetic algorithm (Kao and Krishna, ICCAD 2020), with the operators that the map-space study names.

The operators know which genes are loop orders and which are tiling from the columns that a segment provides; a space
without such genes does without that operator. Genes that GAMMA does not have (formats, skip/gate) are reset at random.
"""

from __future__ import annotations

from functools import cached_property
from math import factorial
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Array, Genomes, Proposals, Rows, Scored, Searcher

from ..genes import another

_share: list[Any] = [attrs.validators.ge(0), attrs.validators.le(1)]


@attrs.frozen(kw_only=True)
class Gamma(Searcher):
    """Elites survive; the others are children of the better part of the population, crossed and then mutated."""

    type_name: ClassVar[str] = "gamma"
    takes_migrants: ClassVar[bool] = True

    population: int = attrs.field(default=200, validator=attrs.validators.ge(4))
    """Designs per generation. A budget of fewer than ten generations makes it smaller."""
    parents: float = attrs.field(default=0.4, validator=_share)
    """Share of the population that may have children."""
    elites: float = attrs.field(default=0.06, validator=_share)
    """Share of the population that survives unchanged; elites are not evaluated again."""
    crossover_rate: float = attrs.field(default=0.5, validator=_share)
    """Probability that a child mixes two parents, as against a copy of one."""
    mutate_tile: float = attrs.field(default=1.0, validator=_share)
    """Probability that a child's tiling changes, as in GAMMA's own program: so large since tiling matters most."""
    mutate_order: float = attrs.field(default=0.1, validator=_share)
    """Probability that one loop of one mapping level moves."""
    mutate_parallelism: float = attrs.field(default=0.1, validator=_share)
    """Probability that two factors of different dimensions swap their mapping levels."""
    mutate_rest: float = attrs.field(default=0.5, validator=_share)
    """Probability that one of the genes other than mapping changes."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        operators = Operators(space, rng)
        size = max(min(self.population, budget.total // 10), 4)
        population: Scored = yield space.sample(size, rng)
        elites = max(round(self.elites * size), 1)
        while True:
            ranked = population.best(size)
            parents = ranked.genomes[: max(round(self.parents * size), 2)]
            first, second = (parents[rng.integers(len(parents), size=size)] for _ in range(2))
            children = operators.crossover(first, second, self.crossover_rate)
            children = operators.mutate_tile(children, self.mutate_tile)
            children = operators.mutate_order(children, self.mutate_order)
            children = operators.mutate_parallelism(children, self.mutate_parallelism)
            children = operators.mutate_rest(children, self.mutate_rest)
            scored: Scored = yield children
            population = Scored.join([ranked.take(slice(elites)), scored])


@attrs.define(eq=False, slots=False)
class Operators:
    """GAMMA's operators on genes; each takes genomes (n, G) and returns new ones."""

    space: Space
    rng: np.random.Generator

    def genes_of(self, column: str) -> Array:
        """Positions of the genes that provide a column and have more than one value."""
        free = self.space.high > self.space.low
        for name, part in self.space.slices.items():
            free[part] &= column in self.space.segments[name].provides
        return np.flatnonzero(free)

    @cached_property
    def orders(self) -> Array:
        return self.genes_of("order")

    @cached_property
    def tiling(self) -> Array:
        return self.genes_of("bounds")

    @cached_property
    def rest(self) -> Array:
        free = np.flatnonzero(self.space.high > self.space.low)
        return np.setdiff1d(free, np.concatenate([self.orders, self.tiling]))

    @cached_property
    def stems(self) -> Array:
        """(G,) the group of each gene: genes of one dimension, of one tensor, or all loop orders, as in GAMMA."""
        stems = [name.rpartition(".")[0] for name in self.space.names]
        return np.array([list(dict.fromkeys(stems)).index(stem) for stem in stems], dtype=np.int64)

    def crossover(self, first: Genomes, second: Genomes, chance: float) -> Genomes:
        """One group of genes (the tiling of a dimension, the orders, ..) of a child comes from the second parent."""
        if not len(self.stems):
            return first
        group = self.rng.integers(self.stems.max() + 1, size=(len(first), 1))
        mixed = self.rng.random((len(first), 1)) < chance
        return np.where(mixed & (self.stems == group), second, first)

    def mutate_tile(self, genomes: Genomes, chance: float) -> Genomes:
        """Two factors of one dimension move to another mapping level (two bounds change, where genes are bounds)."""
        once = self._reset(genomes, self.tiling, chance)
        if not len(self.tiling):
            return once
        second = self._same_group(np.argmax(once != genomes, axis=1))
        again = once.copy()
        rows = np.flatnonzero((once != genomes).any(axis=1))
        self._change(again, rows, second[rows])
        return again

    def mutate_order(self, genomes: Genomes, chance: float) -> Genomes:
        """One loop of one mapping level moves: a digit of its Cantor code changes."""
        if not len(self.orders):
            return genomes
        changed = genomes.copy()
        rows = np.flatnonzero(self.rng.random(len(genomes)) < chance)
        genes = self.rng.choice(self.orders, len(rows))
        for gene in np.unique(genes):
            mine = rows[genes == gene]
            low, span = self.space.low[gene], int(self.space.high[gene] - self.space.low[gene] + 1)
            changed[mine, gene] = low + move_loop(genomes[mine, gene] - low, span, self.rng)
        return changed

    def mutate_parallelism(self, genomes: Genomes, chance: float) -> Genomes:
        """Two factors of different dimensions swap their mapping levels: another dimension runs in parallel there."""
        if len(self.tiling) < 2:
            return genomes
        changed = genomes.copy()
        rows = np.flatnonzero(self.rng.random(len(genomes)) < chance)
        one, two = (self.rng.choice(self.tiling, len(rows)) for _ in range(2))
        fits = (self.stems[one] != self.stems[two]) & (changed[rows, one] <= self.space.high[two])
        fits &= changed[rows, two] <= self.space.high[one]
        rows, one, two = rows[fits], one[fits], two[fits]
        changed[rows, one], changed[rows, two] = genomes[rows, two], genomes[rows, one]
        return changed

    def mutate_rest(self, genomes: Genomes, chance: float) -> Genomes:
        return self._reset(genomes, self.rest, chance)

    def _reset(self, genomes: Genomes, genes: Array, chance: float) -> Genomes:
        """One of `genes` gets another value."""
        changed = genomes.copy()
        if len(genes):
            rows = np.flatnonzero(self.rng.random(len(genomes)) < chance)
            self._change(changed, rows, self.rng.choice(genes, len(rows)))
        return changed

    def _change(self, genomes: Genomes, rows: Rows, genes: Array) -> None:
        """Sets one gene of each of these rows to another value."""
        low, high = self.space.low[genes], self.space.high[genes]
        genomes[rows, genes] = another(genomes[rows, genes], low, high, self.rng)

    def _same_group(self, genes: Array) -> Array:
        """For each gene, a random tiling gene of the same dimension."""
        alike = self.stems[genes][:, None] == self.stems[self.tiling]
        draw = np.where(alike, self.rng.random(alike.shape), -1.0)
        return self.tiling[draw.argmax(axis=1)]


def move_loop(codes: Array, span: int, rng: np.random.Generator) -> Array:
    """Cantor codes from 0 with one factorial digit changed; any other code where `span` is no factorial."""
    dims = next((d for d in range(2, 21) if factorial(d) >= span), 20)
    if factorial(dims) != span:
        return (codes + rng.integers(1, span, size=codes.shape)) % span
    place = rng.integers(1, dims, size=codes.shape)  # digit 1 has two values, digit 2 three, ..
    weight = np.array([factorial(i) for i in range(dims)])[place]
    digit = codes // weight % (place + 1)
    return codes + ((digit + rng.integers(1, place + 1)) % (place + 1) - digit) * weight
