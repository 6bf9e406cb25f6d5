"""Charts of pages and figures: marks, and the axes, colours and scales of their drawings by matplotlib.

A mark has a `row` or a place `value`, a `part` (stacked or coloured), a size, and a `tip` for readers who point at it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar
from zlib import crc32

import attrs

from sparsemap.errors import SearchError
from sparsemap.files import percent
from sparsemap.plots import COLOURS, MARKERS, Axes, Axis, Figure, inline_svg, named_ticks, plain_log, subplots, tipped
from sparsemap.searching.breakdown import CHARGES, COMPUTES, STALLS
from sparsemap.spec.units import format_count

from .compare.sides import WHOLE

WIDTH = 4.4
"""Inches of a chart on a page."""
LOG_FROM = 8.0
"""Ratio of the largest to the smallest value of a logarithmic axis, at least."""
LETTER = 0.075
"""Inches of a letter, about."""
LONGEST = 30
"""Letters of a name at an axis."""
STEPS = 12
"""Most bars of a waterfall."""
MANY = 20
"""Rows from which a chart is denser."""
GREY = "#8A8F98"
COMPUTE = 4
"""Index of the colour of compute units."""
OF_MEANING = {COMPUTES: COMPUTE, CHARGES: 6, STALLS: 7, "empty": 7, "not busy": 7}
"""Indices of colours alike in all charts."""


@attrs.frozen
class Mark:
    """A bar, a point, or a corner of a line."""

    value: float
    part: str = ""
    row: str = ""
    at: float = 0.0
    """Height over `value` of points and lines."""
    tip: str = ""


@attrs.frozen(eq=False)
class Chart:
    """Marks, and their drawing at a width in inches."""

    block: ClassVar[str] = "chart"
    marks: Sequence[Mark]
    draw: Callable[[float], Figure]
    title: str = ""

    @property
    def svg(self) -> str:
        """SVG in the colours of a page."""
        return inline_svg(lambda: self.draw(WIDTH))


# ------------------------------------------------------------------------------------------------------------- colours


def colour(parts: Sequence[str], part: str) -> Any:
    """The colour of a part by its meaning or its index, paler from the ninth on."""
    turn, place = divmod(OF_MEANING.get(part, parts.index(part)), len(COLOURS))
    return (COLOURS[place], 0.5**turn)


def with_units(levels: Sequence[str], units: Sequence[str]) -> list[str]:
    """Levels from the outermost inwards and the compute units, whose index does not depend on the number of levels."""
    gap = [""] * (COMPUTE - len(levels))
    fifth, further = levels[COMPUTE : COMPUTE + 1], levels[COMPUTE + 1 :]
    return [*levels[:COMPUTE], *gap, *(units or [""]), *(fifth or [""]), WHOLE, "", *further]


def with_charges(parts: Sequence[str], charges: Collection[str]) -> list[str]:
    """Parts, and charges at free indices of paler colours by a hash of their names."""
    pale = len(COLOURS)
    found = ["" if part in charges else part for part in parts] + [""] * (2 * pale - len(parts))
    for name in sorted(charges):
        place = pale + crc32(name.encode()) % (pale - 1)  # the last is that of what waits
        found = [*found, *[""] * pale]
        found[next(i for i in range(place, len(found)) if not found[i])] = name
    return found


# ---------------------------------------------------------------------------------------------------------------- axes


def row_axes(
    width: float, rows: Sequence[str], axis: str, step: float = 0.27, base: float = 0.75, edge: float = 0.45
) -> tuple[Figure, Axes]:
    """A figure with named rows from the top, `step` inches each."""
    figure, axes = subplots(1, 1, (width, base + step * len(rows)))
    axes.set_ylim(len(rows) - edge, edge - 1)
    named_ticks(axes.yaxis, rows)
    axes.set_xlabel(axis)
    return figure, axes


def dots(axes: Axes, marks: Sequence[Mark], **look: Any) -> None:
    """Points at `value` and `at`, with tips."""
    tipped(axes.scatter([m.value for m in marks], [m.at for m in marks], **look), [m.tip for m in marks])


def scale(axis: Any, values: Iterable[float], log_from: float = LOG_FROM) -> None:
    """A logarithmic axis for values that differ by more than `log_from`, else a linear one."""
    known = [value for value in values if math.isfinite(value)]
    if known and min(known) > 0 and max(known) > log_from * min(known):
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        if max(known) < 1e4:
            plain_log(axis, (1,) if max(known) > 1e3 * min(known) else (1, 2, 5))
    else:
        _counts(axis)


def _counts(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(lambda value, _: f"{value:.4g}" if not 1e4 <= abs(value) < 1e9 else format_count(value))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}…{name[-8:]}"


def columns_of(names: Sequence[str], width: float) -> int:
    """Columns of a legend in so many inches, five at most."""
    wide = [sum(max(map(len, names[i::n])) + 4.5 for i in range(n)) for n in range(1, min(5, len(names)) + 1)]
    return max([n for n, letters in enumerate(wide, 1) if letters * LETTER <= width], default=1)


def legend(figure: Figure, shown: Sequence[str], parts: Sequence[str]) -> None:
    """A legend of colours, above."""
    from matplotlib.patches import Patch

    if shown:
        patches = [Patch(color=colour(parts, part), label=part) for part in shown]
        columns = columns_of(shown, figure.get_figwidth())
        order = [i for first in range(min(columns, len(shown))) for i in range(first, len(shown), columns)]
        handles = [patches[i] for i in order]  # matplotlib fills columns, readers read lines
        figure.legend(handles=handles, loc="outside upper left", ncols=columns, handlelength=1, columnspacing=1.1)


def labels(figure: Figure, axes: Axes, columns: int = 2, **how: Any) -> None:
    """A legend of all labels, above."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=columns, **how)


