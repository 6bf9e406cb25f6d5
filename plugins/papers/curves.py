"""Convergence curves of several searches: the median over seeds, and the range between the best and the worst."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import attrs
import numpy as np

from sparsemap.panels import Series
from sparsemap.pieces.contracts.base import Array

from .runs import StudyRun


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


def curve(label: str, runs: Sequence[StudyRun], column: str = "best_score", unit: float = 1.0) -> Curve:
    """Searches of one kind as one curve; a search without a valid design counts as infinite."""
    last = min(run.history["evaluations"][-1] for run in runs)
    evaluations = np.unique(np.geomspace(max(last / 200, 1), last, 200).astype(int))
    scores = np.stack([run.best_at(evaluations, column) for run in runs]) / unit
    scores = np.where(np.isnan(scores), np.inf, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the median between infinities
        middle = np.median(scores, axis=0)
    return Curve(label, evaluations, scores.min(axis=0), middle, scores.max(axis=0))


def series(curves: Sequence[Curve]) -> list[Series]:
    """What is drawn of curves: their medians, in their ranges."""
    found = []
    for one in curves:
        seen = np.isfinite(one.middle)
        high = np.where(np.isfinite(one.high), one.high, one.middle)
        label = one.label if seen.any() else f"{one.label}: no line, as no design was valid"
        band, steps = (one.low[seen], high[seen]), {"drawstyle": "steps-post"}
        found.append(Series(label, one.evaluations[seen], one.middle[seen], marked=False, band=band, how=steps))
    return found
