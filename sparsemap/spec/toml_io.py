"""TOML files: read with the standard library's `tomllib`, written with `toml` (`toml_text`), whole or not at all."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import SpecError, nearest, placed, shortened, unknown
from ..files import read_bytes, shown, write_text
from .structuring import expected_found, join

PLAINER = {
    "Cannot overwrite a value": "the key is there already",
    "Invalid value": "expected a value; texts stand in quotes",
}
"""What some messages of `tomllib` mean."""


def read(path: str | os.PathLike[str], kind: str = "") -> dict[str, Any]:
    """The table in a TOML file. Raises SpecError if it is not there, not UTF-8, or not TOML (with line and column).

    If there is no such file, the error names the one beside it that was most likely meant, if it is of this `kind`.
    """
    path = Path(path)
    if not os.path.lexists(path) and (guess := meant(path, kind)):
        raise SpecError.at(shown(path), "", f"no such file; did you mean {guess!r}?")
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError.at(shown(path), "", f"is not UTF-8 text (byte {error.start})") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, where = _split_place(str(error))
        raise SpecError.at(shown(path), where, f"is not TOML: {message}{_line_at(text, where)}") from None
    except RecursionError:
        raise SpecError.at(shown(path), "", "is nested too deeply") from None
    except ValueError:  # Python refuses to read whole numbers of thousands of digits
        raise SpecError.at(shown(path), "", "is not TOML: a number has too many digits") from None


HEAD = re.compile(rb'(?:\s*#[^\n]*\n)*\s*kind = "([\w-]+)"\r?\nname = "([\w-]+)"\r?\n')


def head(path: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Kind and name of a spec that begins with them, or None; the rest of the file is not looked at."""
    found = HEAD.match(read_bytes(path))
    return found and (found[1].decode(), found[2].decode())


def meant(path: Path, kind: str) -> str | None:
    """The file in the folder whose name is near this one, those of another kind left out."""
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
    """The text of a TOML error, and the line and column that stand in parentheses at its end."""
    match = re.fullmatch(r"(.*) \(at (line \d+, column \d+|end of document)\)", message, re.S)
    text, where = (match[1], match[2]) if match else (message, "")
    return PLAINER.get(text, text), where


def _line_at(text: str, where: str) -> str:
    """The line of a mistake, for its message."""
    place = re.match(r"line (\d+)", where)
    line = text.splitlines()[int(place[1]) - 1 :][:1] if place else []
    return f", in {shortened(line[0].strip())}" if line and line[0].strip() else ""


THOSE = "..."
"""In a list over another one: its items."""


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the keys of `over`: tables merge key by key, everything else (lists too) is replaced.

    In a list, "..." stands for the items of the list of `base`. A table over a list of named tables changes these, each under
    its name. A table inside that names another `type` (or `class`) replaces as well: the keys of one class mean nothing to
    another. SpecError for a name that is not there.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        with placed(join("", key)):
            if isinstance(value, Mapping) and isinstance(below, Mapping):
                alike = all(value.get(word, below.get(word)) == below.get(word) for word in ("type", "class"))
                value = merge(below, value) if alike else value
            elif isinstance(value, Mapping) and _are_named(below):
                value = _merge_named(below, value)
            elif isinstance(value, list) and isinstance(below, list | tuple) and THOSE in value:
                value = [one for item in value for one in (below if item == THOSE else [item])]
        merged[key] = value
    return merged


def _are_named(items: Any) -> bool:
    items = items if isinstance(items, list | tuple) else [None]
    return all(isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in items)


def _merge_named(items: Any, changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    by_name = {item["name"]: item for item in items}
    for name, change in changes.items():
        if name not in by_name:
            raise SpecError.at("", join("", name), unknown("entry", name, by_name))
        if not isinstance(change, Mapping):
            raise SpecError.at("", join("", name), expected_found(dict, change))
    merged = merge(by_name, changes)
    return [{"name": item["name"], **merged[item["name"]]} for item in items]


def write(path: str | os.PathLike[str], mapping: Mapping[str, Any] | Any) -> None:
    """Writes a table, or an attrs object, as a TOML file, whole or not at all."""
    write_text(path, dumps(mapping))


def dumps(mapping: Mapping[str, Any] | Any) -> str:
    """TOML text of a table or an attrs object. Keys whose value is None are left out.

    NumPy scalars and arrays, tuples, sets, paths, enums and attrs objects become plain values; anything else that TOML
    cannot hold raises TypeError with the path to it.
    """
    from .toml_text import text

    return text(mapping)


def inline(mapping: Mapping[str, Any]) -> str:
    """A table as TOML has it within a line, `{ k = 64, c = 3 }`."""
    from .toml_text import inline

    return inline(mapping)
