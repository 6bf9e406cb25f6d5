"""Rows of a page as tables: columns with their statistics, groups, and numbers as text."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from sparsemap.files import grouped, percent, times

Row = dict[str, Any]
UJ = 1e6
"""pJ per uJ: the map-space study prints cycles * uJ."""


def number(value: float) -> str:
    """Three significant digits, as in the paper's table; a dash for infinity and NaN."""
    return f"{value:.2e}".replace("e+", "e") if math.isfinite(value) else "-"


def times_exact(value: float) -> str:
    """A ratio near 1."""
    return f"{value:.3f}x" if math.isfinite(value) else "-"


def counted(count: int, what: str) -> str:
    """1 seed, 3 seeds."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


FORMATS: Mapping[str, Callable[[Any], str]] = {
    "number": number,
    "number uJ": lambda edp: number(edp / UJ),
    "times": times,
    "exact": times_exact,
    "percent": percent,
    "percent1": partial(percent, digits=1),
    "hundredths": lambda share: f"{100 * share:.1f}",
    "rounded": lambda share: f"{100 * share:.0f}",
    "seeds": partial(counted, what="seed"),
}
"""Formats of numbers in templates beside Python's."""


def arithmetic_mean(values: Iterable[float]) -> float:
    """NaN without values."""
    values = list(values)
    return math.fsum(values) / len(values) if values else math.nan


def geometric_mean(values: Iterable[float]) -> float:
    """NaN without values."""
    values = list(values)
    return statistics.geometric_mean(values) if values else math.nan


def finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def ratio(edp: float, ours: float) -> float:
    """NaN without both designs."""
    return edp / ours if math.isfinite(edp) and math.isfinite(ours) else math.nan


class Column(list[Any]):
    """The values of a column; `column[text]` are the rows with this value."""

    def __init__(self, rows: Sequence[Row], name: str) -> None:
        super().__init__(row[name] for row in rows)
        self.rows, self.name = rows, name

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return Rows(row for row in self.rows if str(row[self.name]) == key)
        return super().__getitem__(key)

    @property
    def finite(self) -> Column:
        """Without infinite values and NaN."""
        return Column([row for row in self.rows if math.isfinite(row[self.name])], self.name)

    @property
    def first(self) -> Any:
        """NaN without rows."""
        return self[0] if self else math.nan

    @property
    def size(self) -> int:
        return len(self)

    @property
    def distinct(self) -> int:
        return len(set(self))

    @property
    def top(self) -> Rows:
        """The first row with the largest value."""
        return Rows([max(self.rows, key=lambda row: row[self.name])] if self else [])

    @property
    def total(self) -> Any:
        return sum(self)

    @property
    def mean(self) -> float:
        return arithmetic_mean(self)

    @property
    def geometric(self) -> float:
        return geometric_mean(self)

    @property
    def median(self) -> float:
        return statistics.median(self) if self else math.nan

    @property
    def spread(self) -> str:
        """In per cent the mean and, of several values, the range: 96.7 (94.4 to 97.6)."""
        mean, low, high = (f"{100 * value:.1f}" for value in (self.mean, self.lowest, self.highest))
        return f"{mean} ({low} to {high})" if len(self) > 1 else mean

    @property
    def lowest(self) -> float:
        return min(self, default=math.nan)

    @property
    def highest(self) -> float:
        return max(self, default=math.nan)


class Rows(list[Row]):
    """Rows with the same columns, as attributes or by name."""

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        return Column(self, name)

    def __getitem__(self, key: Any) -> Any:
        return Column(self, key) if isinstance(key, str) else super().__getitem__(key)

    def where(self, **columns: Any) -> Rows:
        """The rows with these values."""
        return Rows(row for row in self if columns.items() <= row.items())

    def only(self, names: Sequence[str]) -> Rows:
        """The rows with these columns."""
        return Rows({name: row[name] for name in names} for row in self)

    def by(self, *names: str) -> dict[Any, Rows]:
        """Groups by the value of a column, by tuples of values for several."""
        return {key: Rows(group) for key, group in grouped(self, itemgetter(*names)).items()}


def scopes(what: str, fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """`fields` for each group of `ROWS by KEY, KEY`, for each row of `ROWS`, or as they are for an empty text: with the
    group and its columns."""
    if not what:
        yield fields
        return
    name, _, keys = what.partition(" by ")
    rows = Rows(fields[name])
    for group in rows.by(*keys.split(", ")).values() if keys else (Rows([row]) for row in rows):
        yield {**fields, **{key: Column(group, key) for key in group[0]}, name: group}
