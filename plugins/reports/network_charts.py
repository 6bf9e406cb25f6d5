"""Charts of layers, plans and results: energy and time as bars, layers over time, and ratios of a study."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, cast

from sparsemap.files import percent
from sparsemap.plots import COLOURS, Figure, subplots, tipped
from sparsemap.searching.breakdown import LOST, STALLS, Breakdown
from sparsemap.spec.units import PREFIXES, format_count, format_energy
from sparsemap.study.comparison import ALL, BROKEN, NAMED, Comparison

from .charts import GREY, Chart, Mark, bars, colour, labels, row_axes, scale, with_charges, with_units
from .compare.sides import WHOLE, SidePart, by_level
from .design_charts import energy_scale
from .wording import time_text

Bar = tuple[str, Sequence[SidePart], str]
"""A name, parts, and a text at the end, by default the sum."""
HELD = ("tensors that stay", "tiles and what slides by", "pinned weights")


def stack(rows: Sequence[Bar], key: str, among: Sequence[SidePart] = ()) -> Chart:
    """A bar per row: `energy_pj` by level and charge, or `seconds` by limit (cycles without a clock), of all repetitions.

    Colours are those of a chart with the parts `among` as well."""
    clock = all(math.isfinite(part.cycle_s) for _, found, _ in rows for part in found)
    parts = coloured([*among, *(part for _, found, _ in rows for part in found)], key)
    sums: list[dict[str, list[tuple[float, str]]]] = []
    for _, found, _ in rows:
        sums.append({})
        for one in found:
            for part, of in parts_of(one.costs, key).items() if one.known else ():
                worth = one.repeat * of * (one.cycle_s if key != "energy_pj" and clock else 1.0)
                sums[-1].setdefault(part, []).append((worth, one.name))
    totals = [math.fsum(each for spent in row.values() for each, _ in spent) for row in sums]
    size, unit, tell = 1.0, "cycles", cast(Callable[[float], str], format_count)
    if key == "energy_pj":
        (size, unit), tell = energy_scale(max(totals, default=1.0)), format_energy
    elif clock:
        (size, unit), tell = seconds_scale(max(totals, default=0.0)), time_text
    data, ends = [], {}
    for (name, _, end), total, row in zip(rows, totals, sums, strict=True):
        for part, spent in row.items():
            value = math.fsum(each for each, _ in spent)
            tip = f"{name}, {part}\n{tell(value)}, {percent(value / (total or 1.0), 1)}"
            if len(spent) > 1:
                most = sorted(spent, reverse=True)[:3]
                tip += "\n" + ", ".join(f"{of} {percent(each / value)}" for each, of in most if value)
            data.append(Mark(value / size, part, name, tip=tip))
        ends[name] = end or tell(total)
    what = "energy" if key == "energy_pj" else "time"
    return bars(data, f"{what}, {unit}", ends, parts, title=what)


def coloured(parts: Sequence[SidePart], key: str) -> list[str]:
    """Levels, compute units and charges of parts in the order of their colours (`charts.colour`)."""
    costs = [part.costs for part in parts if part.known]
    named = "{}" if key == "energy_pj" else "limited by {}"
    levels = list(dict.fromkeys(named.format(row.name) for one in costs for row in one.rows[:-1]))
    last = dict.fromkeys(named.format(row.name) for one in costs for row in one.rows[-1:])
    known = with_units(levels, [*last])
    return with_charges(known, {name for one in costs for name in parts_of(one, key)} - set(known))


def parts_of(costs: Breakdown, key: str) -> dict[str, float]:
    """Costs `by_level`, under names that say limits."""
    plain = (WHOLE, STALLS, *LOST) if key == "seconds" else costs.energies or (WHOLE,)
    return {name if name in plain else f"limited by {name}": x for name, x in by_level(costs, key).items()}


def seconds_scale(seconds: float) -> tuple[float, str]:
    """Seconds of the unit of a time, and its name."""
    size, prefix = next(((size, name) for size, name in PREFIXES if seconds >= size), PREFIXES[-1])
    return size, f"{prefix}s"


def timeline(parts: Sequence[SidePart]) -> Chart | None:
    """Layers one after the other, each in the row of its limit; None without a clock."""
    known = [part for part in parts if part.known and math.isfinite(part.seconds)]
    if not known:
        return None
    names, whole = coloured(known, "seconds"), math.fsum(part.seconds for part in known)
    (size, unit), marks, start = seconds_scale(whole), [], 0.0
    for part in known:
        tip = f"{part.name}\n{time_text(start)} to {time_text(start + part.seconds)}"
        row = next(iter(parts_of(part.costs, "seconds")))
        marks.append(Mark(part.seconds / size, part.name, row, start / size, tip))
        start += part.seconds
    rows = list(dict.fromkeys(mark.row for mark in marks))

    def draw(width: float) -> Figure:
        figure, axes = row_axes(width, rows, f"time, {unit}", 0.3, 0.7)
        for at, mark in enumerate(marks):
            bar = axes.barh(rows.index(mark.row), mark.value, left=mark.at, height=0.7, color=colour(names, mark.row))
            bar[0].set(alpha=1.0 if at % 2 else 0.65)
            tipped(bar[0], [mark.tip])
        axes.set_xlim(0, whole / size)
        return figure

    return Chart(marks, draw, "layers in time, by what limits them")


def over_time(plan: Mapping[str, Any]) -> Chart:
    """Words of a plan's level over cycles: pinned weights, tensors that stay, and tiles of the step on top."""
    pinned = plan.get("pinned_room", 0.0)
    marks, widths, now = [], [], 0.0
    for row in plan["layers"]:
        stays, held = row["live_words"], ", ".join(row["live"]) or "nothing"
        tiles = row["used_words"] - stays
        parts = zip(HELD, (pinned, stays, 0.0), (stays - pinned, tiles, pinned), strict=True)
        for part, low, words in parts if pinned else list(parts)[:2]:
            tip = f"{row['layer']}, {part}\n{format_count(words)} words; {held} stays\n{format_count(row['cycles'])} cycles"
            marks.append(Mark(now, part, row["layer"], words, tip))
            widths.append((row["cycles"], low))
        now += row["cycles"]

    def draw(width: float) -> Figure:
        figure, axes = subplots(1, 1, (width, 0.5 * width + 0.4))
        for mark, (cycles, low) in zip(marks, widths, strict=True):
            if mark.at and cycles:
                one = axes.bar(mark.value, mark.at, cycles, low, align="edge", color=colour(HELD, mark.part))
                tipped(one[0], [mark.tip])
        for part in HELD if pinned else HELD[:2]:
            axes.bar(0.0, 0.0, color=colour(HELD, part), label=part)
        top = 1.15 * plan["peak"]["words"]
        if plan["capacity"] <= 2 * top:
            axes.axhline(plan["capacity"], color="black", linestyle="--", linewidth=0.9)
            top = max(top, 1.05 * plan["capacity"])
        for at, words, names in largest(plan["layers"], now):
            side = "left" if at < 0.1 * now else "right" if at > 0.9 * now else "center"
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
            axes.annotate(names, (at, words), (0, 3), textcoords="offset points", ha=side, fontsize="x-small", bbox=box)
        scale(axes.xaxis, [0.0, now])
        scale(axes.yaxis, [0.0, top])
        axes.set(xlabel="cycles", ylabel=f"words in {plan['home']}", xlim=(0, now), ylim=(0, top))
        labels(figure, axes)
        return figure

    return Chart(marks, draw)