# -------------------------------------------------------------------------------------------------------------- charts


def bars(
    marks: Sequence[Mark], axis: str, ends: Mapping[str, str], parts: Sequence[str] = ("",), limit: float = 0.0,
    title: str = "",
) -> Chart:  # fmt: skip
    """Horizontal bars in the order of the rows, stacked by part, with texts at their `ends`, and a line at the `limit`."""
    rows = list(dict.fromkeys(mark.row for mark in marks))
    if not rows:
        raise SearchError("there is nothing to draw: no layer has a design")
    totals = {row: math.fsum(mark.value for mark in marks if mark.row == row) for row in rows}

    def draw(width: float) -> Figure:
        there = {m.part for m in marks if m.value and m.part != m.row}  # others are named at the axis
        shown = [part for part in parts if part and part in there]
        lines = math.ceil(len(shown) / columns_of(shown, width))
        step, base = 0.27 if len(rows) < MANY else 0.19, 0.75 + 0.18 * max(0, lines - 1)
        figure, axes = row_axes(width, [*map(_short, rows)], axis, step, base)
        left = dict.fromkeys(rows, 0.0)
        for mark in sorted(marks, key=lambda mark: parts.index(mark.part)):
            if mark.value:
                y = rows.index(mark.row)
                bar = axes.barh(y, mark.value, left=left[mark.row], color=colour(parts, mark.part), height=0.7)
                tipped(bar[0], [mark.tip])
                left[mark.row] += mark.value
        for row in filter(ends.get, rows):  # a row that was never searched has no bar
            where: Any = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(ends[row], (max(totals[row], limit), rows.index(row)), **where)
        if limit:
            axes.axvline(limit, color="black", linestyle="--", linewidth=0.9)
        room = max(width - LETTER * max(map(len, map(_short, rows)), default=0) - 0.4, 1.0)
        shares = {row: min(LETTER * (len(ends.get(row, "")) + 1) / room, 0.8) for row in rows}
        axes.set_xlim(0, max(max(totals[row], limit) / (1 - shares[row]) for row in rows) * 1.02 or 1.0)
        _counts(axes.xaxis)
        legend(figure, shown, parts)
        return figure

    return Chart(marks, draw, title)


def convergence(scores: Sequence[Mark], shares: Sequence[Mark], axis: str, line: tuple[float, str] | None) -> Chart:
    """Scores as steps over designs with a named level across, and shares in per cent below."""

    def draw(width: float) -> Figure:
        ratios = {"height_ratios": [2.4, 1]}
        figure, (top, below) = subplots(2, 1, (width, 0.25 * width + 2.1), sharex=True, gridspec_kw=ratios)
        for axes, marks, one in ((top, scores, COLOURS[0]), (below, shares, COLOURS[2])):
            axes.step([m.value for m in marks], [m.at for m in marks], where="post", color=one)
            dots(axes, marks, s=40, color=one, alpha=0.01)
        if line and scores:
            top.axhline(line[0], color=COLOURS[1], linestyle="--", label=line[1])
            top.legend(loc="best")
        scale(top.yaxis, [*(m.at for m in scores), *([line[0]] if line else [])])
        _counts(below.xaxis)
        below.set_ylim(0, 105)
        top.set_ylabel(axis)
        below.set(xlabel="designs", ylabel="valid, %")
        return figure

    return Chart([*scores, *shares], draw)


