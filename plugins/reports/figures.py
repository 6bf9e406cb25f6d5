"""`sparsemap plot`: figures of a design or a search, one column of a paper wide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import evaluate, load_problem
from sparsemap.errors import SearchError, listed
from sparsemap.files import percent
from sparsemap.pieces import defaults
from sparsemap.pieces.contracts import plain
from sparsemap.pieces.loading import load
from sparsemap.plots import COLOURS, Figure, subplots, write_figure
from sparsemap.problem import design_file
from sparsemap.searching.result import HISTORY_FILE
from sparsemap.searching.written import read_result
from sparsemap.spec.units import format_count
from sparsemap.study.comparison import compare

from .charts import COMPUTE, GREY, Chart
from .compare.shares import worth_of
from .compare.sides import TABLE, Compared, labelled, sides_of
from .design_charts import busy_chart, convergence_chart, cycles_chart, energy_charts, roofline_chart, tree_chart
from .explain_many import is_many
from .front import front_chart
from .loop_nest import nest_levels
from .network_charts import Bar, ratios_chart, stack, timeline
from .outcome import DesignOutcome
from .response import response_of
from .wording import einsum_text, formats_of, loop_text

WIDTH = 3.5
"""Inches, one column of a two-column paper."""
KIND_OF = {"timeline": "network", "ratios": "study", "response": "study"}
"""Figures of many designs only, with the kind of folder."""
SAMPLES = 4000
"""Random designs in a figure of the space."""


@attrs.frozen
class PlotSource:
    """An evaluated design, and the folder of its search."""

    outcome: DesignOutcome
    folder: Path | None

    @property
    def result(self) -> dict[str, Any]:
        """The table of `result.json`; empty for a design file."""
        return read_result(self.folder) if self.folder is not None else {}


def convergence(source: PlotSource) -> Figure:
    """Best score, proven bound, and share of valid designs over evaluated designs."""
    if source.folder is None or not (source.folder / HISTORY_FILE).exists():
        raise SearchError(f"a figure of the convergence needs the folder of a search, with {HISTORY_FILE}")
    unit = source.outcome.design.problem.objective.unit
    return convergence_chart(source.folder, source.result, [unit]).draw(WIDTH)


def cycles(source: PlotSource) -> Figure:
    """Cycles of limiting levels, of compute units, and of stalls."""
    figure = _drawn(cycles_chart, "cycles by level")(source)
    title = f"{format_count(source.outcome.cycles)} cycles, limited by {source.outcome.column}"
    figure.axes[0].set_title(title, fontsize="small", loc="right")
    return figure


def _roofline(outcome: DesignOutcome) -> Chart | None:
    chart = roofline_chart(outcome)
    if chart is not None and not chart.marks:
        title = outcome.design.problem.title
        raise SearchError(f"{title}: no level has a bandwidth and accesses; a roofline needs one")
    return chart


def _drawn(chart: Callable[[DesignOutcome], Chart | None], what: str) -> Callable[[PlotSource], Figure]:
    """The figure of a chart; `SearchError` if the cost model lacks its numbers."""

    def draw(source: PlotSource) -> Figure:
        if (found := chart(source.outcome)) is None:
            raise SearchError(f"cost model '{source.outcome.design.problem.cost_model.name}' gives no {what}")
        return found.draw(WIDTH)

    return draw


def pareto(source: PlotSource) -> Figure:
    """Nondominated designs: a panel per pair of objectives."""
    front = source.result.get("front")
    if not front:
        needs = "needs the folder of a search with several objectives, such as pareto:energy,delay"
        raise SearchError(f"a figure of a front {needs}")
    return front_chart(front, source.outcome.design.problem.objective).draw(WIDTH)


def space(source: PlotSource) -> Figure:
    """Random designs by cycles and energy, with lines of equal EDP and the design.

    Designs are guessed and repaired as at the start of a search, in the space of the search or the default space.
    """
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
        axes.plot(xs, 10.0**power / xs, ":", color=GREY, linewidth=0.8, zorder=1)
    axes.plot([], [], ":", color=GREY, linewidth=0.8, label="EDP, powers of ten")
    axes.set(xlim=(low, high), ylim=(bottom, top))
    axes.set_title(f"{percent(found.valid.sum() / SAMPLES)} of {SAMPLES:,} random designs valid", fontsize=9, pad=18)
    place: Any = {"loc": "lower center", "bbox_to_anchor": (0.45, 0.985)}
    legend = axes.legend(**place, ncols=3, handlelength=1, columnspacing=1, fontsize=7.5)
    legend.legend_handles[0].set(markersize=6, alpha=1)
    return figure


def loopnest(source: PlotSource) -> Figure:
    """The loop nest as nested boxes: a level each, with capacity in use, skips, gates and loops."""
    design, detail = source.outcome.design, source.outcome.detail
    problem = design.problem
    if missing := sorted({"bounds", "order", "formats", "mechanisms"} - design.batch.columns.keys()):
        raise SearchError(f"{problem.title}: the design has no {listed(missing)}, of which a loop nest is drawn")
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
        inset, place = 0.03 * depth, (depth + (depth >= COMPUTE)) % len(COLOURS)
        colour = COLOURS[COMPUTE if level is levels[-1] else place]
        box = (inset, row + 0.05), 1 - 2 * inset, height - 0.3 * depth - (row + 0.05)
        axes.add_patch(Rectangle(*box, facecolor="white", edgecolor=colour, linewidth=1.2))
        axes.add_patch(Rectangle(*box, facecolor=colour, alpha=0.07, linewidth=0))
        x, y = inset + 0.02, row + 0.6
        axes.text(x, y, level.name, weight="bold", fontsize=8.5, va="center", color=colour)
        room, filters = plain(level.room), level.filters or ""
        points = min(7.5, 7.5 * 56 * (0.8 - 2 * inset) / (len(room) + len(filters) + 2))  # 56 letters of 7.5 fit
        axes.text(x + 0.15, y, room, fontsize=points, va="center", color="#444444")
        axes.text(0.985 - inset, y, filters, fontsize=points, va="center", ha="right", style="italic")
        texts = [(loop_text(loop), "bold" if loop.spatial else "normal") for loop in level.loops]
        if level is levels[-1]:
            texts.append((einsum_text(problem.tensors), "normal"))
        for line, (text, weight) in enumerate(texts, 1):
            points = min(8.0, 8.0 * (0.9 - 2 * x) / (0.0195 * len(text)))  # letters of 8 take 1/51 of the column
            axes.text(x + 0.03, y + line, text, fontsize=points, va="center", family="monospace", weight=weight)
        row += 1 + len(texts)
    for at, text in enumerate(below):
        points = min(7.5, 420 / len(text))  # 56 letters of 7.5 fit
        axes.text(0.0, height + at + 0.7, text, fontsize=points, va="center")
    return figure


KINDS: dict[str, Callable[[PlotSource], Figure]] = {
    "convergence": convergence,
    "energy": _drawn(lambda outcome: next(energy_charts(outcome), None), "energies by level"),
    "cycles": cycles,
    "chip": _drawn(tree_chart, "instances in use"),
    "busy": _drawn(busy_chart, "computes"),
    "loopnest": loopnest,
    "roofline": _drawn(_roofline, "computes"),
    "pareto": pareto,
    "space": space,
}


def drawn(source: PlotSource, kind: str) -> Figure:
    return KINDS[kind](source)


def figures_in(folder: Path, kinds: Iterable[str], draw: Callable[[str], Figure]) -> list[Path]:
    """Files of all figures that a result has, by kind."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for kind in kinds:
        with suppress(SearchError):  # this result has no such figure
            write_figure(partial(draw, kind), folder / f"{kind}.png", dpi=300)
            found.append(folder / f"{kind}.png")
    return found


