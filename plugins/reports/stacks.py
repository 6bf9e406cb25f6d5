"""Charts of many searches: energy by level and charge, time by what limits it, a bar for each layer or result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

from sparsemap.files import percent
from sparsemap.plots import Figure, named_ticks, subplots, tipped
from sparsemap.searching.breakdown import WAITING, Breakdown
from sparsemap.spec.units import PREFIXES, format_count, format_energy

from .charts import Chart, Mark, bars, colour, with_charges, with_units
from .compare.sides import WHOLE, SidePart, by_level
from .design_charts import energy_scale
from .wording import time_text

Bar = tuple[str, Sequence[SidePart], str]
"""A name, the parts that it is the sum of, and a text at its end, by default the value."""


def stack(rows: Sequence[Bar], key: str, among: Sequence[SidePart] = ()) -> Chart:
    """A bar for each row: `energy_pj` by level and charge, or `seconds` by what limits them (cycles where no clock is
    known), with all repetitions. Bars add up to what their parts cost. Colours are those of a chart with the parts `among`
    which these are."""
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
    scale, unit, tell = 1.0, "cycles", cast(Callable[[float], str], format_count)
    if key == "energy_pj":
        (scale, unit), tell = energy_scale(max(totals, default=1.0)), format_energy
    elif clock:
        (scale, unit), tell = seconds_scale(max(totals, default=0.0)), time_text
    data, ends = [], {}
    for (name, _, end), total, row in zip(rows, totals, sums, strict=True):
        for part, spent in row.items():
            value = math.fsum(each for each, _ in spent)
            tip = f"{name}, {part}\n{tell(value)}, {percent(value / (total or 1.0), 1)}"
            if len(spent) > 1:
                most = sorted(spent, reverse=True)[:3]
                tip += "\n" + ", ".join(f"{of} {percent(each / value)}" for each, of in most if value)
            data.append(Mark(value / scale, part, name, tip=tip))
        ends[name] = end or tell(total)
    what = "energy" if key == "energy_pj" else "time"
    return bars(data, f"{what}, {unit}", ends, parts, title=what)


def coloured(parts: Sequence[SidePart], key: str) -> list[str]:
    """What the bars of these parts consist of, each at the place of its colour (`charts.colour`): levels from the
    outermost inwards, the compute units at theirs, whatever the number of levels; charges where their names say, whatever
    other charges there are, unless that is taken."""
    costs = [part.costs for part in parts if part.known]
    named = "{}" if key == "energy_pj" else "limited by {}"
    levels = list(dict.fromkeys(named.format(row.name) for one in costs for row in one.rows[:-1]))
    last = dict.fromkeys(named.format(row.name) for one in costs for row in one.rows[-1:])
    known = with_units(levels, [*last])
    return with_charges(known, {name for one in costs for name in parts_of(one, key)} - set(known))


def seconds_scale(seconds: float) -> tuple[float, str]:
    """Seconds of the unit in which so many are printed, and its name."""
    size, prefix = next(((size, name) for size, name in PREFIXES if seconds >= size), PREFIXES[-1])
    return size, f"{prefix}s"


def parts_of(costs: Breakdown, key: str) -> dict[str, float]:
    """Costs `by_level`; names of limits say so."""
    found = by_level(costs, key)
    return {
        name if key == "energy_pj" or name in (WHOLE, WAITING) else f"limited by {name}": x for name, x in found.items()
    }


def timeline(parts: Sequence[SidePart]) -> Chart | None:
    """The layers of a network one after the other, each in the row of what limits it; None without a clock."""
    known = [part for part in parts if part.known and math.isfinite(part.seconds)]
    if not known:
        return None
    names, whole = coloured(known, "seconds"), math.fsum(part.seconds for part in known)
    (scale, unit), marks, start = seconds_scale(whole), [], 0.0
    for part in known:
        tip = f"{part.name}\n{time_text(start)} to {time_text(start + part.seconds)}"
        row = next(iter(parts_of(part.costs, "seconds")))
        marks.append(Mark(part.seconds / scale, part.name, row, start / scale, tip))
        start += part.seconds
    rows = list(dict.fromkeys(mark.row for mark in marks))

    def draw(width: float) -> Figure:
        figure, axes = subplots(1, 1, (width, 0.7 + 0.3 * len(rows)))
        for at, mark in enumerate(marks):
            bar = axes.barh(rows.index(mark.row), mark.value, left=mark.at, height=0.7, color=colour(names, mark.row))
            bar[0].set(alpha=1.0 if at % 2 else 0.65)
            tipped(bar[0], [mark.tip])
        named_ticks(axes.yaxis, rows)
        axes.set(xlabel=f"time, {unit}", xlim=(0, whole / scale), ylim=(len(rows) - 0.45, -0.55))
        return figure

    return Chart(marks, draw, "layers in time, by what limits them")
