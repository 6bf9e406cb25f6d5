"""A population that does not mix with others."""

from __future__ import annotations

from typing import Literal

import attrs
import numpy as np

from sparsemap.pieces.contracts import Scored

NOTHING = Scored(np.zeros((0, 0), dtype=np.int64), np.zeros(0))


@attrs.define(eq=False)
class Deme:
    """The best designs of a population, sorted, and how its progress goes."""

    size: int
    patience: int
    """Generations without a better design before the neighbourhood of the best is swept, and again before it has converged."""
    parents: Scored = NOTHING
    quiet: int = 0
    """Generations without a better design."""
    swept: bool = False

    @property
    def found(self) -> bool:
        """Whether it has a valid design."""
        return len(self.parents) > 0 and bool(np.isfinite(self.parents.scores[0]))

    @property
    def converged(self) -> bool:
        return self.found and self.swept and self.quiet >= 2 * self.patience

    @property
    def wants(self) -> Literal["sample", "sweep", "children"]:
        """What it should propose next."""
        if not self.found:
            return "sample"
        return "sweep" if self.quiet >= self.patience and not self.swept else "children"

    def hear(self, scored: Scored) -> None:
        if not len(scored):
            self.quiet += 1
            return
        before = self.parents.scores[0] if len(self.parents) else np.inf
        self.parents = survivors([self.parents, scored] if len(self.parents) else [scored], self.size)
        if self.parents.scores[0] < before:
            self.quiet, self.swept = 0, False
        else:
            self.quiet += 1


def survivors(parts: list[Scored], size: int) -> Scored:
    """The best, with at most two of one score: equal scores are nearly always the same design in other genes."""
    pool = Scored.join(parts)
    order = np.argsort(pool.scores, kind="stable")
    scores = pool.scores[order]
    starts = np.concatenate([[True], scores[1:] != scores[:-1]])
    place = np.arange(len(scores)) - np.maximum.accumulate(np.where(starts, np.arange(len(scores)), 0))
    kept = order[place < 2]
    if len(kept) < size:
        kept = np.concatenate([kept, order[place >= 2][: size - len(kept)]])
    return pool.take(kept[:size])
