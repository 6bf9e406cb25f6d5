"""`sparsemap plot`: figures of a design or a search, one column of a paper wide."""

from __future__ import annotations

import math
from collections.abc import Callable
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
from sparsemap.searching.breakdown import LevelCosts
from sparsemap.searching.result import HISTORY_FILE, RESULT_FILE, read_result
from sparsemap.spec.units import format_count, format_energy

from .accesses import accesses_of
from .loop_nest import loop_name, room
from .variants import Outcome
from .wording import einsum_text, mechanism_text, symbols

if TYPE_CHECKING:
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


def convergence(source: Source) -> Figure:
    """The best score against the designs evaluated, its proven bound, and the share of valid designs."""
    if source.folder is None or not (source.folder / HISTORY_FILE).exists():
        raise SearchError(f"a figure of the convergence needs the folder of a search, with {HISTORY_FILE}")
    rows = read_csv(source.folder / HISTORY_FILE)
    done, valid = (np.array([float(row[key]) for row in rows]) for key in ("evaluations", "valid"))
    best = np.array([float(row["best_score"] or math.nan) for row in rows])
    table = read_result(source.folder / RESULT_FILE)
    figure, (top, below) = subplots(2, 1, (WIDTH, 3.0), sharex=True, gridspec_kw={"height_ratios": [2.4, 1]})
    top.step(done, best, where="post", color=COLOURS[0])
    top.set_yscale("log")
    unit = f", {source.outcome.design.problem.objective.unit}".rstrip(", ")
    top.set_ylabel(f"best score{unit}")
    if table.get("bound"):
        label = f"proven bound in space {table.get('space', '')}"
        top.axhline(table["bound"], color=COLOURS[1], linestyle="--", label=label)
        top.legend()
    step = np.diff(done, prepend=0.0)
    below.plot(done, 100 * np.clip(valid / np.where(step > 0, step, 1.0), 0, 1), color=COLOURS[2])
    below.set_ylim(0, 105)
    below.set_ylabel("valid, %")
    below.set_xlabel("designs")
    return figure


def energy(source: Source) -> Figure:
    """Energy by level, stacked by tensor, and that of charges."""
    problem, rows = source.outcome.design.problem, source.outcome.breakdown.rows
    if all(row.energy_pj is None for row in rows):
        raise SearchError(f"cost model '{problem.cost_model.name}' gives no energies by level")
    if rest := source.outcome.breakdown.charges_pj:
        rows = (*rows, LevelCosts("charges", rest, {"charges": rest}, None))
    figure, axes = subplots(1, 1, (WIDTH, 0.75 + 0.36 * len(rows)))
    names = [tensor.name for tensor in problem.tensors]
    scale, unit = energy_scale(max(row.energy_pj or 0.0 for row in rows))
    for number, name in enumerate([*names, "computes", "charges"]):
        parts = [
            row.by_tensor.get(name, 0.0) if row.by_tensor else (row.energy_pj or 0.0) * (name == "computes")
            for row in rows
        ]
        left = [sum(row.by_tensor.get(other, 0.0) for other in names[:number]) / scale for row in rows]
        if any(parts):
            told = "_" if name == "charges" else name  # its row says so
            axes.barh(
                range(len(rows)), np.array(parts) / scale, left=left, color=COLOURS[number], label=told, height=0.62
            )
    total = source.outcome.energy_pj
    for at, row in enumerate(rows):
        spent = row.energy_pj or 0.0
        axes.annotate(f" {percent(spent / total)}", (spent / scale, at), va="center", fontsize=8)
    axes.margins(x=0.13)
    named_ticks(axes.yaxis, [row.name for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"energy, {unit}")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names) + 1, handlelength=1, columnspacing=1.2)
    return figure


def cycles(source: Source) -> Figure:
    """The cycles that each level and the compute units need; the slowest limits the design."""
    rows = [row for row in source.outcome.breakdown.rows if row.cycles is not None]
    if not rows:
        raise SearchError(f"cost model '{source.outcome.design.problem.cost_model.name}' gives no cycles by level")
    figure, axes = subplots(1, 1, (WIDTH, 0.75 + 0.32 * len(rows)))
    from matplotlib.ticker import MaxNLocator

    slowest = max(row.cycles or 0.0 for row in rows)
    colours = [COLOURS[1] if row.cycles == slowest else COLOURS[0] for row in rows]
    axes.barh(range(len(rows)), [row.cycles for row in rows], color=colours, height=0.62)
    for at, row in enumerate(rows):
        axes.annotate(f" {format_count(row.cycles or 0.0)}", (row.cycles or 0.0, at), va="center", fontsize=8)
    axes.margins(x=0.22)
    named_ticks(axes.yaxis, [row.name for row in rows])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda value, _: format_count(value))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlabel("cycles")
    axes.set_title(f"limited by {source.outcome.limit}", fontsize=9)
    return figure


