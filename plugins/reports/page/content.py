"""Contents of a page: sections of charts, tables and loop nests, with the values of all printed numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import attrs

from sparsemap import __version__
from sparsemap.pieces import defaults

from ..charts import Chart
from ..tables import HOW, Cell, PageTable, PrintedNumber, number, numbers
from ..wording import COST_NAMES
from .cards import ChipCard


@attrs.frozen
class Headline:
    label: str
    value: Cell
    note: str = ""


def counted(label: str, count: int, note: str = "", of: str = "") -> Headline:
    return Headline(label, PrintedNumber(count, f"{count:,}", of), note)


@attrs.frozen
class Text:
    block: ClassVar[str] = "text"
    lines: Sequence[str]


@attrs.frozen
class Box:
    """A memory or the compute units in a loop nest, with the next level inside."""

    block: ClassVar[str] = "nest"
    name: str
    room: str
    marks: Sequence[str]
    """Skips and gates of the level."""
    tensors: Sequence[tuple[str, str, str]]
    """Name, tile, formats."""
    loops: Sequence[tuple[str, bool, str, str]]
    """Text, whether the loop is parallel, a note, and the loop's effect."""
    inner: Box | None
    statement: str = ""


Block = Chart | PageTable | Text | Box


@attrs.frozen
class Section:
    title: str
    blocks: Sequence[Block]
    text: str = ""
    anchor: str = ""
    """Anchor of a collapsed section."""


@attrs.frozen
class Page:
    title: str
    lines: Sequence[str]
    tiles: Sequence[Headline]
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    verdict: Sequence[str] = ()
    """Sentences with the main results."""
    cards: Sequence[ChipCard] = ()


def made(path: Path, found: Mapping[str, Any], file: str, words: str = "") -> str:
    """Origin of a result: the command of its folder or of an enclosing folder, the date, and the versions."""
    versions = found.get("versions") or {}
    about = [f"{name} {versions[name]}" for name in ("sparsemap", "numpy", "python") if name in versions]
    about = about or [f"sparsemap {__version__}"]
    date = datetime.fromtimestamp((path / file).stat().st_mtime).strftime("%Y-%m-%d")
    files = [folder / defaults.COMMAND_FILE for folder in (path, *path.resolve().parents[:DEEP])]
    command = next((file.read_text("utf-8").strip() for file in files if file.is_file()), "")
    return "; ".join(filter(None, [words or command, date, ", ".join(about)]))


DEEP = 3
"""Deepest nesting of a result below its command's folder, as for a layer of a network of a study."""


# ------------------------------------------------------------------------------------------------------------- numbers


def totals(found: Mapping[str, Any], of_edp: str, of_cycles: str, of: str = "") -> list[Headline]:
    """EDP and cycles, each with a note, energy, and the gap to a known bound; `of` is the place of the numbers."""
    labels, notes = ("EDP, pJ · cycles", "energy", "cycles"), (of_edp, "", of_cycles)
    made = [Headline(*row) for row in zip(labels, numbers(found, of), notes, strict=True)]
    costs = found.get("costs") or {}
    for name, label in COST_NAMES.items():
        if costs.get(name):
            made.append(Headline(label, number(costs[name], HOW[name], f"{of}costs.{name}")))
    if found.get("gap"):
        where = f" in space {found['space']} for these sizes" if found.get("space") else ""
        (gap,) = numbers(found, of, ["gap"])
        made.append(Headline("gap to the bound", gap, f"{found['bound']:.3e} by proof{where}"))
    return made


AMOUNT = re.compile(r"(-?[\d.]+) ([fpnumkMG]?(?:J|s|W))")
APART = 1e4
"""Largest ratio of amounts in one unit."""


UNIT = re.compile(r"(?:(?<=\d )|(?<=energy, )|(?<=time, ))u(?=[JsW]\b)|(?:(?<=\d )|(?<=area, )|(?<=W/))mm2\b")


def typeset(text: Any) -> Any:
    """A text with the units of print: µJ, mm²; anything else unchanged."""
    return (
        type(text)(UNIT.sub(lambda found: "µ" if found[0] == "u" else "mm²", text)) if isinstance(text, str) else text
    )


def compact(table: PageTable) -> PageTable:
    """The table with the amounts of a column in the unit of the largest, unless they are far `APART`.

    Columns with nothing but zeros or ones are left out of several rows."""
    if not table.rows:
        return table
    columns = [_in_one_unit([row[i] for row in table.rows]) for i in range(len(table.head))]
    shown = [i for i, column in enumerate(columns) if not i or len(column) < 2 or not all(map(_idle, column))]
    rows = list(zip(*(columns[i] for i in shown), strict=True))
    return attrs.evolve(table, head=[table.head[i] for i in shown], rows=rows)


def _idle(cell: Cell) -> bool:
    return cell.value == 0 if isinstance(cell, PrintedNumber) else cell == "1"


def _in_one_unit(column: Sequence[Cell]) -> Sequence[Cell]:
    amounts = [(x, AMOUNT.fullmatch(x.text)) for x in column if isinstance(x, PrintedNumber) and x.value]
    units = {found[2] for _, found in amounts if found}
    values = [abs(x.value) for x, _ in amounts]
    if not all(found for _, found in amounts) or len(units) < 2 or max(values) > APART * min(values):
        return column
    most, found = max(amounts, key=lambda one: abs(one[0].value))
    assert found is not None
    size = 1000.0 ** round(math.log(most.value / float(found[1]), 1000))
    texts = {id(x): f"{x.value / size:.3g} {found[2]}" for x in column if isinstance(x, PrintedNumber)}
    return [attrs.evolve(x, text=texts[id(x)]) if isinstance(x, PrintedNumber) else x for x in column]
