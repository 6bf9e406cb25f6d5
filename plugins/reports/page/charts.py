"""Charts of a page, as Vega-Lite specs that vl-convert draws: SVG whose colours the page decides, and whose marks say
what they stand for. Rows of data have `row`, `value`, `part` (what is stacked or coloured) and `tip`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sparsemap.plots import COLOURS

from ..figures import LOG_FROM
from .content import Chart

WIDTH = 420
LEFT = 52
"""Pixels left of an axis, so that charts below each other are in line."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
CONFIG = {
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 150, "titlePadding": 6,
        "labelSeparation": 4,
    },
    "legend": {"orient": "top", "title": None, "labelFontSize": 11, "symbolSize": 90, "columns": 4, "offset": 6},
    "bar": {"binSpacing": 0},
}  # fmt: skip
VALUE, AT = ({"field": field, "type": "quantitative"} for field in ("value", "at"))
PART, TIP = {"field": "part", "type": "nominal"}, {"field": "tip"}
STEPS: Any = {"interpolate": "step-after", "color": COLOURS[0], "aria": False}
Rows = Sequence[Mapping[str, Any]]
LABELS = "format(datum.value, abs(datum.value) < 1e4 ? '.3~r' : abs(datum.value) < 1e15 ? '.3~s' : '.3~e')"
"""How the numbers at an axis look, as an expression of Vega."""
FEW = "indexof([1, 2, 5], round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))) < 0 ? '' : "
"""What comes before it on a logarithmic axis, of which 1, 2, 5, 10, ... have labels."""


def mark(row: str, part: str, value: float, tip: str) -> dict[str, Any]:
    """A row of data."""
    return {"row": row, "part": part, "value": value, "tip": tip}


def chart(spec: Mapping[str, Any], title: str = "") -> Chart:
    """The drawing of a spec, as wide as all others."""
    import vl_convert

    whole = {"width": WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}, "config": CONFIG, **spec}
    return Chart(vl_convert.vegalite_to_svg(json.dumps(whole, allow_nan=False)), title)


def _axis(field: str, title: str, scale: Mapping[str, Any], **axis: Any) -> dict[str, Any]:
    text = FEW + LABELS if scale.get("type") == "log" else LABELS
    how = {"title": title, "grid": True, "labelExpr": text, "tickCount": 5, **axis}
    return {"field": field, "type": "quantitative", "scale": {"zero": False, **scale}, "axis": how}


def _log(values: Sequence[float]) -> dict[str, Any]:
    """The scale of an axis, logarithmic if values differ by more than `LOG_FROM`."""
    return {"type": "log", "nice": False} if min(values) > 0 and max(values) > LOG_FROM * min(values) else {}


def _colour(parts: Sequence[str], shown: Sequence[str] | None = None) -> dict[str, Any]:
    """A colour for each part, whether it is `shown` or not; the legend has those that are."""
    known = {part: COLOURS[i % len(COLOURS)] for i, part in enumerate(parts) if shown is None or part in shown}
    scale = {"domain": list(known), "range": list(known.values())}
    return PART | {"scale": scale}


def _layer(rows: Rows, mark: str, encoding: Mapping[str, Any], **how: Any) -> dict[str, Any]:
    """Marks of one kind, one for each row."""
    return {"data": {"values": list(rows)}, "mark": {"type": mark, **how}, "encoding": encoding}


def bars(
    rows: Rows, axis: str, ends: Mapping[str, str], parts: Sequence[str] = (), limit: float = 0.0, title: str = ""
) -> Chart:
    """Horizontal bars in the order of the rows, stacked by part; `ends` has a text at the end of each bar, and `limit`
    is where a line across them stands."""
    shown = [part for part in parts if any(row["part"] == part and row["value"] for row in rows)]
    data = [{**row, "at": list(parts).index(row["part"]) if parts else 0} for row in rows if row["value"]]
    order = list(dict.fromkeys(row["row"] for row in rows))
    totals = {name: sum(row["value"] for row in rows if row["row"] == name) for name in order}
    most = max([*totals.values(), limit]) or 1.0
    room = 1.0 + 0.02 * (max(map(len, ends.values()), default=0) + 2)
    scale = {"domain": [0, most * room], "nice": False}
    x = _axis("value", axis, scale, labelExpr="format(datum.value, ',~r')", tickCount=4) | {"stack": "zero"}
    y = {"field": "row", "type": "nominal", "sort": order, "title": None, "scale": {"domain": order}}
    colour = _colour(parts, shown) if parts else {"value": COLOURS[0]}
    bar = {"x": x, "y": y, "description": TIP, "order": {"field": "at"}, "color": colour}
    texts = [{"row": name, "value": totals[name], "text": text} for name, text in ends.items()]
    text = {"x": VALUE, "y": y, "text": {"field": "text"}}
    layers = [
        _layer(data, "bar", bar, height={"band": 0.72}),
        _layer(texts, "text", text, align="left", dx=4, fontSize=11, aria=False),
    ]
    if limit:
        layers.append(_layer([{"value": limit}], "rule", {"x": VALUE}, strokeDash=[4, 3]))
    return chart({"height": {"step": 26 if len(order) < 20 else 17}, "layer": layers}, title)


