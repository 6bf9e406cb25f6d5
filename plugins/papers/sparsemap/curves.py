"""Convergence curves of several searches: the median over seeds, and the range between the best and the worst."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array
from sparsemap.plots import Axes

from ..runs import Run


@attrs.frozen(eq=False)
class Curve:
    """Scores over evaluations; NaN where half of the searches know no valid design yet."""

    label: str
    evaluations: Array
    low: Array
    middle: Array
    high: Array

    def at(self, evaluations: float) -> float:
        return float(self.middle[np.searchsorted(self.evaluations, evaluations, side="right") - 1])


def curve(label: str, runs: Sequence[Run], column: str = "best_score", points: int = 200) -> Curve:
    """Searches of one kind as one curve; a search without a valid design counts as infinite."""
    last = min(run.history["evaluations"][-1] for run in runs)
    evaluations = np.unique(np.geomspace(max(last / 200, 1), last, points).astype(int))
    scores = np.stack([run.best_at(evaluations, column) for run in runs])
    scores = np.where(np.isnan(scores), np.inf, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the median between infinities
        middle = np.median(scores, axis=0)
    return Curve(label, evaluations, scores.min(axis=0), middle, scores.max(axis=0))


def plot(axis: Axes, curves: Sequence[Curve], colours: Sequence[str], style: str = "-") -> None:
    for one, colour in zip(curves, colours, strict=False):
        seen = np.isfinite(one.middle)
        high = np.where(np.isfinite(one.high), one.high, one.middle)
        axis.step(one.evaluations[seen], one.middle[seen], style, where="post", color=colour, label=one.label)
        axis.fill_between(
            one.evaluations[seen], one.low[seen], high[seen], step="post", color=colour, alpha=0.16, linewidth=0
        )
