"""Contents of a page: sections of charts, tables and loop nests, with values of the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import attrs

from sparsemap import __version__
from sparsemap.pieces import defaults

from ..amounts import COST_NAMES
from ..charts import Chart
from ..tables import HOW, Cell, PageTable, number, numbers


@attrs.frozen
class Headline:
    label: str
    value: Cell
    note: str = ""


@attrs.frozen
class Text:
    block: ClassVar[str] = "text"
    lines: Sequence[str]


@attrs.frozen
class Box:
    """A memory or the compute units in a loop nest, with inner boxes."""

    block: ClassVar[str] = "nest"
    name: str
    room: str
    marks: Sequence[str]
    """Skips and gates."""
    tensors: Sequence[tuple[str, str, str]]
    """Name, tile, formats."""
    loops: Sequence[tuple[str, bool, str, str]]
    """Text, parallel or not, a note, and the effect."""
    inner: Box | None
    statement: str = ""


Block = Chart | PageTable | Text | Box


@attrs.frozen
class Section:
    title: str
    blocks: Sequence[Block]
    text: str = ""
    anchor: str = ""
    """Anchor of a folded section."""


@attrs.frozen
class Page:
    title: str
    lines: Sequence[str]
    """Description of the search."""
    tiles: Sequence[Headline]
    sections: Sequence[Section]
    warnings: Sequence[str] = ()
    verdict: Sequence[str] = ()
    """Sentences with the outcome."""


def made(path: Path, found: Mapping[str, Any], file: str, words: str = "") -> str:
    """Origin of a result: the command of its folder or a folder above, the date, the versions."""
    versions = found.get("versions") or {}
    about = [f"{name} {versions[name]}" for name in ("sparsemap", "numpy", "python") if name in versions]
    about = about or [f"sparsemap {__version__}"]
    date = datetime.fromtimestamp((path / file).stat().st_mtime).strftime("%Y-%m-%d")
    files = [folder / defaults.COMMAND_FILE for folder in (path, *path.resolve().parents[:DEEP])]
    command = next((file.read_text("utf-8").strip() for file in files if file.is_file()), "")
    return "; ".join(filter(None, [words or command, date, ", ".join(about)]))


DEEP = 3
"""Folders between a result and its command, as in a layer of a network of a study."""


# ------------------------------------------------------------------------------------------------------------- numbers


def totals(found: Mapping[str, Any], of_edp: str, of_cycles: str, of: str = "") -> list[Headline]:
    """EDP and cycles with notes, energy, and the gap to a known bound; `of` is the place in the file."""
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
