"""Figures of pages: panels of lines, points and bars, all drawn by one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from .plots import COLOURS, MARKERS, Axes, Figure, named_ticks, plain_log, subplots

Values = Sequence[float] | np.ndarray


@attrs.frozen(eq=False)
class Series:
    """A line, or with an empty `style` points; colour and marker by the place of its label in the figure."""

    label: str
    x: Values
    y: Values
    style: str = "-"
    marked: bool = True
    band: tuple[Values, Values] | None = None
    """A range around the line."""
    hollow: bool = False
    like: str = ""
    """The label whose colour and marker it has."""
    how: Mapping[str, Any] = {}
    """More for `Axes.plot`."""


@attrs.frozen(eq=False)
class Panel:
    """Axes with their series, or with groups of bars by label."""

    x: str = ""
    y: str = ""
    series: Sequence[Series] = ()
    bars: Mapping[str, Sequence[float]] = {}
    title: str = ""
    log: str = ""
    """`x`, `y` or `xy`."""
    plain: Mapping[str, tuple[float, ...]] = {}
    """Steps of plain numbers on a logarithmic axis, by `x` and `y`."""
    names: Sequence[str] = ()
    """Along the x axis, from 0; along the y axis for flat bars."""
    turned: float = 0
    """Degrees of these."""
    flat: bool = False
    """Bars lie."""
    ends: str = ""
    """Format of the numbers at bars; none by default."""
    levels: Sequence[float] = ()
    """Lines across."""
    limits: Mapping[str, Any] = {}
    """More for `Axes.set`."""


def figure(
    panels: Sequence[Panel],
    size: tuple[float, float],
    columns: int = 0,
    across: int = 4,
    title: str | None = None,
    **shared: Any,
) -> Figure:
    """Panels in so many columns, by default in one row; `across` entries of the legend in a line; `shared` is for
    `subplots`."""
    columns = columns or len(panels)
    found, grid = subplots(-(-len(panels) // columns), columns, size, squeeze=False, **shared)
    labels = list(dict.fromkeys(one.like or one.label for panel in panels for one in panel.series))
    handles: dict[str, Any] = {}
    for axes, panel in zip(grid.flat, panels, strict=True):
        for one in panel.series:
            place = labels.index(one.like or one.label)
            _line(axes, one, COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])
        _bars(axes, panel)
        for level in panel.levels:
            axes.axhline(level, color="#444444", linewidth=0.8)
        axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
        for name in panel.log:
            axes.set(**{f"{name}scale": "log"})
        if panel.names:
            right = {"rotation": panel.turned, "ha": "right"} if panel.turned else {}
            named_ticks(axes.yaxis if panel.flat else axes.xaxis, panel.names, **right)
        for name, steps in panel.plain.items():
            plain_log(axes.xaxis if name == "x" else axes.yaxis, steps)
        axes.set(**panel.limits)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if len(handles) > 1:
        found.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=across, title=title)
    return found


def _line(axes: Axes, one: Series, colour: str, marker: str) -> None:
    if one.band:
        axes.fill_between(
            one.x, *one.band, color=colour, alpha=0.14, linewidth=0, step=one.how.get("drawstyle", "")[6:] or None
        )
    face = {"markerfacecolor": "white"} if one.hollow else {}
    look = {"color": colour, "marker": marker if one.marked else "", "linestyle": one.style, "label": one.label}
    axes.plot(one.x, one.y, **{**look, **face, **one.how})


def _bars(axes: Axes, panel: Panel) -> None:
    """Bars beside each other, a colour for each label."""
    wide = 0.8 / max(len(panel.bars), 1)
    for place, (label, values) in enumerate(panel.bars.items()):
        at = np.arange(len(values)) + (place - (len(panel.bars) - 1) / 2) * wide
        draw = axes.barh if panel.flat else axes.bar
        drawn = draw(at, values, 0.92 * wide, color=COLOURS[place], label=label)
        if panel.ends:
            axes.bar_label(drawn, fmt=panel.ends, padding=2, fontsize=7.5)
    if panel.flat:
        axes.invert_yaxis()
