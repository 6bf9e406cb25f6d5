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
    """(n, M) float64, values of several objectives, invalid = infinity; None for a single objective."""

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: Any) -> Scored:
        return Scored(self.genomes[rows], self.scores[rows], None if self.values is None else self.values[rows])

    def best(self, count: int) -> Scored:
        """The best `count`, sorted; ties keep their order, so runs are repeatable."""
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
"""Yields genomes (n, G) int64, or `Decoded` genomes, and receives the scores. The driver counts every row; it may cut
the last batch short."""


@attrs.frozen
class Context:
    """State of the search visible to operators."""

    space: Space
    """The genes: `low` and `high` (G,), `names`, `slices` by segment."""
    rng: np.random.Generator
    """The operators' only source of random numbers."""
    progress: float = 0.0
    """Share of the budget spent, 0..1."""
    notes: Mapping[str, Any] = attrs.field(factory=dict)
    """Earlier results of the searcher by name, such as the `sensitivity` (G,) of the genes after a calibration. A note
    may be missing; operators must work without it."""


@attrs.frozen(kw_only=True)
class Init(Piece):
    """The first population of a search. Searchers call operators through `boundary`, so errors name the operator."""

    kind: ClassVar[str] = "init"

    def fill(self, size: int, context: Context) -> Proposals:
        """A generator that proposes designs and returns the first population, about `size`, as `Scored`."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Selection(Piece):
    """Choice of mating pairs and of survivors."""

    kind: ClassVar[str] = "selection"

    def pick(self, parents: Scored, count: int, context: Context) -> Genomes:
        """Mating pairs, shape (count, 2, G)."""
        raise NotImplementedError

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        """The next population, at most `size`, the best first. `parents` may be empty."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Crossover(Piece):
    """Combination of two parents into a child."""

    kind: ClassVar[str] = "crossover"

    def cross(self, pairs: Genomes, context: Context) -> Genomes:
        """(n, 2, G) -> (n, G); the input is not changed."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Mutation(Piece):
    """Random change of a child's genes."""

    kind: ClassVar[str] = "mutation"

    def mutate(self, genomes: Genomes, context: Context) -> Genomes:
        """(n, G) -> (n, G), within the bounds of the space; the input is not changed."""
        raise NotImplementedError

    def parts(self, space: Space) -> Sequence[tuple[Mutation, float]]:
        """Mutations with their initial weights, relative to each other. A search with adaptive shares gives each part a
        share. By default a mutation is one part of weight 1."""
        return [(self, 1.0)]


@attrs.frozen(kw_only=True)
class Searcher(Piece):
    kind: ClassVar[str] = "searcher"
    takes_migrants: ClassVar[bool] = False
    """Whether the next population is built from the received `Scored` designs, so migrants can be mixed in."""

    nested: ClassVar[bool] = False
    """Whether a search with a larger budget begins with the designs of a smaller one, so that several searches can go
    on in turns (`searching/race.py`)."""

    @property
    def hears_all(self) -> bool:
        """Whether the result of the first batch includes all starting designs. Otherwise the best of the starting
        designs replace at most the worst half of the batch."""
        return False

    @property
    def proves(self) -> float | None:
        """Proof factor (`Proof`): the search ends by itself only when every class of designs with bound * factor below
        the best score has been tried in full. None: no proof intended."""
        return None

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        """Generator of the search: yields genomes and receives the scored designs, until the driver closes it."""
        raise NotImplementedError