def steps(rows: Rows, x: str, y: str, line: float | None, height: int, low_at_zero: bool = False) -> Chart:
    """A line of steps over `value`, the height of each in `at`; `line` is a level drawn across."""
    values = [row["at"] for row in rows] + ([line] if line else [])
    scale = {"domain": [0, 100]} if low_at_zero else {**_log(values), "padding": 5}
    axes = {
        "x": {**VALUE, "title": x, "axis": {"grid": False, "tickCount": 5}},
        "y": _axis("at", y, scale, minExtent=LEFT, maxExtent=LEFT, tickCount=4),
    }
    layers = [
        _layer(rows, "line", axes, **STEPS),
        _layer(rows, "point", {"x": VALUE, "y": AT, "description": TIP}, filled=True, opacity=0.01, size=90),
    ]
    if line:
        layers.append(_layer([{"at": line}], "rule", {"y": AT}, strokeDash=[5, 3], color=COLOURS[1]))
    return chart({"height": height, "layer": layers})


def roofs(lines: Rows, points: Rows, x: str, y: str) -> Chart:
    """Roofs as lines through (`value`, `at`) by part, and the design below them as points."""
    parts = list(dict.fromkeys(row["part"] for row in points))
    how = {
        "x": _axis("value", x, {"type": "log", "nice": False}, grid=False),
        "y": _axis("at", y, {"type": "log"}, minExtent=LEFT, grid=False),
        "color": _colour(parts) | {"legend": {"columns": 1}},
    }
    dots = _layer(points, "point", {**how, "description": TIP}, filled=True, size=110, opacity=1)
    return chart({"height": 250, "layer": [_layer(lines, "line", how, aria=False), dots]})


FRONT = ("on the front", "lowest score")


def front(rows: Rows, x: str, y: str) -> Chart:
    """Designs as points of (`value`, `at`) with the front as steps."""
    scales = [_log([row[key] for row in rows]) | {"padding": 12} for key in ("value", "at")]
    axes = {"x": _axis("value", x, scales[0]), "y": _axis("at", y, scales[1], minExtent=LEFT)}
    how = {**axes, "color": _colour(FRONT), "description": TIP}
    dots = _layer(rows, "point", how, filled=True, size=80, opacity=1)
    return chart({"height": 250, "layer": [_layer(rows, "line", axes, **STEPS), dots]})


def strips(rows: Rows, axis: str, parts: Sequence[str], title: str = "") -> Chart:
    """Points of `value` in a line per row, by part; 1 has a line across. `parts` has those of other charts as well."""
    order, shown = (list(dict.fromkeys(row[key] for row in rows)) for key in ("row", "part"))
    shapes = {part: SHAPES[i % len(SHAPES)] for i, part in enumerate(parts) if part in shown}
    scale = {**_log([1.0, *(row["value"] for row in rows)]), "padding": 8}
    legend = {"legend": None} if len(shown) < 2 else {}
    points = {
        "x": _axis("value", axis, scale),
        "y": {"field": "row", "type": "nominal", "sort": order, "title": None, "axis": {"grid": True}},
        "color": _colour(parts, shown) | legend,
        "shape": PART | {"scale": {"domain": list(shapes), "range": list(shapes.values())}} | legend,
        "description": TIP,
    }
    layers = [
        _layer([{"value": 1.0}], "rule", {"x": VALUE}, strokeDash=[4, 3]),
        _layer(rows, "point", points, size=45, opacity=0.85),
    ]
    return chart({"height": {"step": 20 if len(order) < 20 else 15}, "layer": layers}, title)
