"""The front of a search: a panel for each pair of objectives, for pages, `sparsemap plot`, and as `front.png`, `front.svg`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap import Problem, Result
from sparsemap.extras import need
from sparsemap.pieces.contracts import Array, Objective, Scores, Values
from sparsemap.plots import COLOURS, Figure, save, subplots, tipped
from sparsemap.searching.front import non_dominated, scaled

from .charts import GREY, Chart, Mark, scale

BLUE, ORANGE = COLOURS[:2]
THOUSANDS = ("", "thousand", "million", "billion", "trillion")
ENERGIES = ("pJ", "nJ", "uJ", "mJ", "J")
WIDTH, DPI = 5.4, 200
"""Inches and resolution of the files beside a result."""


def write_front(result: Result, problem: Problem, folder: Path) -> list[Path]:
    """Draws the front of a search with several objectives as `front.png` and `front.svg`; needs matplotlib."""
    need("matplotlib", "the plot of a front", "plots")
    chart = front_chart(result.to_dict()["front"], problem.objective)
    designs = f"{len(result.front)} design{'s' if len(result.front) > 1 else ''}"
    count = f"{designs} on the front of {result.evaluations:,} evaluated"

    def draw() -> Figure:
        figure = chart.draw(WIDTH)
        figure.suptitle(f"{result.workload} on {result.hardware}: {count}, {result.searcher}", fontsize="medium")
        return figure

    return save(draw, folder, "front", DPI)


def front_chart(front: Sequence[Mapping[str, Any]], objective: Objective, tips: Sequence[str] = ()) -> Chart:
    """Designs of a result's `front`, with the best by score, or by EDP if equal; `tips` as many as designs."""
    columns = np.array([[row["objectives"][name] for name in objective.names] for row in front], dtype=float)
    edps, scores = (np.array([row[key] for row in front]) for key in ("edp", "score"))
    score = "EDP" if np.allclose(scores, edps, rtol=1e-12, atol=0.0) else "score"
    axes = [axis_of(columns[:, i], text) for i, text in enumerate(labels_of(objective))]
    side = len(axes) - 1
    tips = tips or [""] * len(columns)

    def draw(width: float) -> Figure:
        figure, grid = subplots(side, side, (width, 0.72 * width), squeeze=False, sharex="col", sharey="row")
        for row, column in ((r, c) for r in range(side) for c in range(r + 1, side)):
            grid[row][column].remove()
        for first, second in combinations(range(len(axes)), 2):
            panel = grid[second - 1][first]
            draw_panel(panel, axes[first][1], axes[second][1], scores, score, side == 1, tips)
            panel.set_xlabel(axes[first][0] if second == side else "")
            panel.set_ylabel(axes[second][0] if first == 0 else "")
        place: Any = {"loc": "outside lower center", "ncols": 5 if width > 5 else 2, "handlelength": 1.6}
        figure.legend(*grid[0][0].get_legend_handles_labels(), **place)
        return figure

    rows = zip(columns, tips, strict=True)
    return Chart([Mark(float(row[0]), at=float(row[-1]), tip=tip) for row, tip in rows], draw)


def draw_panel(panel: Any, x: Array, y: Array, scores: Scores, score: str, lines: bool, tips: Sequence[str]) -> None:
    """Designs over two objectives, the front as a line, the best score and the knee."""
    points = np.stack([x, y], axis=1)
    scale(panel.xaxis, x)
    scale(panel.yaxis, y)
    panel.margins(0.09)
    edge = points[np.flatnonzero(non_dominated(points))]
    edge = edge[np.argsort(edge[:, 0], kind="stable")]
    dots = panel.scatter(*points.T, s=24, color=BLUE, linewidths=0, zorder=4, clip_on=False, label="on the front")
    tipped(dots, tips)
    panel.autoscale_view()
    left, right = panel.get_xlim()
    bottom, top = panel.get_ylim()
    steps_x = np.concatenate([edge[:1, 0], edge[:, 0], [right]])
    steps_y = np.concatenate([[top], edge[:, 1], edge[-1:, 1]])
    panel.step(steps_x, steps_y, where="post", color=BLUE, linewidth=1.1, zorder=3)
    worse = {"color": BLUE, "alpha": 0.07, "linewidth": 0, "zorder": 1, "label": "dominated"}
    panel.fill_between(steps_x, steps_y, top, step="post", **worse)
    best = int(np.argmin(scores))
    if lines and score == "EDP":
        along = np.geomspace(max(left, 1e-9 * right), right, 300)
        equal = {"color": GREY, "linewidth": 1, "zorder": 2, "label": "equal EDP"}
        there = points[best].prod() / along
        inside = (there >= bottom) & (there <= top)
        panel.plot(along[inside], there[inside], ":", **equal)
    panel.set_xlim(left, right)
    panel.set_ylim(bottom, top)
    bend = knee(points) if lines else None
    star = {"color": ORANGE, "markersize": 13, "markeredgecolor": "white", "linestyle": "", "zorder": 6}
    named = f"best {score}" + " and knee" * (bend == best)
    panel.plot(*points[best], "*", label=named, clip_on=False, **star)
    if bend is not None and bend != best:
        ring = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": "black", "zorder": 5, "linestyle": ""}
        panel.plot(*points[bend], "o", label="knee", **ring)


def knee(values: Values) -> int | None:
    """Row of a front (n, 2) furthest below the line between the ends; None if no row is below."""
    if len(values) < 3:
        return None
    points = scaled(values)
    span = np.ptp(points, axis=0)
    if not span.all():
        return None
    below = 1.0 - ((points - points.min(axis=0)) / span).sum(axis=1)
    row = int(np.argmax(below))
    return row if below[row] > 0 else None


def labels_of(objective: Objective) -> list[str]:
    """Descriptions of the objectives, or their names."""
    parts = getattr(objective, "objectives", ())
    texts = [part.description if len(part.names) == 1 and part.description else "" for part in parts]
    return [text or name for text, name in zip(texts, objective.names, strict=True)] if parts else list(objective.names)


def axis_of(values: Array, text: str) -> tuple[str, Array]:
    """Label and values in a unit of short numbers: `energy, pJ` becomes "Energy (uJ)"."""
    what, comma, unit = text.rpartition(", ")
    largest = float(np.abs(values).max())
    steps = max(int(np.floor(np.log10(largest / 2) / 3)), 0) if largest > 0 else 0
    if unit == "pJ":
        steps = min(steps, len(ENERGIES) - 1)
        shown = ENERGIES[steps]
    else:
        word = THOUSANDS[steps] if steps < len(THOUSANDS) else f"$10^{{{3 * steps}}}$"
        shown = " ".join(part for part in (word, unit.replace(" * ", " · ") if comma else "") if part)
    name = what[:1].upper() + what[1:] if comma else text
    return f"{name} ({shown})" if shown else name, values / 1000.0**steps
