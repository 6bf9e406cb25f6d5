"""What a page consists of: sections of charts, tables and loop nests, with the values of the numbers that they print."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

import attrs

from sparsemap import __version__
from sparsemap.files import percent, times
from sparsemap.pieces import defaults
from sparsemap.spec.units import format_count, format_energy

from ..charts import Chart
from ..wording import CHIP_COSTS, COST_NAMES


@attrs.frozen
class PrintedNumber:
    """A number as printed, with its value; `of` is its place in the file that it is from, such as `levels.0.cycles`."""

    value: float
    text: str
    of: str = ""


@attrs.frozen
class PageLink:
    """A text that leads to a section of the page."""

    text: str
    anchor: str


Cell = str | PrintedNumber | PageLink


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

    def without_places(self) -> PageTable:
        """The table with numbers that stand in no file, or in another one than the page is about."""
        rows = [[attrs.evolve(x, of="") if isinstance(x, PrintedNumber) else x for x in row] for row in self.rows]
        return attrs.evolve(self, rows=rows)


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
    anchor: str = ""
    """Of a section that is closed until somebody asks for it."""


@attrs.frozen
class Page:
    title: str
    lines: Sequence[str]
    """What was searched."""
    tiles: Sequence[Headline]
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    verdict: Sequence[str] = ()
    """Sentences that say what came out."""


def made(path: Path, found: Mapping[str, Any], words: str, file: str) -> str:
    """How a result came about: the command, without plugins and files of the user, its date, and the versions."""
    versions = found.get("versions") or {}
    about = [f"{name} {versions[name]}" for name in ("sparsemap", "numpy", "python") if name in versions]
    about = about or [f"sparsemap {__version__}"]
    date = datetime.fromtimestamp((path / file).stat().st_mtime).strftime("%Y-%m-%d")
    return f"{words}; {date}; {', '.join(about)}"


def command(verb: str, found: Mapping[str, Any], **more: Any) -> str:
    """A command of the shell with the options that differ from what they are by default."""
    usual = {"objective": defaults.OBJECTIVE, "space": defaults.SPACE, "searcher": defaults.SEARCHER, "count": "all"}
    options = {**more, **{key: found.get(key) for key in ("budget", "seed", *usual)}}
    words = [
        f"--{key.replace('_', '-')} {quote(str(x))}" for key, x in options.items() if x not in (None, usual.get(key))
    ]
    return " ".join(["sparsemap", verb, *words])


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
