"""The front of a search as a figure, `front.png` and `front.svg`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem, Result
from sparsemap.errors import SearchError, need
from sparsemap.pieces.contracts import Array, Exporter, Objective, Scores, Values
from sparsemap.plots import COLOURS, plain_log, save
from sparsemap.searching.front import non_dominated, scaled

BLUE, ORANGE, GREY, INK = *COLOURS[:2], "#8A8F98", "black"
LOG_FROM = 8.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""
THOUSANDS = ("", "thousand", "million", "billion", "trillion")
ENERGIES = ("pJ", "nJ", "µJ", "mJ", "J")


@attrs.frozen(kw_only=True)
class ParetoPlot(Exporter):
    """Draws the trade-offs that a search with several objectives found; needs matplotlib."""

    type_name: ClassVar[str] = "pareto-plot"

    width: float = attrs.field(default=5.4, validator=attrs.validators.gt(0))
    """Inches; a panel has three quarters of that in height."""
    dpi: int = attrs.field(default=200, validator=attrs.validators.ge(50))
    """Resolution of the PNG."""

    def wanted(self, result: Result) -> bool:
        return bool(result.front)

    def write(self, result: Result, problem: Problem, path: Path) -> Iterator[Path]:
        if not result.front:
            raise SearchError(
                f"{result.workload} on {result.hardware}: there is no front to draw; "
                "it takes a search with several objectives, such as pareto:energy,delay"
            )
        need("matplotlib", "the plot of a front", "plots")
        yield from save(lambda: drawn(result, problem, self.width), Path(path), "front", self.dpi)


@attrs.frozen(eq=False)
class Axis:
    """One objective as drawn: its values in the unit of the label."""

    label: str
    values: Array

    @property
    def log(self) -> bool:
        return bool(self.values.min() > 0 and self.values.max() / self.values.min() >= LOG_FROM)


def drawn(result: Result, problem: Problem, width: float) -> Any:
    """A panel for each pair of objectives."""
    from matplotlib.figure import Figure

    values = np.array([best.values for best in result.front])
    axes = [axis_of(values[:, i], text) for i, text in enumerate(labels_of(problem.objective))]
    scores = np.array([best.score for best in result.front])
    side = len(axes) - 1
    panels = 1 + 0.7 * (side - 1)
    figure = Figure(figsize=(width * panels, 0.75 * width * panels))
    space = {"hspace": 0.1, "wspace": 0.2}
    grid = figure.subplots(side, side, squeeze=False, sharex="col", sharey="row", gridspec_kw=space)
    for row in range(side):
        for column in range(row + 1, side):
            grid[row][column].remove()
    for first, second in combinations(range(len(axes)), 2):
        panel = grid[second - 1][first]
        draw_panel(panel, axes[first], axes[second], scores, named_score(result), lines=side == 1)
        panel.set_xlabel(axes[first].label if second == side else "")
        panel.set_ylabel(axes[second].label if first == 0 else "")
    beside = {"loc": "upper left", "bbox_to_anchor": (1.05, 1.0)}
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncol": 3}
    grid[0][0].legend(handlelength=1.6, **(beside if side > 1 else below))
    count = f"{len(values)} design{'s' if len(values) > 1 else ''} on the front of {result.evaluations:,} evaluated"
    top = grid[0][0]
    top.set_title(f"{result.workload} on {result.hardware}", fontsize=10.5, pad=20)
    top.text(0, 1.03, f"{count}, {result.searcher}", transform=top.transAxes, fontsize=8, color=GREY, va="bottom")
    return figure


def draw_panel(panel: Any, x: Axis, y: Axis, scores: Scores, score: str, lines: bool) -> None:
    """Designs over two objectives, the front as a line, the best score and the knee."""
    points = np.stack([x.values, y.values], axis=1)
    panel.set_xscale("log" if x.log else "linear")
    panel.set_yscale("log" if y.log else "linear")
    panel.margins(0.09)
    edge = points[np.flatnonzero(non_dominated(points))]
    edge = edge[np.argsort(edge[:, 0], kind="stable")]
    dots = {"color": BLUE, "markersize": 5, "markeredgewidth": 0, "zorder": 4, "clip_on": False}
    panel.plot(points[:, 0], points[:, 1], "o", label="on the front", **dots)
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
        panel.plot(along, points[best].prod() / along, ":", **equal)
    panel.set_xlim(left, right)
    panel.set_ylim(bottom, top)
    bend = knee(points) if lines else None
    star = {"color": ORANGE, "markersize": 13, "markeredgecolor": "white", "linestyle": "", "zorder": 6}
    panel.plot(*points[best], "*", label="_" if lines else f"best {score}", clip_on=False, **star)
    if lines:
        text = f"best {score}" + (" and knee" if bend == best else "")
        put_label(panel, points[best], text, ORANGE, (22, 22))
    if bend is not None and bend != best:
        panel.plot(*points[bend], "o", markersize=9, markerfacecolor="none", markeredgecolor=INK, zorder=5)
        put_label(panel, points[bend], "knee", INK, (22, 44))
    for axis, scale in ((panel.xaxis, x), (panel.yaxis, y)):
        if scale.log:
            plain_log(axis)


def knee(values: Values) -> int | None:
    """The row of a front (n, 2) that lies furthest below the line between its ends; None if no row does."""
    if len(values) < 3:
        return None
    points = scaled(values)
    span = np.ptp(points, axis=0)
    if not span.all():
        return None
    below = 1.0 - ((points - points.min(axis=0)) / span).sum(axis=1)
    row = int(np.argmax(below))
    return row if below[row] > 0 else None


def put_label(panel: Any, point: Array, text: str, colour: str, offset: tuple[int, int]) -> None:
    """A text to the upper right of a point, where a front leaves room; to the upper left near the right edge."""
    along = panel.transAxes.inverted().transform(panel.transData.transform(point))
    aside = -1 if along[0] > 0.75 else 1
    rise = -1 if along[1] > 0.75 else 1
    panel.annotate(
        text,
        point,
        xytext=(aside * offset[0], rise * offset[1]),
        textcoords="offset points",
        ha="left" if aside > 0 else "right",
        va="center",
        color=colour,
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 5},
        zorder=7,
    )


def labels_of(objective: Objective) -> list[str]:
    """What the values are, the descriptions of the objectives, or else their names."""
    parts = getattr(objective, "objectives", ())
    texts = [part.description if len(part.names) == 1 and part.description else "" for part in parts]
    return [text or name for text, name in zip(texts, objective.names, strict=True)] if parts else list(objective.names)


def axis_of(values: Array, text: str) -> Axis:
    """Values in a unit that gives short numbers: `energy, pJ` becomes "Energy (µJ)" or what fits."""
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
    return Axis(f"{name} ({shown})" if shown else name, values / 1000.0**steps)


def named_score(result: Result) -> str:
    """EDP, if that is what the score is."""
    return "EDP" if all(np.isclose(best.score, best.edp, rtol=1e-12) for best in result.front) else "score"
