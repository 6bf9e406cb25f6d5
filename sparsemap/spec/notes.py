"""Notes on the values of imported and exported files, and the files of an import.

A part that cannot be written has a note with its place; the other parts are written all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..file_formats import DESIGN, SPEC, FileFormat
from ..writing import write_texts
from . import toml_text
from .yaml_tables import YamlSource

IMPORT = FileFormat("import", "`import.json`: notes on an imported project of another program")
PARTS = ("workload", "hardware", "space", "design")
VERDICTS = {"taken": "Taken", "assumed": "Assumed", "missing": "Without a counterpart"}


@attrs.frozen
class Note:
    """Treatment of a value: `taken`, `assumed` where the file leaves it open or it is approximated, or `missing`."""

    verdict: str
    source: YamlSource
    text: str
    cause: str = ""
    """Feature missing in SparseMap, worded the same for all files; empty for other verdicts."""
    stops: str = ""
    """File left unwritten for this reason: workload, hardware, space, design."""


@attrs.frozen
class Notes:
    rows: list[Note] = attrs.field(factory=list)

    def taken(self, source: YamlSource, text: str) -> None:
        self.rows.append(Note("taken", source, text))

    def assumed(self, source: YamlSource, text: str) -> None:
        self.rows.append(Note("assumed", source, text))

    def missing(self, source: YamlSource, cause: str, text: str, stops: str = "design") -> None:
        self.rows.append(Note("missing", source, text, cause, stops))

    def stops(self, part: str) -> list[Note]:
        return [note for note in self.rows if note.stops == part]


@attrs.frozen
class Imported:
    """Tables by part, and notes on the values of the files."""

    tables: Mapping[str, Mapping[str, Any]]
    notes: tuple[Note, ...]

    @property
    def missing(self) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.verdict == "missing")


def write(imported: Imported, out: Path, title: str) -> list[Path]:
    """Write a TOML file per part, and the notes as `import.json` and `import.md`; delete files of missing parts."""
    texts = {out / f"{part}.toml": toml_text.dumps(_stamped(table)) for part, table in imported.tables.items()}
    rows = []
    for note in imported.notes:
        place = attrs.asdict(note.source)
        rows.append({"verdict": note.verdict, **place, "text": note.text, "cause": note.cause, "stops": note.stops})
    texts[out / "import.json"] = json.dumps(IMPORT.stamped({"notes": rows}), indent=2) + "\n"
    texts[out / "import.md"] = markdown(imported.notes, title)
    return write_texts(texts, [out / f"{part}.toml" for part in PARTS if part not in imported.tables])


def _stamped(table: Mapping[str, Any]) -> dict[str, Any]:
    return (DESIGN if table.get("kind") == DESIGN.name else SPEC).stamped(table)


def markdown(notes: Sequence[Note], title: str) -> str:
    """Report of values taken, assumed, or without a counterpart."""
    lines = [f"# {title}", ""]
    for verdict, title in VERDICTS.items():
        found = [note for note in notes if note.verdict == verdict]
        if found:
            lines += [f"## {title}", "", *(f"- {line(note)}" for note in found), ""]
    return "\n".join(lines)


def line(note: Note) -> str:
    """A line for a note: place, text, and for a missing value its cause and the unwritten file."""
    text = f"{note.cause}: {note.text}" if note.cause and note.cause != note.text else note.text
    return f"{note.source}: {text}" + (f" (no {note.stops}.toml)" if note.stops else "")
