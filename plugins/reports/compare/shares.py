"""How far sides are apart, and the signed share of every layer or level in the difference.

Text, page and JSON of all comparisons have their shares from `shares_of`."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from sparsemap.spec.units import format_energy

from ..tables import Cell, PageTable, number, share
from ..wording import time_text
from .sides import Compared, by_level, name_of

WORTH = {"energy": "energy_pj", "delay": "seconds", "seconds": "seconds", "area": "area_mm2", "power": "power_w"}
"""Cost that ranks results, by objective; energy x time by default."""
WORTH_NAMES = {
    "energy_pj": "energy", "seconds": "time", "area_mm2": "area", "power_w": "power", "edp_js": "energy x time",
    "edp": "EDP",
}  # fmt: skip
PARTS = ("energy_pj", "seconds")
"""Costs that add up over parts."""
Amounts = Mapping[str, Sequence[float]]
"""Energy in pJ and seconds by name."""


def worth_of(sides: Iterable[Compared]) -> str:
    """The cost that ranks sides: of their common objective, or energy x time."""
    objectives = {side.objective for side in sides}
    return WORTH.get(next(iter(objectives)), "edp_js") if len(objectives) == 1 else "edp_js"


def ratios(side: Compared, base: Compared, worth: str) -> list[float]:
    """Worth of a side over another, seed by seed; in pJ * cycles unless both have a clock."""
    found = []
    for pair in zip(side.seeds or (side,), base.seeds or (base,), strict=False):
        key = "edp" if worth == "edp_js" and not all("edp_js" in one.costs for one in pair) else worth
        one, other = (x.numbers.get("edp") if key == "edp" else x.value(key) for x in pair)
        found += [one / other] if one is not None and other else []
    return found


def ratio(side: Compared, base: Compared, worth: str) -> float | None:
    """Geometric mean of `ratios`; None without any."""
    found = ratios(side, base, worth)
    return None if not found else found[0] if len(found) == 1 else statistics.geometric_mean(found)


def in_order(sides: Iterable[Compared], worth: str) -> list[Compared]:
    """Sides by their mean worth over all seeds, the best first."""

    def mean(side: Compared) -> float:
        values = [one.value(worth) for one in side.seeds or (side,)]
        return math.exp(math.fsum(math.log(x) if x else math.inf for x in values) / len(values))

    return sorted(sides, key=mean)


def layers_of(side: Compared) -> Amounts:
    return {part.name: (part.energy_pj, part.seconds) for part in side.parts if part.known}


def levels_of(side: Compared) -> Amounts:
    """Energy of each level and charge, and time by limit, lost cycles and stalls, over all parts."""
    found: dict[str, list[float]] = {}
    for part in (part for part in side.parts if part.known):
        for at, (key, unit) in enumerate((("energy_pj", 1.0), ("cycles", part.cycle_s))):
            for name, amount in by_level(part.costs, key).items():
                found.setdefault(name, [0.0, 0.0])[at] += part.repeat * amount * unit
    return found


def shares_of(
    sides: Sequence[Compared], worth: str = "edp_js", of: Callable[[Compared], Amounts] = layers_of
) -> dict[str, float]:
    """Share of every layer, or level, in the gain of the first side over the next: the largest first, negative for a
    loss, 1 in all.

    A layer weighs its saved energy, time, or both, relative to the mean totals of the sides."""
    side, other = sides[:2]
    mine, theirs, none = of(side), of(other), (0.0, 0.0)
    names = [name for name in mine if name in theirs] if of is layers_of else {**mine, **theirs}
    means = [(side.total(key) + other.total(key)) / 2 if worth in ("edp_js", key) else 0.0 for key in PARTS]
    weights = {}
    for name in names:
        rows = zip(means, theirs.get(name, none), mine.get(name, none), strict=True)
        weights[name] = math.fsum((their - my) / mean for mean, their, my in rows if mean)
    whole = math.fsum(weights.values())
    shares = {name: weight / whole for name, weight in weights.items()} if whole else {}
    return dict(sorted(shares.items(), key=lambda row: -abs(row[1])))


def groups_of(shares: Mapping[str, float]) -> dict[str, list[str]]:
    """Names by group, the largest group first: layers with the same share and a name that differs in its numbers only, such
    as `layer.*.up` of all blocks; otherwise a group has one name, its own."""
    found: dict[tuple[str, float], list[str]] = {}
    for name, part in shares.items():
        found.setdefault((re.sub(r"\d+", "*", name), round(part, 9)), []).append(name)
    forms = Counter(form for form, _ in found)
    groups = {
        (names[0] if len(names) == 1 else form if forms[form] == 1 else f"{names[0]} .. {names[-1]}"): names
        for (form, _), names in found.items()
    }
    return dict(sorted(groups.items(), key=lambda group: -abs(math.fsum(shares[name] for name in group[1]))))


def shares_text(sides: Sequence[Compared], worth: str) -> str:
    """The meaning of shares; the best side first."""
    best, second = (name_of(side, sides) for side in sides[:2])
    return f"shares are of what {best} gains over {second} in {WORTH_NAMES[worth]}, negative where it loses"


def layer_table(sides: Sequence[Compared], shares: Mapping[str, float]) -> PageTable:
    """Layers in the order of their shares, with time, energy and limit of all repetitions on each side."""
    parts = {name_of(side, sides): {part.name: part for part in side.parts} for side in sides}
    head = ["layer", "times", "share", *(each for x in parts for each in (f"time, {x}", "energy", "limited by"))]
    rows: list[list[Cell]] = []
    for name, of_all in shares.items():
        both = [has.get(name) for has in parts.values()]
        rows.append([name, next(str(part.repeat) for part in both if part), number(of_all, share)])
        for part in both:
            costs = (part.seconds, part.energy_pj) if part else (None, None)
            rows[-1] += [number(costs[0], time_text), number(costs[1], format_energy), part.limit if part else ""]
    return PageTable(head, rows)


def level_table(sides: Sequence[Compared], worth: str) -> PageTable:
    """Levels in the order of their shares in the gain of the first side over the next, with energy and time on both."""
    one, other = (levels_of(side) for side in sides[:2])
    names = [name_of(side, sides) for side in sides[:2]]
    head = ["level", "share", *(f"{cost}, {name}" for cost in ("energy", "time it limits") for name in names)]
    rows: list[list[Cell]] = []
    for name, of_all in shares_of(sides, worth, levels_of).items():
        pairs = zip(one.get(name, (0.0, 0.0)), other.get(name, (0.0, 0.0)), strict=True)
        costs = [number(x, how) for pair, how in zip(pairs, (format_energy, time_text), strict=True) for x in pair]
        rows.append([name, number(of_all, share), *costs])
    return PageTable(head, rows)
