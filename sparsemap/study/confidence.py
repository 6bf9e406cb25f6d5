"""How sure a mean is: ratios of paired runs over seeds, and the interval in which their geometric mean lies."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cache

import attrs

LEVEL = 0.95
"""Of the intervals."""


@attrs.frozen
class Ratio:
    """The geometric mean of ratios, above 1 where the reference is better, and its interval of 95 %."""

    mean: float
    low: float | None = None
    high: float | None = None
    """None: no problem has two runs with different seeds."""

    @property
    def noise(self) -> bool | None:
        """Whether the difference may be that of the seeds; None where that is not known."""
        return None if self.low is None or self.high is None else self.low <= 1.0 <= self.high

    @property
    def word(self) -> str:
        """`noise`, `better`, `worse`, of what is divided by the reference; `one seed` where nothing is known."""
        if self.noise is None:
            return "same" if self.mean == 1.0 else "one seed"
        return "noise" if self.noise else "better" if self.mean < 1.0 else "worse"


def ratio_of(problems: Iterable[Sequence[float]], level: float = LEVEL) -> Ratio | None:
    """The geometric mean over problems, of each the geometric mean over its seeds; None without any ratio.

    What the problems differ by is no noise: the interval comes from how the logarithms scatter between the seeds of a
    problem, which are taken to scatter alike in all of them (Student's t)."""
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
    """How many standard errors to each side hold `level` of Student's t distribution with so many degrees of freedom."""
    low, high = 0.0, 1e3
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, free) < level else (low, middle)
    return high


def _inside(t: float, free: int) -> float:
    """The probability of being within t standard errors (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(free))
    squared, term, total = math.cos(angle) ** 2, 1.0, 0.0
    for at in range(free // 2):
        total += term
        term *= squared * ((2 * at + 2) / (2 * at + 3) if free % 2 else (2 * at + 1) / (2 * at + 2))
    if free % 2:
        return 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)
    return math.sin(angle) * total
