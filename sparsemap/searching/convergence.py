"""Whether a larger budget would find better designs, judged by the history of a search and its proven bound.

A search has settled if its first fifth came within 1 % of its end; 500 designs tell nothing, since other sizes of the
dimensions come later (`race.py`). `benchmarks/quality.py` counts verdicts that ten times the designs refute. Agreement
of seeds is no sign: on deep hierarchies all may be stuck."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from ..files import percent
from .archive import Row
from .budget import RACED

EARLY, GAIN = 0.2, 0.01
"""Share of the designs, and largest gain in score after them, of a settled search."""
PROVED = 1.02
"""Largest gap to the bound that counts as a proof."""
FEWEST, SETTLED = 200, 2 * RACED
"""Designs below which nothing is said, and below which no search counts as settled."""
MORE = 4
"""Factor of the suggested budget."""


@attrs.frozen
class Convergence:
    """The verdict on a search: `proved`, `converged` or `improving`."""

    state: str
    gain: float
    """Score after the first fifth of the designs over the last score."""
    since: int
    """Designs after which the score was within 1 % of the last one."""
    designs: int
    gap: float | None
    """Last score over the bound."""

    @property
    def text(self) -> str:
        """The verdict in a line, with the reason."""
        if self.state == "proved":
            return f"proved: within {self.gap:.3g}x of the best design of these sizes"
        if self.state == "converged":
            return f"converged: no gain of 1 % after {self.since:,} designs"
        if self.gain < 1.0 + GAIN:
            return f"too few designs to tell; try a budget of {_round(MORE * self.designs):,}"
        first = round(EARLY * self.designs)
        found = f"{self.gain:.3g}x" if self.gain > 2.0 else percent(1.0 - 1.0 / self.gain)
        found = f"{found} in the last {self.designs - first:,} designs"
        found = found if math.isfinite(self.gain) else f"nothing valid in the first {first:,} designs"
        return f"improving: {found}; try a budget of {_round(MORE * self.designs):,}"

    def to_dict(self) -> dict[str, Any]:
        """For `result.json`."""
        return {"state": self.state, "text": self.text, "gain": self.gain if math.isfinite(self.gain) else None}


def convergence_of(history: Sequence[Row], gap: float | None) -> Convergence | None:
    """The verdict on a history by batch; None for too few designs, and without a valid design."""
    if not history or history[-1].evaluations < FEWEST or not math.isfinite(history[-1].best_score):
        return None
    designs, score = history[-1].evaluations, history[-1].best_score
    first = next(row.best_score for row in reversed(history) if row.evaluations <= EARLY * designs or row is history[0])
    since = next(row.evaluations for row in history if row.best_score <= score * (1.0 + GAIN))
    settled = since <= EARLY * designs and designs >= SETTLED
    state = "proved" if gap is not None and gap <= PROVED else "converged" if settled else "improving"
    return Convergence(state, first / score if score > 0.0 else 1.0, since, designs, gap)


def _round(designs: int) -> int:
    """Two leading digits."""
    step = 10 ** max(len(str(designs)) - 2, 0)
    return -(-designs // step) * step
