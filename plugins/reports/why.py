"""Causes of a study's ratios: the best cell beside the cells that differ from it in one axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import listed
from sparsemap.files import grouped, percent, times
from sparsemap.study.cells import axes_in, read_table
from sparsemap.study.comparison import NAMED, compared_axes, cost_of
from sparsemap.study.effects import WORK

from .compare.shares import levels_of, shares_of
from .compare.sides import TABLE, Compared, cell_folder, checked, sides_of
from .compare.verdict import EQUAL, LITTLE
from .wording import CHIP_COSTS

MOST = 3
"""Levels named for an axis."""
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
    """The cell with the largest cost among the cells that differ from the best cell in one axis."""

    axis: str
    value: str
    factor: float
    """Its cost over that of the best cell."""
    shares: Mapping[str, float]
    """Share of each level, charge and lost cycle in the difference, 1 in all; the largest first."""
    limits: tuple[str, str]
    """Limit of the best cell, and of the other."""

    @property
    def text(self) -> str:
        named = [f"{name} {percent(x)}" for name, x in self.shares.items() if abs(x) >= LITTLE][:MOST]
        limits = (
            f"; limited by {self.limits[1]} instead of {self.limits[0]}" if self.limits[0] != self.limits[1] else ""
        )
        return f"{self.axis.replace('_', ' ')} {self.value} {times(self.factor)} ({listed(named)}{limits})"

    def to_dict(self) -> dict[str, Any]:
        return attrs.asdict(self)


@attrs.frozen
class Causes:
    """The best cell of a study, and a cause per axis, the largest factor first."""

    best: str
    cost: str
    causes: tuple[Cause, ...]

    @property
    def text(self) -> str:
        """One sentence."""
        if not self.causes:
            return f"No value of an axis costs more than that of the best cell, {self.best}."
        told = "; ".join(cause.text for cause in self.causes)
        shares = f"in brackets, shares of the added {NAMED[self.cost]}"
        return f"Why, with one axis changed from the best cell, {self.best} ({shares}): {told}."

    def to_dict(self) -> dict[str, Any]:
        return {"best": self.best, "cost": self.cost, "causes": [cause.to_dict() for cause in self.causes]}


def best_seeds(folder: Path, rows: Sequence[Row]) -> dict[tuple[Any, ...], tuple[float, Path]]:
    """Least cost over the seeds, and its folder, by workload and values of the axes."""
    cost, names = cost_of(rows, "hardware"), _names(rows)
    known = [(row, path) for row in rows if row.get(cost) and (path := cell_folder(folder, row))]
    cells = grouped(known, lambda one: tuple(one[0].get(name) for name in names))
    return {key: min((row[cost], path) for row, path in each) for key, each in cells.items()}


def varied_sides(folder: Path, rows: Sequence[Row]) -> list[Compared]:
    """The best seed of each cell, labelled by the values that vary."""
    least = best_seeds(folder, rows)
    sides = ((key, side) for key, (_, path) in least.items() for side in sides_of(path, planned=True))
    return [attrs.evolve(side, label=_varied(key, least)) for key, side in sides]


def causes_of(folder: Path, rows: Sequence[Row]) -> Causes | None:
    """Causes in the table of a study, by the best seed of each cell; None without two cells."""
    cost, names, least = cost_of(rows, "hardware"), _names(rows), best_seeds(folder, rows)
    if len(least) < 2:
        return None
    best = min(least, key=lambda key: least[key])
    (side,), found = sides_of(least[best][1], planned=True), []
    for at, name in enumerate(names):
        if name == "workload" or name.partition(".")[0] in WORK:
            continue
        near = [key for key in least if key != best and (*key[:at], *key[at + 1 :]) == (*best[:at], *best[at + 1 :])]
        if not near:
            continue
        most = max(near, key=lambda key: least[key])
        factor = least[most][0] / least[best][0]
        if factor >= 1 + EQUAL:
            (other,) = sides_of(least[most][1], planned=True)
            shares = shares_of((side, other), _worth(cost), levels_of)
            found.append(Cause(name, str(most[at]), factor, shares, (side.limit, other.limit)))
    return Causes(_varied(best, least), cost, tuple(sorted(found, key=lambda x: -x.factor)))


def _names(rows: Sequence[Row]) -> tuple[str, ...]:
    return ("workload", *compared_axes(axes_in(rows[0])))


def _varied(key: tuple[Any, ...], keys: Iterable[tuple[Any, ...]]) -> str:
    """Values of a cell that differ between cells."""
    return ", ".join(str(value) for value, *rest in zip(key, *keys, strict=True) if len({*rest}) > 1)


def _worth(cost: str) -> str:
    return cost if cost in ("energy_pj", "seconds") else "edp_js"
