"""Shared by all pages: numbers as text, groups, convergence curves and the series of a figure."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import attrs
import numpy as np

from sparsemap import plots
from sparsemap.files import grouped
from sparsemap.pieces.contracts.base import Array
from sparsemap.plots import Report as Report
from sparsemap.plots import Series

from .runs import StudyRun, typical_edp

UJ = 1e6
"""pJ per uJ: the map-space study prints cycles * uJ."""


def number(value: float) -> str:
    """Three significant digits, as in the paper's table; a dash for infinity and NaN."""
    return f"{value:.2e}".replace("e+", "e") if math.isfinite(value) else "-"


def times_exact(value: float) -> str:
    """A ratio near 1."""
    return f"{value:.3f}x" if math.isfinite(value) else "-"


def effort(runs: Sequence[StudyRun]) -> str:
    """Budget and repetitions of searches: 2,000 designs, 3 seeds."""
    return f"{runs[0].result['budget']:,} designs, {counted(len({run.seed for run in runs}), 'seed')}"


def counted(count: int, what: str) -> str:
    """1 seed, 3 seeds."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def page(module: str, name: str, study: Any = None, **fields: Any) -> str:
    """`sparsemap.plots.page`, for a study with the fields `study` and `seeds`."""
    about = {"study": study, "seeds": counted(len(study.seeds), "seed")} if study else {}
    return plots.page(module, name, **about | fields)


def by(items: Iterable[Any], *names: str) -> dict[Any, list[Any]]:
    """Objects or tables by the value of an attribute or key, by tuples of values for several names."""
    items = list(items)
    return grouped(items, (itemgetter if items and isinstance(items[0], dict) else attrgetter)(*names))


def edps_of(runs: Iterable[StudyRun], *names: str) -> dict[Any, dict[str, float]]:
    """Typical EDPs by the values of some attributes, and by searcher."""
    places = by(runs, *names).items()
    return {place: {one: typical_edp(same) for one, same in by(found, "searcher").items()} for place, found in places}


@attrs.frozen(eq=False)
class Curve:
    """Scores over evaluations; NaN while half of the searches have no valid design."""

    label: str
    evaluations: Array
    low: Array
    middle: Array
    high: Array

    def at(self, evaluations: float) -> float:
        return float(self.middle[np.searchsorted(self.evaluations, evaluations, side="right") - 1])


def curve(label: str, runs: Sequence[StudyRun], column: str = "best_score", unit: float = 1.0) -> Curve:
    """Median and range of several searches; a search without a valid design counts as infinite."""
    last = min(run.history["evaluations"][-1] for run in runs)
    evaluations = np.unique(np.geomspace(max(last / 200, 1), last, 200).astype(int))
    scores = np.stack([run.best_at(evaluations, column) for run in runs]) / unit
    scores = np.where(np.isnan(scores), np.inf, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the median between infinities
        middle = np.median(scores, axis=0)
    return Curve(label, evaluations, scores.min(axis=0), middle, scores.max(axis=0))


def series(curves: Sequence[Curve]) -> list[Series]:
    """Medians of curves within their ranges, for a panel."""
    found = []
    for one in curves:
        seen = np.isfinite(one.middle)
        high = np.where(np.isfinite(one.high), one.high, one.middle)
        label = one.label if seen.any() else f"{one.label}: no line, as no design was valid"
        band, steps = (one.low[seen], high[seen]), {"drawstyle": "steps-post"}
        found.append(Series(label, one.evaluations[seen], one.middle[seen], marked=False, band=band, how=steps))
    return found
