"""A search that ends with a proof: another searcher, then every design of the classes that its best one does not rule out.

No design of a class is below its bound. So once the best score is within a factor of the bounds of all classes, nothing can
be better by more than that. Where some classes stay below, and have few enough designs for what is left of the budget, all of
these are tried, but for classes that fall to a better design meanwhile.
"""

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
"""Designs that the other searcher has before any class is tried out."""
PROBES = 2048
"""Random ways down the tree of designs from which those of some classes are counted."""
MOST = 1e7
"""Designs of a space beyond which none of its classes is tried out: the tree is walked down to all tiles."""


@attrs.frozen(kw_only=True)
class Prove(Searcher):
    """Ends when the best design is proved to be within a factor of the optimum, or the budget is spent."""

    type_name: ClassVar[str] = "prove"
    takes_migrants: ClassVar[bool] = True

    searcher: Searcher
    """What searches before, and where nothing can be tried out: the name or the table of a searcher."""
    within: float = attrs.field(validator=attrs.validators.ge(1.0))
    """The factor: 1.02 means that no design scores less than the best one over 1.02."""

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
    """The best score so far, and the classes that may hold one that is better by the factor."""

    def __init__(self, space: Space, within: float) -> None:
        assert space.classes is not None
        self.space, self.within, self.classes = space, within, space.classes
        self.reads = space.classes.known.reads
        self.best = np.inf

    @property
    def open(self) -> Array:
        """(N + 1,) bool."""
        return self.classes.unproved(self.best, self.within)

    def receive(self, scored: Scored) -> None:
        self.best = min(self.best, scored.scores.min(initial=np.inf))

    def keep(self, designs: Designs) -> Array:
        """(B,) bool: designs of classes that are open."""
        found: Array = self.open[self.classes.of(designs)]
        return found

    def few(self, rng: np.random.Generator) -> bool:
        """Whether the space is small enough for trying out some of its classes."""
        size = self.space.log10_size
        return size <= np.log10(MOST) or (size < 30 and Enumeration(self.space).count(rng) <= MOST)

    def designs(self, rng: np.random.Generator) -> float:
        """About how many designs the open classes have."""
        return Enumeration(self.space, keep=self.keep, reads=self.reads).count(rng, PROBES)