def roofs(
    points: Sequence[Mark], peak: float, widths: Mapping[str, float], x: str, y: str, sizes: Sequence[float] = ()
) -> Chart:
    """A roofline: a roof per part by its words a cycle (`widths`), with points of optional `sizes`."""
    reach = [*(m.value for m in points), *(peak / words for words in widths.values())]
    low, high = min(reach, default=1.0) / 3, max(reach, default=1.0) * 3

    def draw(width: float) -> Figure:
        columns = 2 if width > 4 else 1
        above = 0.18 * (math.ceil(len(widths) / columns) - 1) if len(widths) > 1 else 0.0
        figure, axes = subplots(1, 1, (width, 0.55 * width + 0.55 + above))
        for at, (part, words) in enumerate(widths.items()):
            one, line = COLOURS[at % len(COLOURS)], [low, peak / words, high]
            dashed = words in list(widths.values())[:at]  # over the equal roof of another level
            look: Any = {"color": one, "linewidth": 1.2, "linestyle": "--" if dashed else "-"}
            axes.plot(line, [min(x * words, peak) for x in line], label=part, **look)
            look = {"s": sizes or 42, "color": one, "marker": MARKERS[at % len(MARKERS)], "zorder": 4}
            dots(axes, [m for m in points if m.part == part], alpha=0.7 if sizes else 1.0, **look)
        lowest = min([low * min(widths.values(), default=1.0), *(m.at for m in points)]) / 2
        highest = max([peak, *(m.at for m in points)]) * 2.5  # what skips is above the roof
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(lowest, highest), xlabel=x, ylabel=y)
        axes.annotate(f"at most {peak:,.0f}", (high / 1.1, peak * 1.15), fontsize="small", ha="right")
        for each in (axes.xaxis, axes.yaxis):
            least, most = each.get_view_interval()
            plain_log(each, (1, 2, 5) if most < 100 * least else (1,))
        if len(widths) > 1:
            labels(figure, axes, columns)
        return figure

    return Chart(points, draw, "roofline")


def waterfall(shares: Mapping[str, float], title: str) -> Chart:
    """Signed shares of a difference, each bar from the end of the one above: from nothing to all of it. Shares below the
    first `STEPS` make one bar."""
    first, rest = dict(list(shares.items())[:STEPS]), math.fsum(list(shares.values())[STEPS:])
    parts = first | ({f"{len(shares) - STEPS} more": rest} if len(shares) > STEPS else {})
    ends = [100 * end for end in accumulate(parts.values())]
    starts = [0.0, *ends[:-1]]
    marks = [Mark(100 * value, row=name, tip=f"{name}\n{percent(value, 1)}") for name, value in parts.items()]

    def draw(width: float) -> Figure:
        figure, axes = row_axes(width, [*map(_short, parts)], "share of the difference, %")
        for y, (mark, start) in enumerate(zip(marks, starts, strict=True)):
            one = COLOURS[0] if mark.value >= 0 else COLOURS[1]
            bar = axes.barh(y, mark.value, left=start, color=one, height=0.7)
            tipped(bar[0], [mark.tip])
            where: Any = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "fontsize": "small"}
            axes.annotate(percent(mark.value / 100), (max(start, start + mark.value), y), **where)
            if y:
                axes.plot([start] * 2, [y - 1, y], color=GREY, linewidth=0.8)
        for at in (0, 100):
            axes.axvline(at, color="black", linestyle="--", linewidth=0.9)
        axes.set_xlim(min(0.0, *ends) - 4, max(100.0, *ends) + 16)
        return figure

    return Chart(marks, draw, title)


def strips(marks: Sequence[Mark], axis: str, parts: Sequence[str], title: str = "") -> Chart:
    """Points at `value` in their rows, by part, with a line at 1; `parts` has those of other charts as well."""
    rows = list(dict.fromkeys(mark.row for mark in marks))
    shown = [part for part in parts if any(mark.part == part for mark in marks)]

    def draw(width: float) -> Figure:
        figure, axes = row_axes(width, [*map(_short, rows)], axis, 0.24 if len(rows) < MANY else 0.17, 0.8, 0.4)
        axes.axvline(1.0, color="black", linestyle="--", linewidth=0.9)
        for part in shown:
            some = [attrs.evolve(mark, at=rows.index(mark.row)) for mark in marks if mark.part == part]
            marker = MARKERS[parts.index(part) % len(MARKERS)]
            dots(axes, some, s=26, marker=marker, color=colour(parts, part), label=part, linewidths=0)
        scale(axes.xaxis, [1.0, *(mark.value for mark in marks)])
        axes.margins(x=0.06)
        axes.grid(visible=True)
        if len(shown) > 1:
            labels(figure, axes, 4, handletextpad=0.3)
        return figure

    return Chart(marks, draw, title)
