"""Effects of the axes of a factorial study: of each value, and of pairs of values, with intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

import attrs

from ..files import grouped, times
from .cells import NAMES, axes_in
from .comparison import NAMED, OPEN, SO_FAR, compare, compared_axes, cost_of
from .confidence import Ratio, ratio_of

WORK = ("density", "dims")
"""Axes with these keys vary the work: no value is better than another."""
MOST = 0.02
"""Least distance from 1 of an interaction in the text."""


@attrs.frozen
class Effect:
    """The mean ratio of a value to the first value of its axis; of two axes, the ratio beyond both effects together."""

    axes: tuple[str, ...]
    values: tuple[str, ...]
    over: tuple[str, ...]
    """The first values, with ratio 1."""
    ratio: Ratio
    word: str
    cells: int

    @property
    def pair(self) -> bool:
        return len(self.axes) > 1

    @property
    def size(self) -> float:
        """Distance from 1 in either direction."""
        return abs(math.log(self.ratio.mean))

    def row(self) -> list[str]:
        within = _range(self.ratio.low, self.ratio.high) or "-"
        names = " x ".join(self.axes), " x ".join(self.values), " x ".join(self.over)
        return [*names, times(self.ratio.mean), within, self.word, str(self.cells)]

    def to_dict(self) -> dict[str, Any]:
        return {
            "axes": list(self.axes), "values": list(self.values), "over": list(self.over), "ratio": self.ratio.mean,
            "low": self.ratio.low, "high": self.ratio.high, "word": self.word, "cells": self.cells,
        }  # fmt: skip


HEAD = ["axis", "value", "over", "ratio", "95 %", "verdict", "cells"]


def effects_of(rows: Sequence[Mapping[str, Any]]) -> list[Effect]:
    """Effects in the table of a study with two axes or more of several values, searchers and cost models left out; largest
    first, then those of pairs."""
    if not rows:
        return []
    columns = [key for key in compared_axes(axes_in(rows[0])) if key not in ("searcher", "cost_model")]
    values = {key: list(dict.fromkeys(row[key] for row in rows if key in row)) for key in columns}
    axes = [key for key, some in values.items() if len(some) > 1]
    if len(axes) < 2:
        return []
    alone = [effect for axis in axes for effect in _alone(rows, axis, values[axis])]
    pairs = [effect for one, other in combinations(axes, 2) for effect in _pairs(rows, one, other, values)]
    return [*sorted(alone, key=lambda x: -x.size), *sorted(pairs, key=lambda x: -x.size)]


def _alone(rows: Sequence[Mapping[str, Any]], axis: str, values: Sequence[str]) -> list[Effect]:
    found = compare(rows, values[0], axis)
    means = found.means[-len(found.others) :]
    return [
        Effect((axis,), (row.variant,), (values[0],), row.ratio, found.judged(row), row.cells)
        for row in means
        if row.ratio
    ]


def _pairs(
    rows: Sequence[Mapping[str, Any]], one: str, other: str, values: Mapping[str, Sequence[str]]
) -> list[Effect]:
    cost, names = cost_of(rows, "hardware" if "hardware" in (one, other) else one), (*NAMES[:-1], *axes_in(rows[0]))
    costs = {(row[one], row[other], *_context(row, names, one, other), row["seed"]): row.get(cost) for row in rows}
    improving = {(row[one], row[other]) for row in rows if row.get("verdict") == "improving"}
    contexts = grouped(dict.fromkeys(key[2:] for key in costs), lambda key: key[:-1])
    (first, *some), (usual, *others), found = values[one], values[other], []
    for a, b in product(some, others):
        problems = []
        for keys in contexts.values():
            four = [
                [costs.get((x, y, *key)) for x, y in ((a, b), (first, usual), (a, usual), (first, b))] for key in keys
            ]
            problems.append([p * q / (r * s) for p, q, r, s in four if p and q and r and s])
        ratio = ratio_of(problems)
        if ratio is None:
            continue
        still = improving & {(a, b), (first, usual), (a, usual), (first, b)}
        word = _word(ratio, bool(still))
        found.append(Effect((one, other), (a, b), (first, usual), ratio, word, sum(map(len, problems))))
    return found


def _word(ratio: Ratio, improving: bool) -> str:
    """The word of a ratio, of searches that still improve or not."""
    return OPEN if improving and ratio.noise else ratio.word + SO_FAR * (improving and ratio.noise is False)


def _context(row: Mapping[str, Any], names: Sequence[str], *varied: str) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names if name not in varied)


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{times(low)} to {times(high)}"


def combined(rows: Sequence[Mapping[str, Any]], cost: str) -> tuple[list[str], dict[tuple[str, ...], float]]:
    """Varied axes, and by combination of their values the geometric mean over workloads and seeds, the least first; axes
    of the work itself, and combinations without all cells, are left out."""
    axes = [key for key in compared_axes(axes_in(rows[0])) if len({row.get(key) for row in rows}) > 1]
    axes = [key for key in axes if key.partition(".")[0] not in WORK]
    some = grouped((row for row in rows if row.get(cost)), lambda row: tuple(row[key] for key in axes))
    most = max(map(len, some.values()), default=0)
    means = {
        names: statistics.geometric_mean(row[cost] for row in each) for names, each in some.items() if len(each) == most
    }
    return axes, dict(sorted(means.items(), key=lambda one: one[1]))


def best_text(rows: Sequence[Mapping[str, Any]], cost: str) -> str:
    """The combination of values with the least geometric mean, and its lead over the next; empty for a single axis."""
    axes, means = combined(rows, cost)
    if len(axes) < 2 or len(means) < 2:
        return ""
    (best, least), (second, more), *_ = means.items()
    cells = sum(bool(row.get(cost)) and tuple(row[key] for key in axes) == best for row in rows)
    ratio, pair = _lead(rows, axes, (best, second), cost), (best, second)
    within = f"{_range(ratio.low, ratio.high)} at 95 %" if ratio and ratio.low is not None else ""
    improving = any(row.get("verdict") == "improving" for row in rows if tuple(row[key] for key in axes) in pair)
    sure = _word(ratio, improving).removeprefix("worse").strip() if ratio else ""
    of = ", ".join(filter(None, (within, sure, f"{cells} cells each")))
    names = (", ".join(f"{key} {name}" for key, name in zip(axes, each, strict=True)) for each in (best, second))
    return f"Best is {next(names)}; {next(names)} has {times(more / least)} its {NAMED[cost]} ({of})."


def _lead(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], pair: Sequence[tuple[str, ...]], cost: str
) -> Ratio | None:
    """Mean ratio of the second combination to the first, over workloads and seeds."""
    names = [name for name in (*NAMES[:-1], *axes_in(rows[0])) if name not in axes]
    costs = {(tuple(row[key] for key in axes), _context(row, names), row["seed"]): row.get(cost) for row in rows}
    found: dict[tuple[Any, ...], list[float]] = {}
    for values, context, seed in costs:
        one, other = (costs.get((each, context, seed)) for each in pair)
        if values == pair[0] and one and other:
            found.setdefault(context, []).append(other / one)
    return ratio_of(found.values())


def effects_text(found: Sequence[Effect], cost: str) -> str:
    """The axis with the largest effect, the other axes, and the largest interaction."""
    alone = grouped((x for x in found if not x.pair), lambda x: x.axes[0])
    largest = sorted(alone.values(), key=lambda some: -max(x.size for x in some))
    parts = []
    for effect in (min(some, key=lambda x: x.ratio.mean) for some in largest):
        (axis,), (value,), (over,) = effect.axes, effect.values, effect.over
        mean, low, high = effect.ratio.mean, effect.ratio.low, effect.ratio.high
        if mean >= 1:
            value, over, mean, low, high = over, value, 1 / mean, 1 / high if high else None, 1 / low if low else None
        sure = effect.word if effect.word in ("noise", OPEN, "one seed") else f"{_range(low, high)} at 95 %"
        sure += ", so far" * effect.word.endswith(SO_FAR)
        parts.append(f"{axis}: {value} is best, {times(mean)} of {over} ({sure})")
    pairs = [x for x in found if x.pair and x.size > MOST and x.word not in ("noise", OPEN, "one seed")]
    text = f"Effects on {NAMED[cost]}, the largest first: {'; '.join(parts)}."
    if pairs:
        one = pairs[0]
        both = " and ".join(f"{value} over {over}" for value, over in zip(one.values, one.over, strict=True))
        text += f" Together, {both} have {times(one.ratio.mean)} the product of their single effects from there."
    return text
