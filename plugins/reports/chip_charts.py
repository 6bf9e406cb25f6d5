"""Pictures of a chip: its levels as a tree with the tiles of a design in them, what is to scale, and what is busy when."""

from __future__ import annotations

import math

from sparsemap.files import percent
from sparsemap.plots import Figure, subplots, tipped
from sparsemap.searching.breakdown import WAITING
from sparsemap.spec.units import format_bits, format_count

from .charts import GREY, Chart, Mark, bars, colour, legend
from .design_charts import traffic
from .loop_nest import held
from .outcome import DesignOutcome
from .wording import area_text

DRAWN = 12
"""Instances of a level that are drawn; the last one stands for all others."""
IN_USE, METADATA, EMPTY = "in use", "metadata", "empty"


def tree_chart(outcome: DesignOutcome) -> Chart | None:
    """Every level as a row of instances, filled with what the design keeps there, and linked to the level above; None
    where the cost model does not say what is in use."""
    problem, detail = outcome.design.problem, outcome.detail
    if detail.instances_used is None or not detail.knows("data_words_max"):
        return None
    tensors = [tensor.name for tensor in problem.tensors]
    parts = [*tensors, METADATA]
    used = [float(count) for count in detail.instances_used[:, 0]]
    rows = [(level.name, level.instances, level.capacity_bits, held(level, detail)) for level in problem.levels]
    rows.append((problem.compute_name, problem.compute_instances, None, []))
    marks = []
    for at, (name, count, size, bits) in enumerate(rows):
        busy = used[min(at, len(used) - 1)] if at < len(rows) - 1 else used[-1]
        about = f"{name}: {count:,} instances, {format_count(busy)} in use"
        if size:
            about += f"\n{format_bits(size)} each, {percent(sum(bits) / size)} full"
        for part, some in zip(parts, bits, strict=False):
            share = min(some / size, 1.0) if size else 0.0
            tip = f"{about}\n{part}: {format_bits(some)} in each"
            marks.append(Mark(share, part, name, min(busy / count, 1.0), tip))
        if not bits:
            marks.append(Mark(1.0, IN_USE, name, min(busy / count, 1.0), about))

    def draw(width: float) -> Figure:
        from matplotlib.patches import Rectangle

        figure, axes = subplots(1, 1, (width, 0.62 * len(rows) + 0.4))
        axes.axis("off")
        axes.set(xlim=(0, 1), ylim=(len(rows), -0.25))
        above: list[float] = []
        for at, (name, count, size, _) in enumerate(rows):
            here = [mark for mark in marks if mark.row == name]
            shown = min(count, DRAWN)
            side = min(0.7 / shown, 0.1)
            lefts = [0.64 - side * shown / 2 + side * i for i in range(shown)]
            for i, left in enumerate(lefts):
                if above:
                    parent = above[min(i * len(above) // shown, len(above) - 1)]
                    axes.plot([parent, left + side / 2], [at - 0.42, at], color=GREY, linewidth=0.6)
                on = (i + 0.5) / shown <= here[0].at or i == 0
                x, wide, bottom = left + 0.1 * side, 0.8 * side, at + 0.58
                axes.add_patch(Rectangle((x, at), wide, 0.58, facecolor="none", edgecolor=GREY, linewidth=0.8))
                for mark in here if on else ():
                    bottom -= 0.58 * mark.value
                    patch = Rectangle((x, bottom), wide, 0.58 * mark.value, linewidth=0)
                    patch.set_color(colour([*parts, IN_USE], mark.part))
                    axes.add_patch(patch)
                    tipped(patch, [mark.tip])
            above = [left + side / 2 for left in lefts]
            each = f"{count:,} x {format_bits(size)}" if size else f"{count:,}"
            axes.text(0.0, at + 0.1, name, va="center", weight="bold", fontsize=8)
            axes.text(0.0, at + 0.42, f"{each}\n{percent(here[0].at)} in use", va="center", fontsize=7)
        filled = [part for part in parts if any(m.part == part and m.value for m in marks)]
        legend(figure, axes, filled, [*parts, IN_USE])
        return figure

    return Chart(marks, draw, "the chip, with the design in it")


def area_chart(outcome: DesignOutcome) -> Chart | None:
    """The area of all instances of each level, to scale, and how much of it holds something; None without areas."""
    problem, chip, used = outcome.design.problem, outcome.design.problem.chip, outcome.detail.instances_used
    if used is None or not outcome.detail.knows("data_words_max"):
        return None
    areas: dict[str, tuple[float, float]] = {}
    for level, each in zip(problem.levels, chip.area_mm2.tolist(), strict=True):
        if each:  # on the chip
            full = min(sum(held(level, outcome.detail)) / level.capacity_bits, 1.0) if level.capacity_bits else 1.0
            areas[level.name] = each * level.instances, min(float(used[level.index, 0]) / level.instances, 1.0) * full
    computes = problem.compute_instances
    areas[problem.compute_name] = float(chip.mac_area_mm2) * computes, float(used[-1, 0]) / computes
    marks, ends = [], {}
    for name, (whole, share) in areas.items():
        ends[name] = f"{area_text(whole)}, {percent(share)} used"
        for part, value in ((IN_USE, whole * share), (EMPTY, whole * (1 - share))):
            marks.append(Mark(value, part, name, tip=f"{name}, {part}\n{area_text(value)} of {area_text(whole)}"))
    if not any(mark.value for mark in marks):
        return None
    return bars(marks, "area, mm2", ends, (IN_USE, EMPTY), title="area, to scale")


def busy_chart(outcome: DesignOutcome) -> Chart | None:
    """How long each level moves words, and the compute units compute, in the time that the layer takes."""
    if outcome.computes is None or not outcome.units:
        return None
    problem, cycles = outcome.design.problem, outcome.cycles
    busy: dict[str, float] = {}
    for level in problem.levels:
        words, width = traffic(outcome, level)
        used = outcome.detail.instances_used
        count = float(used[level.index, 0]) if used is not None else level.instances
        if math.isfinite(width):
            busy[level.name] = min(words / (width * max(count, 1.0)), cycles)
    done, gated, _ = outcome.computes
    busy[problem.compute_name] = min((done + gated) / outcome.units, cycles)
    marks, ends = [], {}
    for name, count in busy.items():
        tip = f"{name}\nbusy for {format_count(count)} of {format_count(cycles)} cycles"
        tip += ", on average over instances in use"
        marks += [Mark(count, "busy", name, tip=tip), Mark(cycles - count, WAITING, name, tip=tip)]
        ends[name] = percent(count / cycles)
    return bars(marks, "cycles", ends, ("busy", WAITING), title="who is busy, of the time of the layer")
