"""Figures from rows, as described by the front matter of a page.

    [figure]                    size in inches; grow: inches per panel; columns: a number, or a column with a value for
                                each; across: entries of the legend in a line; title: of the legend; more of `subplots`
    [[figure.panels]]           each: a panel for every group of rows; title, x, y; log: "x", "y" or "xy"; plain: steps
                                of plain numbers on a logarithmic axis; names along an axis, turned by degrees; levels:
                                lines across; limits: more of `Axes.set`, with fields and "auto"; flat: bars lie
    [[figure.panels.lines]]     each: a line for every group; points: the groups of its points, with x, y and a band
                                around it; style, marked, hollow; how: more of `Axes.plot`; like: the label of the line
                                with the same colour and marker
    [[figure.panels.bars]]      each, label, points, y; ends: the format of numbers at the bars

Texts have fields as in the page; x, y and band are fields, such as `edp.geometric`; hollow and how may be. Panels and
lines of equal groups take turns. Words along x are places of names; `dodge` moves points of different lines apart."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from sparsemap.plots import COLOURS, MARKERS, Axes, Figure, named_ticks, plain_log, subplots

from .rows import Column, scopes

Fields = Mapping[str, Any]
Fill = Callable[[str, Fields], str]
"""A text with fields."""
Line = dict[str, Any]
"""Texts, and points."""


def drawn(about: Fields, fields: Fields, fill: Fill) -> Figure:
    """The figure of a page with these fields."""
    more = {"columns": 0, "grow": (0, 0), "across": 4, "title": None, **about}
    panels = list(in_turns(more.pop("panels"), fields))
    columns, across, title = (more.pop(key) for key in ("columns", "across", "title"))
    columns = len(set(value(columns, fields))) if isinstance(columns, str) else columns or len(panels)
    size = [side + each * len(panels) for side, each in zip(more.pop("size"), more.pop("grow"), strict=True)]
    found, grid = subplots(-(-len(panels) // columns), columns, (size[0], size[1]), squeeze=False, **more)
    names = [list(dict.fromkeys(value(one["names"], scope))) if "names" in one else [] for one, scope in panels]
    lines = [
        [line(own, inner, fill, places) for own, inner in in_turns(one.get("lines", ()), scope)]
        for (one, scope), places in zip(panels, names, strict=True)
    ]
    labels = list(dict.fromkeys(own["like"] for some in lines for own in some))
    handles: dict[str, Any] = {}
    for axes, (one, scope), places, own in zip(grid.flat, panels, names, lines, strict=True):
        draw_lines(axes, own, labels, one.get("dodge", 0))
        draw_bars(axes, one, scope, fill)
        look(axes, one, scope, places, fill)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if len(handles) > 1:
        found.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=across, title=title)
    return found


def in_turns(every: Iterable[Fields], fields: Fields) -> Iterator[tuple[Fields, Fields]]:
    """Descriptions with their groups; those of the same groups take turns."""
    for each, some in groupby(every, key=lambda one: one.get("each", "")):
        same = list(some)
        yield from ((one, scope) for scope in scopes(each, fields) for one in same)


def look(axes: Axes, about: Fields, fields: Fields, names: Sequence[str], fill: Fill) -> None:
    """Titles, scales, ticks and limits of a panel."""
    for level in about.get("levels", ()):
        axes.axhline(level, color="#444444", linewidth=0.8)
    title, x, y = (fill(about.get(key, ""), fields) for key in ("title", "x", "y"))
    axes.set(title=title, xlabel=x, ylabel=y, **{f"{name}scale": "log" for name in about.get("log", "")})
    if names:
        right = {"rotation": about["turned"], "ha": "right"} if "turned" in about else {}
        named_ticks(axes.yaxis if about.get("flat") else axes.xaxis, names, **right)
    for name, steps in about.get("plain", {}).items():
        plain_log(axes.xaxis if name == "x" else axes.yaxis, steps)
    for key, ends in about.get("limits", {}).items():
        ends = [None if end == "auto" else number(end, fields) if isinstance(end, str) else end for end in ends]
        axes.set(**{key: ends})


def line(about: Fields, fields: Fields, fill: Fill, names: Sequence[str]) -> Line:
    """A line, or points."""
    found = {"style": "-", "marked": True, "hollow": False, "how": {}, "like": about["label"], **about}
    found |= {key: fill(found[key], fields) for key in ("label", "like", "style")}
    found |= {key: value(found[key], fields).first for key in ("hollow", "how") if isinstance(found[key], str)}
    points = list(scopes(about["points"], fields))
    columns = (about["x"], about["y"], *about.get("band", ()))
    x, y, *band = ([number(one, point, names) for point in points] for one in columns)
    return {**found, "x": np.array(x), "y": y, "band": band}


def draw_lines(axes: Axes, lines: Iterable[Line], labels: Sequence[str], dodge: float) -> None:
    """Lines with a colour and a marker for each label."""
    lines = list(lines)
    own = list(dict.fromkeys(one["like"] for one in lines))
    for one in lines:
        place, x = labels.index(one["like"]), one["x"] + dodge * (own.index(one["like"]) - (len(own) - 1) / 2)
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        if one["band"]:
            step = one["how"].get("drawstyle", "")[6:] or None
            low, high = one["band"]
            axes.fill_between(x, low, high, color=colour, alpha=0.14, linewidth=0, step=step)
        face = {"markerfacecolor": "white"} if one["hollow"] else {}
        marks = {"color": colour, "marker": marker if one["marked"] else "", "linestyle": one["style"], **face}
        axes.plot(x, one["y"], **{**marks, "label": one["label"], **one["how"]})


def draw_bars(axes: Axes, about: Fields, fields: Fields, fill: Fill) -> None:
    """Bars beside each other, a colour for each label."""
    every = list(in_turns(about.get("bars", ()), fields))
    wide = 0.8 / max(len(every), 1)
    for place, (one, scope) in enumerate(every):
        values = [number(one["y"], point) for point in scopes(one["points"], scope)]
        at = np.arange(len(values)) + (place - (len(every) - 1) / 2) * wide
        draw = axes.barh if about.get("flat") else axes.bar
        bars = draw(at, values, 0.92 * wide, color=COLOURS[place], label=fill(one["label"], scope))
        if "ends" in one:
            axes.bar_label(bars, fmt=one["ends"], padding=2, fontsize=7.5)
    if about.get("flat"):
        axes.invert_yaxis()


def value(expression: str, fields: Fields) -> Any:
    return string.Formatter().get_field(expression, (), fields)[0]


def number(expression: str, fields: Fields, names: Sequence[str] = ()) -> float:
    """The value of a field, the place of a name; NaN for infinity."""
    found = value(expression, fields)
    found = found.first if isinstance(found, Column) else found
    if isinstance(found, str):
        return names.index(found)
    return found if found is not None and math.isfinite(found) else math.nan
