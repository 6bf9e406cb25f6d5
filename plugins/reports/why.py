"""Causes of a study's ratios: the best cell beside the cells that differ from it in one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import listed
from sparsemap.files import grouped, percent, times
from sparsemap.study.cells import axes_in, read_table
from sparsemap.study.comparison import NAMED, compared_axes, cost_of
from sparsemap.study.effects import combined

from .compare.shares import PARTS, levels_of, shares_of
from .compare.sides import TABLE, Compared, cell_folder, checked, sides_of
from .compare.verdict import EQUAL, LITTLE
from .wording import CHIP_COSTS

MOST = 3
"""Levels named for an axis."""
AGREE = 0.2
"""Least share of the net logarithm in all, over workloads, for shares to mean something."""
Row = Mapping[str, Any]
KEYS = ("workload", "hardware", "searcher", "seed", "edp", "energy_pj", "cycles", "valid_fraction")


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a study's table, with their places."""
    told = read_table(folder) or [{}]
    return [_numbers(checked(folder / TABLE, row, KEYS)) | {"at": i} for i, row in enumerate(told)]


def _numbers(row: Mapping[str, str]) -> dict[str, Any]:
    known = (*KEYS[4:], *CHIP_COSTS, "edp_js", "score", "broken_bound")
    names = {key: row[key] for key in (*KEYS[:3], *axes_in(row), KEYS[3], "verdict") if key in row}
    return names | {key: float(row[key]) if row.get(key) else None for key in known}


@attrs.frozen
class Cause:
    """The costliest of the combinations that differ from the best combination in one axis."""

    axis: str
    value: str
    factor: float
    """Geometric mean of its costs over those of the best combination."""
    shares: Mapping[str, float]
    """Share of each level, charge and lost cycle in the difference, 1 in all, the largest first: the mean over workloads,
    weighted by the logarithm of their ratio; empty where workloads pull both ways."""
    limits: tuple[str, str]
    """Limit of the best combination, and of the other; empty where workloads differ."""

    @property
    def text(self) -> str:
        named = [f"{name} {percent(x)}" for name, x in self.shares.items() if abs(x) >= LITTLE][:MOST]
        named = named or ["workloads pull both ways"]
        best, other = self.limits
        limits = f"; limited by {other} instead of {best}" if best != other else ""
        return f"{self.axis.replace('_', ' ')} {self.value} {times(self.factor)} ({listed(named)}{limits})"

    def to_dict(self) -> dict[str, Any]:
        return attrs.asdict(self)


@attrs.frozen
class Causes:
    """The best combination of a study, and a cause per axis, the largest factor first."""

    best: str
    cost: str
    causes: tuple[Cause, ...]

    @property
    def text(self) -> str:
        """One sentence."""
        if not self.causes:
            return f"No value of an axis costs more than that of the best combination, {self.best}."
        told = "; ".join(cause.text for cause in self.causes)
        shares = f"in brackets, shares of the added {NAMED[self.cost]}"
        return f"Why, with one axis changed from {self.best} ({shares}): {told}."

    def to_dict(self) -> dict[str, Any]:
        return {"best": self.best, "cost": self.cost, "causes": [cause.to_dict() for cause in self.causes]}


def best_seeds(folder: Path, rows: Sequence[Row]) -> dict[tuple[Any, ...], tuple[float, Path]]:
    """Least cost over the seeds and its folder, by workload and values of the axes."""
    cost, names = cost_of(rows, "hardware"), _names(rows)
    known = [(row, path) for row in rows if row.get(cost) and (path := cell_folder(folder, row))]
    cells = grouped(known, lambda one: tuple(one[0].get(name) for name in names))
    return {key: min((row[cost], path) for row, path in each) for key, each in cells.items()}


def varied_sides(folder: Path, rows: Sequence[Row]) -> list[Compared]:
    """The best seed of each cell, labelled by the values that vary."""
    cells = best_seeds(folder, rows)
    varied = [len(set(values)) > 1 for values in zip(*cells, strict=True)]
    found = ((", ".join(compress(map(str, key), varied)), path) for key, (_, path) in cells.items())
    return [attrs.evolve(side, label=label) for label, path in found for side in sides_of(path, planned=True)]


def causes_of(folder: Path, rows: Sequence[Row]) -> Causes | None:
    """Causes in the table of a study, with shares by the best seed of each cell; None without two combinations, or
    without folders of cells."""
    cost = cost_of(rows, "hardware")
    axes, means = combined(rows, cost)
    if len(means) < 2 or not (cells := best_seeds(folder, rows)):
        return None
    places = [_names(rows).index(axis) for axis in axes]
    best, found = next(iter(means)), []
    for at, axis in enumerate(axes):
        near = [key for key in means if [x == y for x, y in zip(key, best, strict=True)].count(False) == 1]
        most = next((key for key in reversed(near) if key[at] != best[at]), best)
        if means[most] >= (1 + EQUAL) * means[best]:
            shares, limits = _shares(cells, places, (best, most), cost)
            found.append(Cause(axis, str(most[at]), means[most] / means[best], shares, limits))
    return Causes(", ".join(map(str, best)), cost, tuple(sorted(found, key=lambda x: -x.factor)))


def _names(rows: Sequence[Row]) -> tuple[str, ...]:
    return ("workload", *compared_axes(axes_in(rows[0])))


def _shares(
    cells: Mapping[tuple[Any, ...], tuple[float, Path]],
    places: Sequence[int],
    pair: Sequence[tuple[Any, ...]],
    cost: str,
) -> tuple[dict[str, float], tuple[str, str]]:
    """Mean shares in the difference of two combinations, over workloads, and their limits. `places`: of the combinations'
    values in the keys of the cells."""
    works = grouped(cells, lambda key: tuple(x for at, x in enumerate(key) if at not in places))
    sums, limits, logs = dict[str, float](), set[tuple[str, str]](), list[float]()
    for keys in works.values():
        own = {tuple(key[at] for at in places): cells[key] for key in keys}
        if not own.keys() >= {*pair}:
            continue  # a folder is gone
        (less, _), (more, _) = (own[each] for each in pair)
        best, other = (next(iter(sides_of(own[each][1], planned=True))) for each in pair)
        worth = cost if cost in PARTS else "edp_js"
        logs.append(math.log(more / less))
        for name, share in shares_of((best, other), worth, levels_of).items():
            sums[name] = sums.get(name, 0.0) + share * logs[-1]
        limits.add((best.limit, other.limit))
    whole, both = math.fsum(logs), math.fsum(map(abs, logs))
    ordered = sorted(sums.items(), key=lambda one: -abs(one[1])) if whole > AGREE * both else []
    return {name: part / whole for name, part in ordered}, limits.pop() if len(limits) == 1 else ("", "")
