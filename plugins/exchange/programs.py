"""The program behind YAML files, seen from their keys, and the import of the files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sparsemap.errors import SpecError
from sparsemap.files import shown
from sparsemap.spec.notes import Imported, Notes

KEYS = {
    "accelforge": r"^arch:|^\s+- !(Memory|Compute|Storage|Temporal|Spatial)\b|^\s+einsums:",
    "ZigZag": r"^operational_array:|^\s*-?\s*(memory_operand_links|loop_dims):",
}
"""Signs of a program's files."""
START = 1 << 16
"""Characters read for a sign."""


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.y*ml")) if path.is_dir() else [path]


def program_of(path: Path) -> str:
    """The program of a file, or of a folder's files; "" for none."""
    for file in _files(path):
        if file.suffix in (".yaml", ".yml") and file.is_file():
            with file.open(encoding="utf-8", errors="replace") as opened:
                text = opened.read(START)
            for program, sign in KEYS.items():
                if re.search(sign, text, re.M):
                    return program
    return ""


def imported(paths: Sequence[Path], name: str, layer: str, even: bool) -> tuple[str, Imported]:
    """The program, and the parts of its files; `SpecError` for files of no program, or of both."""
    from . import from_accelforge, from_zigzag

    files, notes = [file for path in paths for file in _files(path)], Notes()
    programs = dict.fromkeys(program for path in paths if (program := program_of(path)))
    if len(programs) != 1:
        text = "has no file of accelforge or ZigZag" if not programs else "stand for both accelforge and ZigZag"
        raise SpecError.at(", ".join(map(shown, paths)), "", text)
    (program,) = programs
    if program == "accelforge":
        tables = from_accelforge.import_files(files, name, layer, notes)
    else:
        tables = from_zigzag.import_files(files, name, layer, even, notes)
    return program, Imported(tables, tuple(dict.fromkeys(notes.rows)))
