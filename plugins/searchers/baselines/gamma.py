"""GAMMA's genetic algorithm (Kao and Krishna, ICCAD 2020) with the rates of its Timeloop version, as compared in the
map-space study (Kao et al., IISWC 2022). The tiles and fan-outs of all proposed designs are legal."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Array, Proposals, Scored, Searcher
from sparsemap.searching.front import non_dominated

from .gamma_mapping import Mappings, Operators

_share: list[Any] = [attrs.validators.ge(0), attrs.validators.le(1)]


@attrs.frozen(kw_only=True)
class GammaSearch(Searcher):
    """Elites survive; all others are children of the better part of the population, crossed and then mutated."""

    type_name: ClassVar[str] = "gamma"
    takes_migrants: ClassVar[bool] = True

    population: int = attrs.field(default=100, validator=attrs.validators.ge(4))
    """Designs per generation; reduced for budgets of fewer than ten generations."""
    parents: float = attrs.field(default=0.5, validator=_share)
    """Share of the population allowed to have children; at least the front of several objectives."""
    elites: float = attrs.field(default=0.05, validator=_share)
    """Share of the population surviving unchanged, at least one design and the front; elites are not evaluated again."""
    inject: float = attrs.field(default=0.1, validator=_share)
    """Share of new random designs among the children; at least one design, unless 0."""
    crossover_rate: float = attrs.field(default=0.5, validator=_share)
    """Probability of two parents swapping an item; 1 in the first generation, unless 0."""
    mutate_tile: float = attrs.field(default=1.0, validator=_share)
    """Probability of moving all factors of one dimension to random levels."""
    mutate_order: float = attrs.field(default=0.1, validator=_share)
    """Probability of swapping two loops of one level."""
    mutate_parallelism: float = attrs.field(default=0.1, validator=_share)
    """Probability of starting or stopping to run a dimension in parallel at a level."""
    mutate_level: float = attrs.field(default=0.5, validator=_share)
    """Probability of two levels swapping their tiles."""
    mutate_rest: float = attrs.field(default=0.5, validator=_share)
    """Probability of changing a gene outside the mapping."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        operators = Operators(space, rng)
        size = max(min(self.population, budget.total // 10), 4)
        mappings = Mappings.join([operators.outermost(size // 2), operators.random(size - size // 2)])
        crossover_rate = float(self.crossover_rate > 0)
        kept: Scored | None = None
        elites = mappings.take(slice(0))
        while True:
            genomes = operators.legal(mappings)
            scored: Scored = yield genomes
            mappings = Mappings.join([elites, operators.heard(mappings, genomes, scored)])
            scored = scored if kept is None else Scored.join([kept, scored])
            ranked, front = ranking(scored)
            best = ranked[: max(round(self.parents * size), front, 2)]
            first = ranked[: min(max(round(self.elites * size), front, 1), size - 1)]
            elites, kept = mappings.take(first), scored.take(first)
            mappings = self._children(operators, mappings.take(best), size - len(first), crossover_rate)
            crossover_rate = self.crossover_rate

    def _children(self, operators: Operators, parents: Mappings, count: int, crossover_rate: float) -> Mappings:
        rng = operators.rng
        one, two = (parents.take(rng.integers(len(parents), size=-(-count // 2))) for _ in range(2))
        children = operators.crossover(one, two, crossover_rate).take(slice(count))
        if self.inject:
            fresh = min(max(round(self.inject * count), 1), count)
            children.put(np.arange(count - fresh, count), operators.random(fresh))
        operators.mutate_order(children, self.mutate_order)
        operators.mutate_parallelism(children, self.mutate_parallelism)
        operators.mutate_level(children, self.mutate_level)
        operators.mutate_tile(children, self.mutate_tile)
        operators.mutate_rest(children, self.mutate_rest)
        return children


def ranking(scored: Scored) -> tuple[Array, int]:
    """Rows sorted best first, and the size of the front. Designs on the front come first, then by one objective after
    the other. With one objective, the front is the single best design."""
    if scored.values is None:
        return np.argsort(scored.scores, kind="stable"), 1
    front = non_dominated(scored.values)
    return np.lexsort((*scored.values.T[::-1], ~front)), int(front.sum())