def roofline(source: Source) -> Figure:
    """Computes a cycle against computes a word at each level with a bandwidth, data and metadata, skipped words aside."""
    outcome, problem = source.outcome, source.outcome.design.problem
    found = roofline_points(outcome)
    if found is None:
        raise SearchError(f"cost model '{problem.cost_model.name}' gives no computes")
    rate, peak, points = found
    if not points:
        raise SearchError(f"{problem.title}: no level has a bandwidth and accesses; a roofline needs one")
    figure, axes = subplots(1, 1, (WIDTH, 3.1))
    low = min(min(x for _, x, _ in points), min(peak / width for *_, width in points)) / 3
    high = max(max(x for _, x, _ in points), max(peak / width for *_, width in points)) * 3
    xs = np.geomspace(low, high, 200)
    for number, (name, x, width) in enumerate(points):
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


def roofline_points(outcome: Outcome) -> tuple[float, float, list[tuple[str, float, float]]] | None:
    """Computes a cycle, as carried out and at most; and for each level with a bandwidth and accesses its name, computes
    a word, and words a cycle of all instances. None where the cost model gives no computes."""
    if "compute" not in outcome.detail:
        return None
    problem = outcome.design.problem
    done = float(np.asarray(outcome.detail["compute"].actual)[0])
    points = []
    for level in problem.levels:
        width = level.bandwidth or (level.read_bandwidth or math.inf) + (level.write_bandwidth or math.inf)
        words = sum(_timed_words(outcome, t, level.index) for t in range(len(problem.tensors)))
        if math.isfinite(width) and words:
            points.append((level.name, done / words, width * level.instances))
    return done / outcome.cycles, float(problem.compute_instances), points


def _timed_words(outcome: Outcome, tensor: int, level: int) -> float:
    found = accesses_of(outcome, tensor, level)
    spec = outcome.design.problem.levels[level]
    rows = [row for row in found.rows if not row.name.startswith("skipped")] if found else []
    return sum(row.count * (spec.metadata_width / spec.word_bits if "metadata" in row.name else 1.0) for row in rows)


def pareto(source: Source) -> Figure:
    """The designs that no other one dominates: a panel for each objective after the first, against the first."""
    from matplotlib.ticker import MaxNLocator

    front = front_of(source)
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
                axis.set_major_locator(MaxNLocator(4))
                axis.set_major_formatter(lambda value, _: format_count(value))
        axes.set_ylabel(labels[other])
    grid[-1, 0].set_xlabel(labels[0])
    grid[0, 0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, handlelength=1)
    return figure


def front_of(source: Source) -> list[dict[str, Any]]:
    """The rows of the front in `result.json`; `SearchError` where there is none."""
    table = read_result(source.folder) if source.folder is not None else {}
    if not table.get("front"):
        raise SearchError(
            "a figure of a front needs the folder of a search with several objectives, such as pareto:energy,delay"
        )
    return table["front"]


def space(source: Source) -> Figure:
    """Random designs by cycles and energy, with lines of equal EDP, and where the design is among them."""
    outcome = source.outcome
    cycles, energy_pj, valid = sampled(source)
    figure, axes = subplots(1, 1, (WIDTH, 2.9))
    axes.plot(cycles, energy_pj, ".", color=COLOURS[0], markersize=2.5, alpha=0.4, markeredgewidth=0, label="random")
    axes.plot([outcome.cycles], [outcome.energy_pj], "*", color=COLOURS[1], markersize=12, label="this design")
    axes.set(xscale="log", yscale="log", xlabel="cycles", ylabel="energy, pJ")
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    xs = np.geomspace(low, high, 50)
    for power in range(math.ceil(math.log10(outcome.edp)), math.floor(math.log10(high * top)) + 1):
        axes.plot(xs, 10.0**power / xs, ":", color="#8A8F98", linewidth=0.8, zorder=1)
    axes.plot([], [], ":", color="#8A8F98", linewidth=0.8, label="EDP, powers of ten")
    axes.set(xlim=(low, high), ylim=(bottom, top))
    axes.set_title(f"{percent(valid / SAMPLES)} of {SAMPLES:,} random designs valid", fontsize=9, pad=18)
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.45, 0.985), ncols=3, handlelength=1, columnspacing=1, fontsize=7.5
    )
    axes.get_legend().legend_handles[0].set(markersize=6, alpha=1)
    return figure


def sampled(source: Source) -> tuple[Array, Array, int]:
    """Cycles and energies in pJ of the valid ones among `SAMPLES` random designs, repaired like those that a search
    starts with, and how many these are. The space is that of the search, or the default one for a design file."""
    own = source.outcome.design.problem
    table = read_result(source.folder) if source.folder is not None else {}
    which = table.get("identity", {}).get("space", defaults.SPACE)
    problem = load_problem(own.workload, own.hardware, which, own.objective, own.cost_model, registry=own.registry)
    rng = np.random.default_rng(0)
    found = evaluate(problem, problem.space.repair(problem.space.guess(SAMPLES, rng), rng))
    return found.cycles[found.valid], found.energy_pj[found.valid], int(found.valid.sum())


