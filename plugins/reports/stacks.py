"""Charts of many searches: energy by level and charge, time by what limits it, a bar for each layer or result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import cast

from sparsemap.files import percent
from sparsemap.searching.breakdown import WAITING, Breakdown
from sparsemap.spec.units import format_count, format_energy

from .charts import Chart, Mark, bars
from .design_charts import energy_scale
from .sides import SidePart
from .wording import PREFIXES, time_text

Bar = tuple[str, Sequence[SidePart], str]
"""A name, the parts that it is the sum of, and a text at its end, by default the value."""


def stack(rows: Sequence[Bar], key: str, title: str = "", among: Sequence[SidePart] = ()) -> Chart:
    """A bar for each row: `energy_pj` by level and charge, or `seconds` by what limits them (cycles where no clock is
    known), with all repetitions. Bars add up to what their parts cost. Colours are those of a chart with the parts `among`
    which these are."""
    clock = all(math.isfinite(part.cycle_s) for _, found, _ in rows for part in found)
    every = [*among, *(part for _, found, _ in rows for part in found)]
    parts = dict.fromkeys(f"limited by {row.name}" for part in every for row in part.costs.rows if key != "energy_pj")
    parts |= dict.fromkeys(name for part in every if part.known for name in parts_of(part.costs, key))
    sums: list[dict[str, list[tuple[float, str]]]] = []
    for _, found, _ in rows:
        sums.append({})
        for one in found:
            if one.known:
                for part, of in parts_of(one.costs, key).items():
                    worth = one.repeat * of * (one.cycle_s if key != "energy_pj" and clock else 1.0)
                    sums[-1].setdefault(part, []).append((worth, one.name))
    totals = [math.fsum(each for spent in row.values() for each, _ in spent) for row in sums]
    scale, unit, tell = 1.0, "cycles", cast(Callable[[float], str], format_count)
    if key == "energy_pj":
        (scale, unit), tell = energy_scale(max(totals, default=1.0)), format_energy
    elif clock:
        scale, prefix = next(((size, name) for size, name in PREFIXES if max(totals, default=0) >= size), PREFIXES[-1])
        unit, tell = f"{prefix}s", time_text
    data, ends = [], {}
    for (name, _, end), total, row in zip(rows, totals, sums, strict=True):
        for part, spent in row.items():
            value = math.fsum(each for each, _ in spent)
            tip = f"{name}, {part}\n{tell(value)}, {percent(value / total, 1)}"
            if len(spent) > 1:
                most = sorted(spent, reverse=True)[:3]
                tip += "\n" + ", ".join(f"{of} {percent(each / value)}" for each, of in most if value)
            data.append(Mark(value / scale, part, name, tip=tip))
        ends[name] = end or tell(total)
    return bars(
        data,
        f"{'energy' if key == 'energy_pj' else 'time'}, {unit}",
        ends,
        list(parts),
        title=title or ("energy" if key == "energy_pj" else "time"),
    )


def parts_of(costs: Breakdown, key: str) -> dict[str, float]:
    """Energy in pJ by level and charge, or the cycles of what limits them, and of waiting; they add up to the whole."""
    if key == "energy_pj":
        return {name: sum(spent.values()) for name, spent in costs.energies.items()} or {"all levels": costs.energy_pj}
    timed = [(row.cycles, row.name) for row in reversed(costs.rows) if row.cycles is not None]
    if not timed:
        return {"all levels": costs.cycles}
    slowest, name = max(timed, key=itemgetter(0))
    return {f"limited by {name}": slowest, **({WAITING: costs.waiting_cycles} if costs.waiting_cycles else {})}
