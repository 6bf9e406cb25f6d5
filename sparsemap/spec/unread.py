"""Unreadable TOML files: the reason, the place, and a file of a similar name."""

from __future__ import annotations

import os
import re
import tomllib
from contextlib import suppress
from pathlib import Path

from ..errors import SpecError, nearest, shortened
from ..files import read_bytes, shown

PLAINER = {
    "Cannot overwrite a value": "the key is there already",
    "Invalid value": "expected a value; texts stand in quotes",
}
"""Plainer wording of some `tomllib` messages."""


def why_not(path: Path, kind: str, text: bytes, error: Exception) -> SpecError:
    """The error for a file with this text. For a missing file, the error suggests a file of this `kind` beside it."""
    if not os.path.lexists(path) and (guess := meant(path, kind)):
        return SpecError.at(shown(path), "", f"no such file; did you mean {guess!r}?")
    if isinstance(error, SpecError):
        return error
    if isinstance(error, UnicodeDecodeError):
        return SpecError.at(shown(path), "", f"is not UTF-8 text (byte {error.start})")
    if isinstance(error, tomllib.TOMLDecodeError):
        message, where = _split_place(str(error))
        # a service may be told to read any file: what is in another than a spec stays there
        line = _line_at(text.decode("utf-8-sig"), where) if path.suffix == ".toml" else ""
        return SpecError.at(shown(path), where, f"is not TOML: {message}{line}")
    if isinstance(error, RecursionError):
        return SpecError.at(shown(path), "", "is nested too deeply")
    return SpecError.at(shown(path), "", "is not TOML: a number has too many digits")  # which Python refuses to read


def meant(path: Path, kind: str) -> str | None:
    """The file in the folder with the nearest name, without files of another kind."""
    names, entries = {}, list[Path]()
    with suppress(OSError):
        entries = list(path.parent.glob("*.toml"))
    for entry in entries:
        with suppress(SpecError):
            said = re.search(rb"""^kind *= *["']([\w-]+)""", read_bytes(entry), re.M)
            if not kind or not said or said[1].decode() == kind:
                names[entry.stem] = entry.name
    return names.get(nearest(path.stem, names) or "")


def _split_place(message: str) -> tuple[str, str]:
    """The text of a TOML error, and the line and column in parentheses at its end."""
    match = re.fullmatch(r"(.*) \(at (line \d+, column \d+|end of document)\)", message, re.S)
    text, where = (match[1], match[2]) if match else (message, "")
    return PLAINER.get(text, text), where


def _line_at(text: str, where: str) -> str:
    """The line of a mistake, for its message."""
    place = re.match(r"line (\d+)", where)
    line = text.splitlines()[int(place[1]) - 1 :][:1] if place else []
    return f", in {shortened(line[0].strip())}" if line and line[0].strip() else ""