NAMED_STEPS, APART = 3, 0.25
"""Most steps of a chart over time with names of tensors, and their least distance, as a share of the time."""


def largest(rows: Sequence[Mapping[str, Any]], cycles: float) -> list[tuple[float, float, str]]:
    """Middle in cycles, words in use, and the tensors on chip, of the steps with the most words in tensors that stay."""
    found, now = list[tuple[float, float, float, str]](), 0.0
    for row in rows:
        if row["live"]:
            names = " + ".join([*row["live"][:2], *(["..."] if len(row["live"]) > 2 else [])])
            found.append((row["live_words"], now + row["cycles"] / 2, row["used_words"], names))
        now += row["cycles"]
    chosen = list[tuple[float, float, str]]()
    for _, at, words, names in sorted(found, key=lambda one: -one[0]):
        if len(chosen) < NAMED_STEPS and all(abs(at - other) >= APART * cycles for other, _, _ in chosen):
            chosen.append((at, words, names))
    return chosen


def ratios_chart(found: Comparison) -> Chart:
    """Mean ratios of variants with intervals of 95 %, and every cell as a dot."""
    means = [(row, row.ratio) for row in found.means if row.ratio is not None]
    places, variants = len({row.group for row, _ in means}) > 1, len(found.others) > 1
    names = [" on ".join(compress((row.variant, row.group), (variants or not places, places))) for row, _ in means]
    names = [name + f", {BROKEN}" * bool(row.broken) for (row, _), name in zip(means, names, strict=True)]
    groups = {ALL: found.cells, **found.groups(found.over)}
    cells = [[found.ratio(cell, row.variant) for cell in groups[row.group]] for row, _ in means]
    points = [(ratio, at) for at, ratios in enumerate(cells) for ratio in ratios if ratio]

    def draw(width: float) -> Figure:
        axis = f"{NAMED[found.cost]} over {found.reference}, mean and 95 %"
        figure, axes = row_axes(width, names, axis, base=0.7, edge=0.4)
        axes.axvline(1.0, color="black", linestyle="--", linewidth=0.9)
        axes.plot(*zip(*points, strict=True), ".", color=GREY, alpha=0.5, markersize=4)
        for at, (_, one) in enumerate(means):
            reach = [[one.mean - (one.low or one.mean)], [(one.high or one.mean) - one.mean]]
            axes.errorbar(one.mean, at, xerr=reach, fmt="o", color=COLOURS[0], markersize=4, capsize=2.5, zorder=4)
        scale(axes.xaxis, [1.0, *(ratio for ratio, _ in points)])
        return figure

    return Chart([Mark(one.mean, row.variant, name) for (row, one), name in zip(means, names, strict=True)], draw)
