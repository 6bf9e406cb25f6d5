"""Searchers and their operators."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np

from .base import Array, Piece

if TYPE_CHECKING:
    from ...problem.space import Space
    from ...searching.driver import Budget


@attrs.frozen
class Scored:
    """Genomes (n, G) int64 with their scores (n,), lower is better, invalid = infinity."""

    genomes: Array
    scores: Array
    values: Array | None = None
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


Proposals = Generator[Array, Scored, Any]
"""Yields genomes (n, G), receives them scored. The driver counts every row; it may cut the last batch short."""


@attrs.frozen
class Context:
    """What operators may know: the gene space, sensitivity (G,) or None, progress g/G of the paper in 0..1, the rng."""

    space: Space
    rng: np.random.Generator
    progress: float = 0.0
    sensitivity: Array | None = None
    high: Array | None = None
    """(G,) bool, the high-sensitivity genes (Eq. 4); None: not calibrated."""


@attrs.frozen(kw_only=True)
class Init(Piece):
    kind: ClassVar[str] = "init"
    default_type: ClassVar[str] = "uniform"

    def fill(self, space: Space, size: int, calibration: Any, rng: np.random.Generator) -> Proposals:
        """A generator that proposes designs and returns the first population as `Scored`."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Selection(Piece):
    kind: ClassVar[str] = "selection"

    def pick(self, parents: Scored, count: int, context: Context) -> Array:
        """Mating pairs, shape (count, 2, G)."""
        raise NotImplementedError

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        """The next population."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Crossover(Piece):
    kind: ClassVar[str] = "crossover"

    def cross(self, pairs: Array, context: Context) -> Array:
        """(n, 2, G) -> (n, G)."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Mutation(Piece):
    kind: ClassVar[str] = "mutation"

    def mutate(self, genomes: Array, context: Context) -> Array:
        """(n, G) -> (n, G), within the bounds of the space; the input is not changed."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Searcher(Piece):
    kind: ClassVar[str] = "searcher"
    takes_migrants: ClassVar[bool] = False
    """Whether the next population comes from the `Scored` designs received, so that others may stand among them."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        """Straight-line code that yields genomes and receives them scored, until the driver closes it."""
        raise NotImplementedError
