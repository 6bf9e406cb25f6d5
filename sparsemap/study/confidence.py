"""Geometric means of ratios of paired runs over seeds, with intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cache

import attrs

LEVEL = 0.95
"""Confidence of the intervals."""


@attrs.frozen
class Ratio:
    """A geometric mean of ratios, above 1 for a better reference, and its interval."""

    mean: float
    low: float | None = None
    high: float | None = None
    """None without two seeds of any problem."""

    @property
    def noise(self) -> bool | None:
        """True if the interval contains 1; None without an interval."""
        return None if self.low is None or self.high is None else self.low <= 1.0 <= self.high

    @property
    def word(self) -> str:
        """`noise`, `better`, `worse`, `same`, or `one seed` without an interval."""
        if self.noise is None:
            return "same" if self.mean == 1.0 else "one seed"
        return "noise" if self.noise else "better" if self.mean < 1.0 else "worse"


def ratio_of(problems: Iterable[Sequence[float]], level: float = LEVEL) -> Ratio | None:
    """The geometric mean over problems of geometric means over seeds; None without ratios.

    The interval follows from the variance of logarithms between seeds, assumed equal for all problems (Student's t)."""
    logs = [[math.log(ratio) for ratio in ratios] for ratios in problems if ratios]
    if not logs:
        return None
    means = [statistics.fmean(found) for found in logs]
    mean = statistics.fmean(means)
    free = sum(len(found) - 1 for found in logs)
    if not free:
        return Ratio(math.exp(mean))
    squares = math.fsum((x - m) ** 2 for found, m in zip(logs, means, strict=True) for x in found)
    error = math.sqrt(squares / free * math.fsum(1 / len(found) for found in logs)) / len(logs)
    wide = quantile(free, level) * error
    return Ratio(math.exp(mean), math.exp(mean - wide), math.exp(mean + wide))


@cache
def quantile(free: int, level: float = LEVEL) -> float:
    """Standard errors to each side that hold `level` of Student's t distribution with `free` degrees of freedom."""
    low, high = 0.0, 1e3
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, free) < level else (low, middle)
    return high


def _inside(t: float, free: int) -> float:
    """Probability within t standard errors (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(free))
    squared, term, total = math.cos(angle) ** 2, 1.0, 0.0
    for at in range(free // 2):
        total += term
        term *= squared * ((2 * at + 2) / (2 * at + 3) if free % 2 else (2 * at + 1) / (2 * at + 2))
    if free % 2:
        return 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)
    return math.sin(angle) * total
