"""Figures from rows, as described by the front matter of a page.

    [figure]                         size in inches; grow: inches per panel; columns: a number, or a column with a value
                                     for each; more of `sparsemap.plots.figure`
    [[figure.panels]]                fields of `Panel` with texts as in the page; each: a panel for every group of rows
    [[figure.panels.lines]]          fields of `Series`; each: a line for every group; points: the groups of its points,
                                     with the fields x, y and band (two of them), such as `edp.geometric`; hollow
                                     and how may be fields
    [[figure.panels.bars]]           each, label, points and y

Panels and lines with the same `each` take turns. Words along x are names of places; `dodge` moves points of different
lines apart."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import attrs

from sparsemap.plots import Figure, Panel, Series, figure

from .rows import Column, scopes

Fields = Mapping[str, Any]
Fill = Callable[[str, Fields], str]
"""A text with fields."""


def drawn(about: Fields, fields: Fields, fill: Fill) -> Figure:
    """The figure of a page with these fields."""
    about = dict(about)
    panels = [panel(one, scope, fill) for one, scope in in_turns(about.pop("panels"), fields)]
    if isinstance(columns := about.get("columns"), str):
        about["columns"] = len(set(value(columns, fields)))
    (wide, high), (more, further) = about.pop("size"), about.pop("grow", (0, 0))
    size = wide + more * len(panels), high + further * len(panels)
    return figure(panels, size, **about)


def in_turns(every: Iterable[Fields], fields: Fields) -> Iterator[tuple[Fields, Fields]]:
    """Descriptions with their groups; those of the same groups take turns."""
    for each, some in groupby(every, key=lambda one: one.get("each", "")):
        same = list(some)
        yield from ((one, scope) for scope in scopes(each, fields) for one in same)


def panel(about: Fields, fields: Fields, fill: Fill) -> Panel:
    """A panel with its lines and bars."""
    look = {key: value for key, value in about.items() if key not in ("each", "lines", "bars", "dodge")}
    look |= {key: fill(look[key], fields) for key in ("x", "y", "title") if key in look}
    look["names"] = list(dict.fromkeys(value(look["names"], fields))) if "names" in look else []
    for key, ends in look.get("limits", {}).items():  # "auto", or a field
        ends = [None if end == "auto" else number(end, fields) if isinstance(end, str) else end for end in ends]
        look["limits"] = {**look["limits"], key: ends}
    every = in_turns(about.get("lines", ()), fields)
    lines = [line(one, scope, fill, look["names"]) for one, scope in every]
    labels = list(dict.fromkeys(one.like or one.label for one in lines))
    shifts = [about.get("dodge", 0) * (place - (len(labels) - 1) / 2) for place in range(len(labels))]
    shifted = zip(lines, (shifts[labels.index(one.like or one.label)] for one in lines), strict=True)
    lines = [attrs.evolve(one, x=[place + shift for place in one.x]) if shift else one for one, shift in shifted]
    bars = {
        fill(one["label"], scope): [number(one["y"], point) for point in scopes(one["points"], scope)]
        for one, scope in in_turns(about.get("bars", ()), fields)
    }
    return Panel(series=lines, bars=bars, **look)


def line(about: Fields, fields: Fields, fill: Fill, names: Any) -> Series:
    """A line, or points."""
    look = {key: value for key, value in about.items() if key not in ("each", "points", "x", "y", "band")}
    look |= {key: fill(look[key], fields) for key in ("label", "like", "style") if key in look}
    look |= {key: value(look[key], fields).first for key in ("hollow", "how") if isinstance(look.get(key), str)}
    points = list(scopes(about["points"], fields))
    values = (about["x"], about["y"], *about.get("band", ()))
    x, y, *band = ([number(one, point, names) for point in points] for one in values)
    return Series(x=x, y=y, band=(band[0], band[1]) if band else None, **look)


def value(expression: str, fields: Fields) -> Any:
    return string.Formatter().get_field(expression, (), fields)[0]


def number(expression: str, fields: Fields, names: Any = ()) -> float:
    """The value of a field, the place of a name; NaN for infinity."""
    found = value(expression, fields)
    found = found.first if isinstance(found, Column) else found
    if isinstance(found, str):
        return names.index(found)
    return found if found is not None and math.isfinite(found) else math.nan
