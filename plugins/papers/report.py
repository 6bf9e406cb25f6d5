"""What the pages share: words and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparsemap.plots import Report as Report
from sparsemap.plots import page as page

from .runs import StudyRun

UJ = 1e6
"""pJ per uJ: the map-space study prints cycles * uJ."""


def number(value: float) -> str:
    """Three significant digits, as in the paper's table; a dash for infinity and NaN."""
    return f"{value:.2e}".replace("e+", "e") if math.isfinite(value) else "-"


def times_exact(value: float) -> str:
    """A ratio near 1."""
    return f"{value:.3f}x" if math.isfinite(value) else "-"


def effort(runs: Sequence[StudyRun]) -> str:
    """What each of some searches may spend, and how often: 2,000 designs, 3 seeds."""
    return f"{runs[0].result['budget']:,} designs, {counted(len({run.seed for run in runs}), 'seed')}"


def counted(count: int, what: str) -> str:
    """1 seed, 3 seeds."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