OF_MANY = {"energy": "energy_pj", "cycles": "seconds", "timeline": "", "ratios": "", "response": ""}
"""Figures of many designs, with the cost in bars."""


def figure_of(path: Path, kind: str, reference: str = "", by: str = "") -> Figure:
    """Bars of energy or time of layers or cells, layers over time, ratios of a study to the `reference`, or responses to
    the axis of numbers `by`."""
    if kind not in OF_MANY:
        text = f"of many designs only {listed(OF_MANY)} can be drawn, not {kind}; name the folder of one"
        raise SearchError(f"{path}: {text}")
    if kind in ("ratios", "response"):
        from .why import rows_of

        if not (path / TABLE).exists():
            raise SearchError(f"{path}: a figure of the kind {kind} needs the folder of a study")
        if kind == "response":
            return response_of(rows_of(path), by).draw(WIDTH)
        return ratios_chart(compare(rows_of(path), reference, by)).draw(WIDTH)
    sides = sides_of(path, planned=True)
    if kind == "timeline":
        if (chart := timeline(sides[0].parts)) is None:
            raise SearchError(f"{path}: no layer has a design and a clock, of which a timeline is drawn")
        return chart.draw(WIDTH)
    if len(sides) == 1 and not (path / TABLE).exists():
        bars: list[Bar] = [(part.name, [part], "") for part in sides[0].parts]
    else:
        bars = [(name, side.parts, "") for name, side in _distinct(sides).items()]
    return stack(bars, OF_MANY[kind]).draw(WIDTH)


def _distinct(sides: Sequence[Compared]) -> dict[str, Compared]:
    """Sides by distinct names; of the seeds of a cell the best."""
    worth, names = worth_of(sides), [side.folder.name.split("--") for side in sides]
    if len({len(parts) for parts in names}) > 1 or len(names[0]) < 4:  # not cells of a study
        return {side.label: side for side in labelled(sides)}
    several = [len(set(column)) > 1 for column in zip(*(parts[:-1] for parts in names), strict=True)]
    found: dict[str, Compared] = {}
    for side, parts in sorted(zip(sides, names, strict=True), key=lambda pair: pair[0].value(worth) or math.inf):
        found.setdefault(" ".join(compress(parts, several)) or parts[0], side)
    return {name: side for side in sides for name, best in found.items() if best is side}


def figures_of(
    path: Path, kind: str, out: Path, reference: str = "", by: str = "", plugin_dirs: Sequence[str] = ()
) -> list[Path]:
    """Draws a result into the file `out`, or without a kind all its figures into the folder `out`."""
    many = is_many(path)
    if many:
        draw: Any = partial(figure_of, path, reference=reference, by=by)
    elif kind and kind not in KINDS:
        raise SearchError(f"{path}: a figure of the kind {kind} needs the folder of a {KIND_OF[kind]}")
    else:
        outcome = DesignOutcome.of(design_file.load(str(path), load(plugin_dirs=plugin_dirs)))
        if not outcome.valid:
            raise SearchError(f"{path}: the design is {outcome.fault}")
        draw = partial(drawn, PlotSource(outcome, path if path.is_dir() else None))
    if not kind:
        return figures_in(out, OF_MANY if many else KINDS, draw)
    write_figure(partial(draw, kind), out, dpi=300)
    return [out]
