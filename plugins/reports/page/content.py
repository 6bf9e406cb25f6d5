"""What a page consists of: sections of charts, tables and loop nests, with the values of the numbers that they print."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from sparsemap.errors import SearchError
from sparsemap.files import percent, times
from sparsemap.searching.result import read_result
from sparsemap.spec.units import format_count, format_energy

from ..charts import Chart
from ..wording import CHIP_COSTS, COST_NAMES


@attrs.frozen
class PrintedNumber:
    """A number as printed, with its value; `of` is its place in the file that it is from, such as `levels.0.cycles`."""

    value: float
    text: str
    of: str = ""


Cell = str | PrintedNumber


@attrs.frozen
class Headline:
    """A headline number."""

    label: str
    value: Cell
    note: str = ""


@attrs.frozen
class PageTable:
    block: ClassVar[str] = "table"
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    tips: Sequence[str] = ()
    """A text per row, where there is more to tell."""

    @property
    def numeric(self) -> list[bool]:
        """Whether a column has numbers."""
        return [any(isinstance(row[i], PrintedNumber) for row in self.rows) for i in range(len(self.head))]


@attrs.frozen
class Text:
    block: ClassVar[str] = "text"
    lines: Sequence[str]


@attrs.frozen
class Box:
    """A memory or the compute units in a loop nest, with what is inside it."""

    block: ClassVar[str] = "nest"
    name: str
    room: str
    marks: Sequence[str]
    """What it skips and gates."""
    tensors: Sequence[tuple[str, str, str]]
    """Name, tile, formats."""
    loops: Sequence[tuple[str, bool, str, str]]
    """Text, whether it is parallel, a note, and what it does."""
    inner: Box | None
    statement: str = ""


Block = Chart | PageTable | Text | Box


@attrs.frozen
class Section:
    title: str
    blocks: Sequence[Block]
    text: str = ""


@attrs.frozen
class Page:
    title: str
    lines: Sequence[str]
    """What was searched."""
    tiles: Sequence[Headline]
    sections: Sequence[Section]
    footer: str
    warnings: Sequence[str] = ()


OF_SEARCH = ("edp", "energy_pj", "cycles", "score", "workload", "hardware", "evaluations", "budget", "proposed", "seed")


def read(path: Path, keys: Sequence[str] = OF_SEARCH) -> dict[str, Any]:
    """A JSON file, or the `result.json` of a folder; `SearchError` if it lacks one of the keys."""
    return checked(path, read_result(path), keys)


def checked(path: Path, table: Any, keys: Sequence[str]) -> dict[str, Any]:
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            raise SearchError(f"{path}: has no '{key}': not a result as SparseMap writes it")
    return table


# ------------------------------------------------------------------------------------------------------------- numbers


def scientific(value: float) -> str:
    return f"{value:.3e}"


def share(value: float) -> str:
    return percent(value, 1)


HOW: Mapping[str, Callable[[float], str]] = {
    "edp": scientific, "energy_pj": format_energy, "cycles": format_count, "gap": times,
    **CHIP_COSTS, "share_of_energy_pj": share, "share_of_cycles": share,
}  # fmt: skip
"""How the numbers of results are told."""


def number(value: float | None, how: Callable[[float], str], of: str = "") -> Cell:
    """A dash where there is none."""
    return "-" if value is None or not math.isfinite(value) else PrintedNumber(float(value), how(value), of)


def numbers(row: Mapping[str, Any], of: str | None, keys: Sequence[str] = ("edp", "energy_pj", "cycles")) -> list[Cell]:
    """Numbers of a result; `of` is where its table is, such as `front.2.`, None if it is in no file."""
    return [number(row.get(key), HOW[key], "" if of is None else f"{of}{key}") for key in keys]


def totals(found: Mapping[str, Any], of_edp: str, of_cycles: str) -> list[Headline]:
    """EDP and cycles, each with a note, energy, and the gap to the bound where one is known."""
    labels, notes = ("EDP, pJ · cycles", "energy", "cycles"), (of_edp, "", of_cycles)
    made = [Headline(*row) for row in zip(labels, numbers(found, ""), notes, strict=True)]
    costs = found.get("costs") or {}
    for name, label in COST_NAMES.items():
        if costs.get(name):
            made.append(Headline(label, number(costs[name], HOW[name], f"costs.{name}")))
    if found.get("gap"):
        where = f" in space {found['space']}" if found.get("space") else ""
        (gap,) = numbers(found, "", ["gap"])
        made.append(Headline("gap to the bound", gap, f"{found['bound']:.3e} by proof{where}"))
    return made