def loopnest(source: Source) -> Figure:
    """The loop nest as nested boxes: a level each, with its room, what it skips or gates, and its loops."""
    design, detail = source.outcome.design, source.outcome.detail
    problem = design.problem
    missing = {"bounds", "order", "formats", "mechanisms"} - design.batch.columns.keys()
    if missing:
        raise SearchError(
            f"{problem.title}: the design has no {listed(sorted(missing))}, of which a loop nest is drawn"
        )
    place = {x.storage: mechanism_text(design.mechanism(x), x, problem) for x in problem.places}
    levels = [(level.name, level.index) for level in problem.levels] + [(problem.compute_name, None)]
    lines: list[tuple[int, str, str, str]] = []
    boxes: list[tuple[int, int]] = []
    for depth, (name, index) in enumerate(levels):
        boxes.append((depth, len(lines)))
        used = plain(room(problem.levels[index], detail)) if index is not None else ""
        lines.append((depth, name, used, place.get(index, "")))
        for loop in design.loops:
            if index is not None and loop.storage == index:
                word = "par-for" if loop.spatial else "for"
                lines.append(
                    (depth, "", f"{word} {loop_name(loop)} in [0, {loop.bound})", "spatial" if loop.spatial else "")
                )
    lines.append((len(levels) - 1, "", einsum_text(problem.tensors), ""))
    formats = _formats(source)
    height = len(lines) + len(levels) * 0.35
    figure, axes = subplots(1, 1, (WIDTH, 0.21 * (height + len(formats)) + 0.15))
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(height + len(formats) + 0.4, -0.1))
    from matplotlib.patches import Rectangle

    for depth, start in boxes:
        inset = 0.03 * depth
        top = start + 0.05
        bottom = height - 0.3 * depth
        colour = COLOURS[depth % len(COLOURS)]
        box = Rectangle((inset, top), 1 - 2 * inset, bottom - top, facecolor="white", edgecolor=colour, linewidth=1.2)
        axes.add_patch(box)
        axes.add_patch(Rectangle((inset, top), 1 - 2 * inset, bottom - top, facecolor=colour, alpha=0.07, linewidth=0))
    for at, (depth, name, text, note) in enumerate(lines):
        x, y = 0.03 * depth + 0.02, at + 0.6
        if name:
            axes.text(x, y, name, weight="bold", fontsize=8.5, va="center", color=COLOURS[depth % len(COLOURS)])
            axes.text(x + 0.15, y, text, fontsize=7.5, va="center", color="#444444")
            axes.text(0.985 - 0.03 * depth, y, note, fontsize=7.5, va="center", ha="right", style="italic")
        else:
            how: dict[str, Any] = {"weight": "bold"} if note else {}
            size = min(8.0, 8.0 * (0.9 - 2 * x) / (0.0195 * len(text)))  # a letter of 8 points takes 1/51 of the column
            axes.text(x + 0.03, y, text, fontsize=size, va="center", family="monospace", **how)
    for at, text in enumerate(formats):
        axes.text(0.0, height + at + 0.7, text, fontsize=7.5, va="center")
    return figure


def _formats(source: Source) -> list[str]:
    """A line per tensor with the formats of its ranks, and what the short names mean."""
    design = source.outcome.design
    problem = design.problem
    known: list[Any] = [*problem.candidates("format"), *problem.candidates("beyond-format")[:1]]
    short, used, lines = symbols(known), [], []
    for t, tensor in enumerate(problem.tensors):
        ranks = design.ranks(t)
        packed = any(rank.format.compressed for rank in ranks)
        words = [f"{short[rank.format.name]}({loop_name(rank.loop)})" for rank in ranks] if packed else ["uncompressed"]
        used += [rank.format.name for rank in ranks] if packed else []
        lines.append(f"{tensor.name}: {' '.join(words)}")
    if used:
        lines.append(", ".join(f"{short[name]} = {name}" for name in dict.fromkeys(used)))
    return lines


def energy_scale(pj: float) -> tuple[float, str]:
    """Picojoules of the unit in which an energy is told, and its name."""
    unit = format_energy(pj).split()[-1]
    return {"fJ": 1e-3, "pJ": 1.0, "nJ": 1e3, "uJ": 1e6, "mJ": 1e9, "J": 1e12}[unit], unit.replace("u", "µ")


KINDS: dict[str, Callable[[Source], Figure]] = {
    "convergence": convergence,
    "energy": energy,
    "cycles": cycles,
    "loopnest": loopnest,
    "roofline": roofline,
    "pareto": pareto,
    "space": space,
}
SUFFIXES = (".png", ".svg", ".pdf")


def checked(path: Path) -> Path:
    """The path of a figure; `SearchError` if it does not say one of `SUFFIXES`."""
    if path.suffix.lower() not in SUFFIXES:
        raise SearchError(f"{path}: a figure ends in {listed(SUFFIXES)}")
    return path
