"""Charts of pages and figures: what they show as marks, and how matplotlib draws them at any width.

A mark has a `row` or a place `value`, a `part` (what is stacked or coloured), its size, and a `tip` that tells what it
stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar
from zlib import crc32

import attrs

from sparsemap.errors import SearchError
from sparsemap.plots import COLOURS, MARKERS, Axes, Axis, Figure, inline_svg, named_ticks, plain_log, subplots, tipped
from sparsemap.searching.breakdown import CHARGES, COMPUTES, WAITING
from sparsemap.spec.units import format_count

from .compare.sides import WHOLE

WIDTH = 4.4
"""Inches of a chart of a page."""
LOG_FROM = 8.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""
LETTER = 0.075
"""Inches of a letter, about."""
LONGEST = 30
"""Letters of a name at an axis."""
GREY = "#8A8F98"


@attrs.frozen
class Mark:
    """A bar, a point, or a corner of a line."""

    value: float
    part: str = ""
    row: str = ""
    at: float = 0.0
    """Height over `value`, of points and lines."""
    tip: str = ""


@attrs.frozen(eq=False)
class Chart:
    """Marks, and how they are drawn on so many inches."""

    block: ClassVar[str] = "chart"
    marks: Sequence[Mark]
    draw: Callable[[float], Figure]
    title: str = ""

    @property
    def svg(self) -> str:
        """For a page, whose colours it takes."""
        return inline_svg(lambda: self.draw(WIDTH))


COMPUTE = 4
"""The place of the colour of compute units."""
OF_MEANING = {COMPUTES: COMPUTE, CHARGES: 6, WAITING: 7, "empty": 7}
"""Colours of parts that look alike in all charts."""


def colour(parts: Sequence[str], part: str) -> Any:
    """By what the part means, or by its place among the parts; paler from the ninth on."""
    turn, place = divmod(OF_MEANING.get(part, parts.index(part)), len(COLOURS))
    return (COLOURS[place], 0.5**turn)


def with_units(levels: Sequence[str], units: Sequence[str]) -> list[str]:
    """Levels from the outermost inwards and the compute units, whose place is the same whatever the number of levels."""
    gap = [""] * (COMPUTE - len(levels))
    fifth, further = levels[COMPUTE : COMPUTE + 1], levels[COMPUTE + 1 :]
    return [*levels[:COMPUTE], *gap, *(units or [""]), *(fifth or [""]), WHOLE, "", *further]


def with_charges(parts: Sequence[str], charges: Collection[str]) -> list[str]:
    """The parts, and charges at places of paler colours that their names say, unless these are taken, whatever else is
    called so."""
    pale = len(COLOURS)
    found = ["" if part in charges else part for part in parts] + [""] * (2 * pale - len(parts))
    for name in sorted(charges):
        place = pale + crc32(name.encode()) % (pale - 1)  # the last is that of what waits
        found = [*found, *[""] * pale]
        found[next(i for i in range(place, len(found)) if not found[i])] = name
    return found


def bars(
    marks: Sequence[Mark], axis: str, ends: Mapping[str, str], parts: Sequence[str] = ("",), limit: float = 0.0,
    title: str = "",
) -> Chart:  # fmt: skip
    """Horizontal bars in the order of the rows, stacked by part; `ends` has a text at the end of each bar, and `limit`
    is where a line across them stands."""
    rows = list(dict.fromkeys(mark.row for mark in marks))
    if not rows:
        raise SearchError("there is nothing to draw: no layer has a design")
    totals = {row: math.fsum(mark.value for mark in marks if mark.row == row) for row in rows}

    def draw(width: float) -> Figure:
        step = 0.27 if len(rows) < 20 else 0.19
        figure, axes = subplots(1, 1, (width, 0.75 + step * len(rows)))
        left = dict.fromkeys(rows, 0.0)
        for mark in sorted(marks, key=lambda mark: parts.index(mark.part)):
            if mark.value:
                y = rows.index(mark.row)
                bar = axes.barh(y, mark.value, left=left[mark.row], color=colour(parts, mark.part), height=0.7)
                tipped(bar[0], [mark.tip])
                left[mark.row] += mark.value
        for row in filter(ends.get, rows):  # a row that was never searched has no bar
            where = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(ends[row], (max(totals[row], limit), rows.index(row)), **where)
        if limit:
            axes.axvline(limit, color="black", linestyle="--", linewidth=0.9)
        room = max(width - LETTER * max(map(len, map(_short, rows)), default=0) - 0.4, 1.0)
        shares = {row: min(LETTER * (len(ends.get(row, "")) + 1) / room, 0.8) for row in rows}
        axes.set_xlim(0, max(max(totals[row], limit) / (1 - shares[row]) for row in rows) * 1.02 or 1.0)
        axes.set_ylim(len(rows) - 0.45, -0.55)
        named_ticks(axes.yaxis, [_short(row) for row in rows])
        _counts(axes.xaxis)
        axes.set_xlabel(axis)
        shown = {m.part for m in marks if m.value and m.part != m.row}  # others are named at the axis
        legend(figure, axes, [part for part in parts if part and part in shown], parts)
        return figure

    return Chart(marks, draw, title)


def convergence(scores: Sequence[Mark], shares: Sequence[Mark], axis: str, line: tuple[float, str] | None) -> Chart:
    """Scores as steps over designs, with a level across and its name, and below them shares in per cent."""

    def draw(width: float) -> Figure:
        ratios = {"height_ratios": [2.4, 1]}
        figure, (top, below) = subplots(2, 1, (width, 0.25 * width + 2.1), sharex=True, gridspec_kw=ratios)
        for axes, marks, one in ((top, scores, COLOURS[0]), (below, shares, COLOURS[2])):
            xs, heights = [m.value for m in marks], [m.at for m in marks]
            axes.step(xs, heights, where="post", color=one)
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
    """A roof for each part, by the words a cycle in `widths`, and its points below, which may have `sizes`."""
    reach = [*(m.value for m in points), *(peak / words for words in widths.values())]
    low, high = min(reach, default=1.0) / 3, max(reach, default=1.0) * 3

    def draw(width: float) -> Figure:
        figure, axes = subplots(1, 1, (width, 0.55 * width + 0.55))
        for at, (part, words) in enumerate(widths.items()):
            one, line = COLOURS[at % len(COLOURS)], [low, peak / words, high]
            axes.plot(line, [min(x * words, peak) for x in line], color=one, linewidth=1.2, label=part)
            some = [m for m in points if m.part == part]
            look: Any = {"s": sizes or 42, "color": one, "marker": MARKERS[at % len(MARKERS)], "zorder": 4}
            dots(axes, some, alpha=0.7 if sizes else 1.0, **look)
        lowest = min([low * min(widths.values(), default=1.0), *(m.at for m in points)]) / 2
        highest = max([peak, *(m.at for m in points)]) * 2.5  # what skips is above the roof
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(lowest, highest), xlabel=x, ylabel=y)
        axes.annotate(f"at most {peak:,.0f}", (high / 1.1, peak * 1.15), fontsize="small", ha="right")
        for each in (axes.xaxis, axes.yaxis):
            least, most = each.get_view_interval()
            plain_log(each, (1, 2, 5) if most < 100 * least else (1,))
        if len(widths) > 1:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=2 if width > 4 else 1)
        return figure

    return Chart(points, draw, "roofline")


def strips(marks: Sequence[Mark], axis: str, parts: Sequence[str], title: str = "") -> Chart:
    """Points of `value` in a line per row, by part; 1 has a line across. `parts` has those of other charts as well."""
    rows = list(dict.fromkeys(mark.row for mark in marks))
    shown = [part for part in parts if any(mark.part == part for mark in marks)]

    def draw(width: float) -> Figure:
        figure, axes = subplots(1, 1, (width, 0.8 + (0.24 if len(rows) < 20 else 0.17) * len(rows)))
        axes.axvline(1.0, color="black", linestyle="--", linewidth=0.9)
        for part in shown:
            some = [mark for mark in marks if mark.part == part]
            marker = MARKERS[parts.index(part) % len(MARKERS)]
            dots = axes.scatter(
                [m.value for m in some], [rows.index(m.row) for m in some], s=26, marker=marker,
                color=colour(parts, part), label=part, linewidths=0,
            )  # fmt: skip
            tipped(dots, [m.tip for m in some])
        scale(axes.xaxis, [1.0, *(mark.value for mark in marks)])
        axes.margins(x=0.06)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        named_ticks(axes.yaxis, [_short(row) for row in rows])
        axes.grid(visible=True)
        axes.set_xlabel(axis)
        if len(shown) > 1:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=4, handletextpad=0.3)
        return figure

    return Chart(marks, draw, title)


def dots(axes: Axes, marks: Sequence[Mark], **look: Any) -> None:
    """Points at `value` and `at`, with what they stand for."""
    tipped(axes.scatter([m.value for m in marks], [m.at for m in marks], **look), [m.tip for m in marks])


def scale(axis: Any, values: Iterable[float], log_from: float = LOG_FROM) -> None:
    """Logarithmic if the values differ by more than `log_from`."""
    known = [value for value in values if math.isfinite(value)]
    if known and min(known) > 0 and max(known) > log_from * min(known):
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        few = max(known) > 1e3 * min(known)
        if max(known) < 1e4:
            plain_log(axis, (1,) if few else (1, 2, 5))
    else:
        _counts(axis)


def _counts(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(lambda value, _: f"{value:.4g}" if not 1e4 <= abs(value) < 1e9 else format_count(value))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}…{name[-8:]}"


def legend(figure: Figure, axes: Axes, shown: Sequence[str], parts: Sequence[str]) -> None:
    """A legend of colours, above."""
    from matplotlib.patches import Patch

    if shown:
        patches = [Patch(color=colour(parts, part), label=part) for part in shown]
        columns = 5 if sum(map(len, shown[:5])) < 40 else 3
        order = [i for first in range(min(columns, len(shown))) for i in range(first, len(shown), columns)]
        handles = [patches[i] for i in order]  # matplotlib fills columns, readers read lines
        figure.legend(handles=handles, loc="outside upper left", ncols=columns, handlelength=1, columnspacing=1.1)
