"""Response figures of a study: how a cost follows an axis of numbers, such as a capacity or a density."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparsemap.errors import SearchError, unknown
from sparsemap.files import times
from sparsemap.plots import MARKERS, Figure, subplots
from sparsemap.spec.units import CAPACITY_BITS
from sparsemap.study.cells import axes_in
from sparsemap.study.comparison import NAMED, compare, compared_axes
from sparsemap.study.confidence import Ratio
from sparsemap.study.effects import MOST, effects_of

from .charts import LOG_FROM, Chart, Mark, colour, dots, labels, scale

ONE = Ratio(1.0)
"""Of the value that all others are divided by."""


def numbers_of(values: Sequence[str]) -> dict[str, float]:
    """Values of an axis as numbers, ascending; empty where one has none, or units differ beyond capacities."""
    parts = [re.fullmatch(r"([0-9.]+(?:e[+-]?\d+)?)[- ]?(.*)", str(value)) for value in values]
    units = {part[2] for part in parts if part}
    if not all(parts) or not (len(units) == 1 or units <= CAPACITY_BITS.keys()):
        return {}
    pairs = zip(values, parts, strict=True)
    known = {value: float(part[1]) * CAPACITY_BITS.get(part[2], 1.0) for value, part in pairs if part}
    return dict(sorted(known.items(), key=lambda pair: pair[1])) if len({*known.values()}) == len(values) else {}


def responses(rows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """A chart for each axis of numbers: mean cost over that of the least value, with intervals of 95 %; a line for each
    value of the other axis with the largest interaction, if that is no noise."""
    columns = compared_axes(axes_in(rows[0]))
    values = {key: list(dict.fromkeys(row[key] for row in rows if key in row)) for key in columns}
    effects, found = effects_of(rows), list[Chart]()
    for axis, some in values.items():
        if len(some) < 2 or not (sizes := numbers_of(some)):
            continue
        pairs = [
            x for x in effects if x.pair and axis in x.axes and x.ratio.low and not x.ratio.noise and x.size > MOST
        ]
        other = next((name for name in pairs[0].axes if name != axis), "") if pairs else ""
        parts = list(map(str, numbers_of(values[other]) or values[other])) if other else [""]
        found.append(_response(rows, axis, sizes, other, parts))
    return found


def response_of(rows: Sequence[Mapping[str, Any]], axis: str = "") -> Chart:
    """The chart of an axis; without a name, the first one. SearchError for no such axis."""
    known = {chart.title: chart for chart in responses(rows)}
    if not known:
        raise SearchError("no axis of the study has numbers, of which a response is drawn")
    if axis and axis not in known:
        raise SearchError(unknown("axis of numbers", axis, known))
    return known[axis or next(iter(known))]


def _response(
    rows: Sequence[Mapping[str, Any]], axis: str, sizes: Mapping[str, float], other: str, parts: Sequence[str]
) -> Chart:
    first, lines, cost = next(iter(sizes)), dict[str, dict[str, Ratio]](), ""
    for part in parts:
        told = compare([row for row in rows if not other or str(row[other]) == part], first, axis)
        ratios = {row.variant: row.ratio for row in told.means[-len(told.others) :] if row.ratio}
        lines[part], cost = {first: ONE, **{value: ratios[value] for value in sizes if value in ratios}}, told.cost
    tips = {part: f", {other} {part}" if other else "" for part in lines}
    marks = [
        Mark(sizes[value], part, at=ratio.mean, tip=f"{axis} {value}{tips[part]}\n{times(ratio.mean)}")
        for part, line in lines.items()
        for value, ratio in line.items()
    ]

    def draw(width: float) -> Figure:
        figure, axes = subplots(1, 1, (width, 0.6 * width + 0.3))
        axes.axhline(1.0, color="black", linestyle="--", linewidth=0.9)
        for part, line in lines.items():
            one = colour(parts, part)
            points = [mark for mark in marks if mark.part == part]
            axes.plot([mark.value for mark in points], [mark.at for mark in points], color=one, linewidth=1.2)
            for value, ratio in line.items():
                if ratio.low and ratio.high:
                    axes.plot([sizes[value]] * 2, [ratio.low, ratio.high], color=one, linewidth=1.0, alpha=0.6)
            marker = MARKERS[parts.index(part) % len(MARKERS)]
            dots(axes, points, s=26, color=one, marker=marker, label=_spaced(part), zorder=3)
        if max(sizes.values()) > LOG_FROM / 2 * min(sizes.values()) > 0:
            axes.set_xscale("log")
        axes.set_xticks(list(sizes.values()), [*map(_spaced, sizes)])
        axes.set_xticks([], minor=True)
        axes.set(xlabel=axis, ylabel=f"{NAMED[cost]} over {_spaced(first)}")
        scale(axes.yaxis, [1.0, *(mark.at for mark in marks)])
        if other:
            labels(figure, axes, 4, title=other, handletextpad=0.3)
        return figure

    return Chart(marks, draw, axis)


def _spaced(value: str) -> str:
    """A value of a table as in its study: `64 KB` for `64-KB`."""
    return value.replace("-", " ") if re.fullmatch(r"[0-9.]+-[A-Za-z]+", value) else value
