"""What a page is made of: sections of charts, tables and loop nests, with the values of the numbers that they print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from sparsemap.errors import SearchError
from sparsemap.files import percent, times
from sparsemap.searching.result import read_result
from sparsemap.spec.units import format_count, format_energy


@attrs.frozen
class Number:
    """A number as printed, with its value; `of` is its place in the file that it is from, such as `levels.0.cycles`."""

    value: float
    text: str
    of: str = ""


Cell = str | Number


@attrs.frozen
class Tile:
    """A headline number."""

    label: str
    value: Cell
    note: str = ""


@attrs.frozen
class Chart:
    """An SVG; marks tell what they stand for in `aria-label`."""

    block: ClassVar[str] = "chart"
    svg: str
    title: str = ""


@attrs.frozen
class Table:
    block: ClassVar[str] = "table"
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    tips: Sequence[str] = ()
    """A text per row, where there is more to tell."""

    @property
    def numeric(self) -> list[bool]:
        """Whether a column has numbers."""
        return [any(isinstance(row[i], Number) for row in self.rows) for i in range(len(self.head))]


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


Block = Chart | Table | Text | Box


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
    tiles: Sequence[Tile]
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


def edp(value: float | None, of: str = "") -> Cell:
    return _number(value, of, lambda x: f"{x:.3e}")


def energy(value: float | None, of: str = "") -> Cell:
    return _number(value, of, format_energy)


def count(value: float | None, of: str = "") -> Cell:
    return _number(value, of, format_count)


def share(value: float | None, of: str = "") -> Cell:
    return _number(value, of, lambda x: percent(x, 1))


def ratio(value: float | None, of: str = "") -> Cell:
    return _number(value, of, times)


def numbers(row: Mapping[str, Any], of: str) -> list[Cell]:
    """EDP, energy and cycles of a row; `of` is where it is, such as `front.2.`."""
    how = {"edp": edp, "energy_pj": energy, "cycles": count}
    return [tell(row.get(key), f"{of}{key}") for key, tell in how.items()]


def totals(found: Mapping[str, Any], of_edp: str, of_cycles: str) -> list[Tile]:
    """EDP and cycles, each with a note, energy, and the gap to the bound where one is known."""
    made = [
        Tile("EDP, pJ · cycles", edp(found["edp"], "edp"), of_edp),
        Tile("energy", energy(found["energy_pj"], "energy_pj")),
        Tile("cycles", count(found["cycles"], "cycles"), of_cycles),
    ]
    if found.get("gap"):
        where = f" in space {found['space']}" if found.get("space") else ""
        made.append(Tile("gap to the bound", ratio(found["gap"], "gap"), f"{found['bound']:.3e} by proof{where}"))
    return made


def _number(value: float | None, of: str, text: Any) -> Cell:
    return "-" if value is None or not math.isfinite(value) else Number(float(value), text(value), of)
