"""`sparsemap plot`: figures of a design or a search, one column of a paper wide."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from sparsemap import evaluate, load_problem
from sparsemap.errors import SearchError, listed
from sparsemap.files import percent, read_csv
from sparsemap.pieces import defaults
from sparsemap.pieces.contracts import Array, plain
from sparsemap.plots import COLOURS, MARKERS, named_ticks, subplots
from sparsemap.searching.result import HISTORY_FILE, read_result
from sparsemap.spec.units import format_count, format_energy

from .breakdown import CHARGES, COMPUTES, energies
from .loop_nest import nest_levels
from .outcome import Outcome
from .roofline import roofline_of
from .wording import einsum_text, formats_of, loop_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH = 3.5
"""Inches, one column of a two-column paper."""
LOG_FROM = 8.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""
SAMPLES = 4000
"""Random designs in a figure of the space."""


@attrs.frozen
class Source:
    """What is drawn: the evaluated design, and the folder of its search if there is one."""

    outcome: Outcome
    folder: Path | None

    @property
    def result(self) -> dict[str, Any]:
        """The table of `result.json`; empty for a design file."""
        return read_result(self.folder) if self.folder is not None else {}


def history(folder: Path) -> tuple[Array, Array, Array]:
    """For each batch the designs evaluated so far (int64), the best score (NaN before the first valid design), and the
    per cent of the batch that are valid."""
    rows = read_csv(folder / HISTORY_FILE)
    done, valid = (np.array([int(row[key]) for row in rows]) for key in ("evaluations", "valid"))
    best = np.array([float(row["best_score"] or math.nan) for row in rows])
    return done, best, np.minimum(100.0 * valid / np.maximum(np.diff(done, prepend=0), 1), 100.0)


def convergence(source: Source) -> Figure:
    """The best score against the designs evaluated, its proven bound, and the share of valid designs."""
    if source.folder is None or not (source.folder / HISTORY_FILE).exists():
        raise SearchError(f"a figure of the convergence needs the folder of a search, with {HISTORY_FILE}")
    done, best, valid = history(source.folder)
    figure, (top, below) = subplots(2, 1, (WIDTH, 3.0), sharex=True, gridspec_kw={"height_ratios": [2.4, 1]})
    top.step(done, best, where="post", color=COLOURS[0])
    top.set_yscale("log")
    unit = f", {source.outcome.design.problem.objective.unit}".rstrip(", ")
    top.set_ylabel(f"best score{unit}")
    result = source.result
    if result.get("bound"):
        label = f"proven bound in space {result.get('space', '')}"
        top.axhline(result["bound"], color=COLOURS[1], linestyle="--", label=label)
        top.legend()
    below.plot(done, valid, color=COLOURS[2])
    below.set_ylim(0, 105)
    below.set_ylabel("valid, %")
    below.set_xlabel("designs")
    return figure


def energy(source: Source) -> Figure:
    """Energy by level, stacked by tensor, and that of charges."""
    problem, rows = source.outcome.design.problem, energies(source.outcome.breakdown)
    if not rows:
        raise SearchError(f"cost model '{problem.cost_model.name}' gives no energies by level")
    figure, axes = subplots(1, 1, (WIDTH, 0.75 + 0.36 * len(rows)))
    names, spent = [tensor.name for tensor in problem.tensors], [sum(parts.values()) for _, parts in rows]
    scale, unit = energy_scale(max(spent))
    left = np.zeros(len(rows))
    for number, name in enumerate([*names, COMPUTES, CHARGES]):
        parts = np.array([parts.get(name, 0.0) for _, parts in rows]) / scale
        if parts.any():
            told = "_" if name == CHARGES else name  # its row says so
            axes.barh(range(len(rows)), parts, left=left, color=COLOURS[number], label=told, height=0.62)
        left += parts
    ends = [(pj / scale, percent(pj / source.outcome.energy_pj)) for pj in spent]
    _name_bars(axes, [name for name, _ in rows], ends, 0.13)
    axes.set_xlabel(f"energy, {unit}")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names) + 1, handlelength=1, columnspacing=1.2)
    return figure


def cycles(source: Source) -> Figure:
    """The cycles that each level and the compute units need; the slowest limits the design."""
    found = [(row.name, row.cycles) for row in source.outcome.breakdown.rows if row.cycles is not None]
    if not found:
        raise SearchError(f"cost model '{source.outcome.design.problem.cost_model.name}' gives no cycles by level")
    names, counts = zip(*found, strict=True)
    figure, axes = subplots(1, 1, (WIDTH, 0.75 + 0.32 * len(names)))
    colours = [COLOURS[1] if count == max(counts) else COLOURS[0] for count in counts]
    axes.barh(range(len(names)), counts, color=colours, height=0.62)
    _name_bars(axes, names, [(count, format_count(count)) for count in counts], 0.22)
    _few_counts(axes.xaxis)
    axes.set_xlabel("cycles")
    axes.set_title(f"limited by {source.outcome.column}", fontsize=9)
    return figure


def _name_bars(axes: Axes, names: Sequence[str], ends: Sequence[tuple[float, str]], margin: float) -> None:
    """Names of horizontal bars, the first one on top, and where each ends a text, with a margin for it."""
    for at, (value, text) in enumerate(ends):
        axes.annotate(f" {text}", (value, at), va="center", fontsize=8)
    axes.margins(x=margin)
    named_ticks(axes.yaxis, names)
    axes.invert_yaxis()


def _few_counts(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(lambda value, _: format_count(value))


def roofline(source: Source) -> Figure:
    """Computes a cycle against computes a word at each level with a bandwidth, data and metadata, skipped words aside."""
    problem, found = source.outcome.design.problem, roofline_of(source.outcome)
    if found is None:
        raise SearchError(f"cost model '{problem.cost_model.name}' gives no computes")
    if not found.points:
        raise SearchError(f"{problem.title}: no level has a bandwidth and accesses; a roofline needs one")
    figure, axes = subplots(1, 1, (WIDTH, 3.1))
    (low, high), rate, peak = found.span, found.rate, found.peak
    xs = np.geomspace(low, high, 200)
    for number, (name, x, width) in enumerate(found.points):
        colour, text = COLOURS[number % len(COLOURS)], f"{name}, {format_count(width)} words/cycle"
        axes.plot(xs, np.minimum(xs * width, peak), color=colour, linewidth=1.2, label=text)
        marker = MARKERS[number % len(MARKERS)]
        axes.plot(
            [x], [rate], marker, color=colour, markersize=6, markeredgecolor="black", markeredgewidth=0.6, zorder=4
        )
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(min(rate, peak) / 20, peak * 2.5))
    axes.set_xlabel("computes per word at the level")
    axes.set_ylabel("computes per cycle")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=7.5)
    axes.annotate(f"{peak:,.0f} {problem.compute_name}", (low * 1.15, peak * 1.15), fontsize=7.5)
    return figure


def pareto(source: Source) -> Figure:
    """The designs that no other one dominates: a panel for each objective after the first, against the first."""
    front = source.result.get("front")
    if not front:
        words = "the folder of a search with several objectives, such as pareto:energy,delay"
        raise SearchError(f"a figure of a front needs {words}")
    objective = source.outcome.design.problem.objective
    values = np.array([[row["objectives"][name] for name in objective.names] for row in front])
    best = int(np.argmin([row["score"] for row in front]))
    labels = [", ".join(filter(None, pair)) for pair in zip(objective.names, objective.units, strict=True)]
    panels = values.shape[1] - 1
    figure, grid = subplots(panels, 1, (WIDTH, 0.4 + 2.3 * panels), sharex=True, squeeze=False)
    for other, axes in enumerate(grid[:, 0], 1):
        x, y = values[:, 0], values[:, other]
        step: dict[str, Any] = {"drawstyle": "steps-post"} if panels == 1 else {"linestyle": ""}
        axes.plot(x, y, marker=MARKERS[0], color=COLOURS[0], linewidth=1.0, label="on the front", **step)
        axes.plot(x[best], y[best], "*", color=COLOURS[1], markersize=12, label="lowest score", zorder=4)
        for axis, seen in ((axes.xaxis, x), (axes.yaxis, y)):
            if seen.min() > 0 and seen.max() / seen.min() > LOG_FROM:
                axis.axes.set(**{f"{axis.axis_name}scale": "log"})
            else:
                _few_counts(axis)
        axes.set_ylabel(labels[other])
    grid[-1, 0].set_xlabel(labels[0])
    grid[0, 0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, handlelength=1)
    return figure


def space(source: Source) -> Figure:
    """Random designs by cycles and energy, with lines of equal EDP, and where the design is among them. They are repaired
    like those that a search starts with, in the space of the search, or the default one for a design file."""
    outcome, own = source.outcome, source.outcome.design.problem
    which = source.result.get("identity", {}).get("space", defaults.SPACE)
    problem = load_problem(own.workload, own.hardware, which, own.objective, own.cost_model, registry=own.registry)
    rng = np.random.default_rng(0)
    found = evaluate(problem, problem.space.repair(problem.space.guess(SAMPLES, rng), rng))
    figure, axes = subplots(1, 1, (WIDTH, 2.9))
    dots = {"color": COLOURS[0], "markersize": 2.5, "alpha": 0.4, "markeredgewidth": 0, "label": "random"}
    axes.plot(found.cycles[found.valid], found.energy_pj[found.valid], ".", **dots)
    axes.plot([outcome.cycles], [outcome.energy_pj], "*", color=COLOURS[1], markersize=12, label="this design")
    axes.set(xscale="log", yscale="log", xlabel="cycles", ylabel="energy, pJ")
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    xs = np.geomspace(low, high, 50)
    for power in range(math.ceil(math.log10(outcome.edp)), math.floor(math.log10(high * top)) + 1):
        axes.plot(xs, 10.0**power / xs, ":", color="#8A8F98", linewidth=0.8, zorder=1)
    axes.plot([], [], ":", color="#8A8F98", linewidth=0.8, label="EDP, powers of ten")
    axes.set(xlim=(low, high), ylim=(bottom, top))
    axes.set_title(f"{percent(found.valid.sum() / SAMPLES)} of {SAMPLES:,} random designs valid", fontsize=9, pad=18)
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.45, 0.985), ncols=3, handlelength=1, columnspacing=1, fontsize=7.5
    )
    axes.get_legend().legend_handles[0].set(markersize=6, alpha=1)
    return figure


def loopnest(source: Source) -> Figure:
    """The loop nest as nested boxes: a level each, with its room, what it skips or gates, and its loops."""
    design, detail = source.outcome.design, source.outcome.detail
    problem = design.problem
    missing = {"bounds", "order", "formats", "mechanisms"} - design.batch.columns.keys()
    if missing:
        raise SearchError(
            f"{problem.title}: the design has no {listed(sorted(missing))}, of which a loop nest is drawn"
        )
    from matplotlib.patches import Rectangle

    levels = nest_levels(design, detail)
    _, by_tensor, legend = formats_of(design)
    below = [*(f"{name}: {' '.join(words)}" for name, words in by_tensor.items()), *filter(None, [", ".join(legend)])]
    height = len(levels) + len(design.loops) + 1 + len(levels) * 0.35
    figure, axes = subplots(1, 1, (WIDTH, 0.21 * (height + len(below)) + 0.15))
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(height + len(below) + 0.4, -0.1))
    row = 0
    for depth, level in enumerate(levels):
        inset, colour = 0.03 * depth, COLOURS[depth % len(COLOURS)]
        size = 1 - 2 * inset, height - 0.3 * depth - (row + 0.05)
        corner = inset, row + 0.05
        axes.add_patch(Rectangle(corner, *size, facecolor="white", edgecolor=colour, linewidth=1.2))
        axes.add_patch(Rectangle(corner, *size, facecolor=colour, alpha=0.07, linewidth=0))
        x, y = inset + 0.02, row + 0.6
        axes.text(x, y, level.name, weight="bold", fontsize=8.5, va="center", color=colour)
        axes.text(x + 0.15, y, plain(level.room), fontsize=7.5, va="center", color="#444444")
        axes.text(0.985 - inset, y, level.filters or "", fontsize=7.5, va="center", ha="right", style="italic")
        texts = [(loop_text(loop), "bold" if loop.spatial else "normal") for loop in level.loops]
        if level is levels[-1]:
            texts.append((einsum_text(problem.tensors), "normal"))
        for line, (text, weight) in enumerate(texts, 1):
            points = min(8.0, 8.0 * (0.9 - 2 * x) / (0.0195 * len(text)))  # letters of 8 take 1/51 of the column
            axes.text(x + 0.03, y + line, text, fontsize=points, va="center", family="monospace", weight=weight)
        row += 1 + len(texts)
    for at, text in enumerate(below):
        axes.text(0.0, height + at + 0.7, text, fontsize=7.5, va="center")
    return figure


def energy_scale(pj: float) -> tuple[float, str]:
    """Picojoules of the unit in which an energy is told, and its name."""
    unit = format_energy(pj).split()[-1]
    return {"fJ": 1e-3, "pJ": 1.0, "nJ": 1e3, "uJ": 1e6, "mJ": 1e9, "J": 1e12}[unit], unit.replace("u", "µ")


DRAWN = (convergence, energy, cycles, loopnest, roofline, pareto, space)
KINDS: dict[str, Callable[[Source], Figure]] = {draw.__name__: draw for draw in DRAWN}
