"""A population that does not mix with others."""

from __future__ import annotations

from typing import Literal

import attrs
import numpy as np

from sparsemap.pieces.boundary import survivors
from sparsemap.pieces.contracts import Scored, Selection


@attrs.define(eq=False)
class Deme:
    """The best designs of a population, sorted, and how its progress goes."""

    size: int
    patience: int
    """Stalled generations before a sweep; twice as many, with a sweep, mean convergence."""
    selection: Selection
    parents: Scored
    stalled: int = 0
    """Generations in a row without a better design."""
    swept: bool = False
    """Whether the neighbourhood of the best design has been proposed."""

    @property
    def valid(self) -> bool:
        """Whether it has a valid design."""
        return len(self.parents) > 0 and bool(np.isfinite(self.parents.scores[0]))

    @property
    def converged(self) -> bool:
        return self.valid and self.swept and self.stalled >= 2 * self.patience

    @property
    def proposes(self) -> Literal["sample", "sweep", "children"]:
        """What it should propose next."""
        if not self.valid:
            return "sample"
        return "sweep" if self.stalled >= self.patience and not self.swept else "children"

    def receive(self, scored: Scored) -> None:
        """Takes in the designs that it proposed, or those of other demes."""
        self.stalled += 1
        if not len(scored):
            return
        before = self.parents.scores[:1]
        self.parents = survivors(self.selection, self.parents, scored, self.size)
        if not len(before) or self.parents.scores[0] < before[0]:
            self.stalled, self.swept = 0, False
