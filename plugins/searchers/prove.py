"""A search ending with a proof: another searcher, then every design of the classes not ruled out by its best design.

No design is below the bound of its class. So once the best score is within a factor of the bounds of all classes,
nothing can be better by more than this factor. If some classes stay below, with few enough designs for the remaining
budget, all of their designs are tried, except for classes ruled out by a better design meanwhile."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.errors import SearchError
from sparsemap.pieces.contracts import Array, Proposals, Scored, Searcher
from sparsemap.problem.designs import Designs

from .baselines.exhaustive import Enumeration

FIRST = 500
"""Designs evaluated by the other searcher before any class is enumerated."""
PROBES = 2048
"""Random paths down the tree of designs for estimating the number of designs in some classes."""
MOST = 1e7
"""Largest number of designs of a space for enumerating classes: the tree is walked down to all tiles."""


@attrs.frozen(kw_only=True)
class Prove(Searcher):
    """Ends when the best design is proved to be within a factor of the optimum, or when the budget is spent."""

    type_name: ClassVar[str] = "prove"
    takes_migrants: ClassVar[bool] = True

    searcher: Searcher
    """The searcher used before, and if no class can be enumerated, by name or as a table."""
    within: float = attrs.field(validator=attrs.validators.ge(1.0))
    """The factor: with 1.02, no design scores below the best score over 1.02."""

    @property
    def proves(self) -> float | None:
        return self.within

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        if space.classes is None:
            raise SearchError(
                f"searcher '{self.name or self.type_name}': there is nothing to prove with, since the cost model or the "
                "objective knows no bounds of classes of designs; expected a cost model without quirks, one objective that "
                "grows with energy and cycles, and no scenarios"
            )
        run = _Proving(space, self.within)
        few = run.few(rng)
        asked = np.inf
        while run.open.any():
            inner = self.searcher.search(space, budget, rng)
            try:
                batch = next(inner)
                while run.open.any():
                    scored: Scored = yield batch
                    run.receive(scored)
                    if few and budget.spent >= FIRST and run.open.sum() <= asked / 2:
                        asked = run.open.sum()
                        if run.designs(rng) <= budget.left:
                            break
                    batch = inner.send(scored)
            except StopIteration:
                few = True
            finally:
                inner.close()
            if few and run.open.any():
                for genomes in Enumeration(space, keep=run.keep, reads=run.reads).genomes():
                    left = genomes[run.keep(space.decode(genomes))]
                    if len(left):
                        scored = yield left
                        run.receive(scored)
                return


class _Proving:
    """The best score so far, and the classes possibly holding a design better by the factor."""

    def __init__(self, space: Space, within: float) -> None:
        assert space.classes is not None
        self.space, self.within, self.classes = space, within, space.classes
        self.reads = space.classes.known.reads
        self.best = np.inf

    @property
    def open(self) -> Array:
        """(N + 1,) bool: open classes."""
        return self.classes.unproved(self.best, self.within)

    def receive(self, scored: Scored) -> None:
        self.best = min(self.best, scored.scores.min(initial=np.inf))

    def keep(self, designs: Designs) -> Array:
        """(B,) bool: whether a design belongs to an open class."""
        found: Array = self.open[self.classes.of(designs)]
        return found

    def few(self, rng: np.random.Generator) -> bool:
        """Whether the space is small enough to enumerate some of its classes."""
        size = self.space.log10_size
        return size <= np.log10(MOST) or (size < 30 and Enumeration(self.space).count(rng) <= MOST)

    def designs(self, rng: np.random.Generator) -> float:
        """Estimated number of designs in the open classes."""
        return Enumeration(self.space, keep=self.keep, reads=self.reads).count(rng, PROBES)
