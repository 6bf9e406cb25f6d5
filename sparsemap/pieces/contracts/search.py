"""Searchers and their operators."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np

from .base import Genomes, Piece, Scores, Values

if TYPE_CHECKING:
    from ...problem.space import Space
    from ...searching.driver import Budget


@attrs.frozen
class Scored:
    """Genomes (n, G) int64 with their scores (n,), lower is better, invalid = infinity."""

    genomes: Genomes
    scores: Scores
    values: Values | None = None
    """(n, M) float64, what each of several objectives says, invalid = infinity; None where there is one."""

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: Any) -> Scored:
        return Scored(self.genomes[rows], self.scores[rows], None if self.values is None else self.values[rows])

    def best(self, count: int) -> Scored:
        """The best `count`, sorted; ties keep their order, so that a run can be repeated."""
        return self.take(np.argsort(self.scores, kind="stable")[:count])

    @staticmethod
    def join(parts: Sequence[Scored]) -> Scored:
        values = [p.values for p in parts if p.values is not None]
        return Scored(
            np.concatenate([p.genomes for p in parts]),
            np.concatenate([p.scores for p in parts]),
            np.concatenate(values) if len(values) == len(parts) else None,
        )


Proposals = Generator[Any, Scored, Any]
"""Yields genomes (n, G) int64, or `Decoded` ones, receives them scored. The driver counts every row; it may cut the last
batch short."""


@attrs.frozen
class Context:
    """What operators may know."""

    space: Space
    """The genes: `low` and `high` (G,), `names`, `slices` by segment."""
    rng: np.random.Generator
    """Their only source of random numbers."""
    progress: float = 0.0
    """Share of the budget spent, 0..1."""
    notes: Mapping[str, Any] = attrs.field(factory=dict)
    """What the searcher found out before, by name, such as the `sensitivity` (G,) of the genes after a calibration.
    A note may be missing; operators must work without it."""


@attrs.frozen(kw_only=True)
class Init(Piece):
    """The first population of a search. Searchers call operators through `boundary`, which names those that fail."""

    kind: ClassVar[str] = "init"

    def fill(self, size: int, context: Context) -> Proposals:
        """A generator that proposes designs and returns the first population, about `size`, as `Scored`."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Selection(Piece):
    """Who mates, and who survives."""

    kind: ClassVar[str] = "selection"

    def pick(self, parents: Scored, count: int, context: Context) -> Genomes:
        """Mating pairs, shape (count, 2, G)."""
        raise NotImplementedError

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        """The next population, at most `size`, the best first. There may be no parents yet."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Crossover(Piece):
    """How two parents make a child."""

    kind: ClassVar[str] = "crossover"

    def cross(self, pairs: Genomes, context: Context) -> Genomes:
        """(n, 2, G) -> (n, G); the input is not changed."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Mutation(Piece):
    """How a child differs from what it inherits."""

    kind: ClassVar[str] = "mutation"

    def mutate(self, genomes: Genomes, context: Context) -> Genomes:
        """(n, G) -> (n, G), within the bounds of the space; the input is not changed."""
        raise NotImplementedError

    def parts(self, space: Space) -> Sequence[tuple[Mutation, float]]:
        """The mutations that get shares of their own in a search that adapts shares, and how large these are at first,
        relative to each other. By default a mutation is one part of weight 1."""
        return [(self, 1.0)]


@attrs.frozen(kw_only=True)
class Searcher(Piece):
    kind: ClassVar[str] = "searcher"
    takes_migrants: ClassVar[bool] = False
    """Whether it builds the next population from the `Scored` designs it receives, so that migrants can be mixed in."""

    @property
    def hears_all(self) -> bool:
        """Whether its first batch comes back with all designs that the search starts from; otherwise the best of these take
        the place of its worst half at most."""
        return False

    @property
    def proves(self) -> float | None:
        """A factor: the search ends by itself only when no design of a class that its best one leaves within the factor of
        the class's bound is untried (`Proof`). None: it does not set out to prove anything."""
        return None

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        """Straight-line code that yields genomes and receives them scored, until the driver closes it."""
        raise NotImplementedError
