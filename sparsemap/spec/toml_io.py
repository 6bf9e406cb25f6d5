"""TOML files: read with the standard library's `tomllib`, written with `toml`; `tables` makes them objects, and back.

`toml` gets plain values only, and strings, floats and lists are spelled here, because that package writes NumPy scalars
as strings and mistakes some backslashes. Files are written whole or not at all.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import toml

from ..errors import SpecError, nearest
from .field_types import converter, join, placed
from .structuring import fields, plain, reference_hook, structure, structure_hook, unstructure

__all__ = [
    "converter",
    "dumps",
    "fields",
    "is_temporary",
    "join",
    "merge",
    "placed",
    "read",
    "reference_hook",
    "shown",
    "structure",
    "structure_hook",
    "unstructure",
    "write",
    "write_text_atomic",
]


def shown(path: str | os.PathLike[str]) -> str:
    """A path as messages show it: relative to the working directory where it lies below."""
    try:
        return str(Path(os.path.abspath(path)).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The table in a TOML file. Raises SpecError if it is not there, not UTF-8, or not TOML (with line and column)."""
    path, file = Path(path), shown(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        siblings = [entry.name for entry in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        guess = nearest(path.name, siblings)
        raise SpecError.at(file, "", "no such file" + (f"; did you mean {guess!r}?" if guess else "")) from None
    except IsADirectoryError:
        raise SpecError.at(file, "", "is a folder, expected a TOML file") from None
    except UnicodeDecodeError as error:
        raise SpecError.at(file, "", f"is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise SpecError.at(file, "", f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a path with a null character
        raise SpecError.at(repr(file), "", f"cannot be read: {error}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, where = _split_place(str(error))
        raise SpecError.at(file, where, f"is not TOML: {message}") from None
    except RecursionError:
        raise SpecError.at(file, "", "is nested too deeply") from None
    except ValueError:  # Python refuses to read whole numbers of thousands of digits
        raise SpecError.at(file, "", "is not TOML: a number has too many digits") from None


def _split_place(message: str) -> tuple[str, str]:
    """The text of a TOML error, and the line and column that stand in parentheses at its end."""
    match = re.fullmatch(r"(.*) \(at (line \d+, column \d+|end of document)\)", message, re.S)
    return (match[1], match[2]) if match else (message, "")


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the keys of `over`: tables merge key by key, everything else (lists too) is replaced.

    A table inside that names another `type` replaces as well: the keys of one class mean nothing to another.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            alike = value.get("type", below.get("type")) == below.get("type")
            value = merge(below, value) if alike else value
        merged[key] = value
    return merged


def write(path: str | os.PathLike[str], mapping: Mapping[str, Any] | Any) -> None:
    """Writes a table, or an attrs object, as a TOML file, whole or not at all."""
    write_text_atomic(path, dumps(mapping))


def write_text_atomic(path: str | os.PathLike[str], text: str) -> None:
    """Writes a UTF-8 file whole or not at all: readers see the old text or the new one. Makes missing folders."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_temporary(path: Path) -> bool:
    """Whether a file is what `write_text_atomic` leaves when the process dies in the middle."""
    return re.fullmatch(r"\..+\.[0-9a-f]{8}\.tmp", path.name) is not None


def dumps(mapping: Mapping[str, Any] | Any) -> str:
    """TOML text of a table or an attrs object. Keys whose value is None are left out.

    NumPy scalars and arrays, tuples, sets, paths, enums and attrs objects become plain values; anything else that TOML
    cannot hold raises TypeError with the path to it.
    """
    return toml.dumps(_inlined_lists(plain(mapping)), encoder=_Encoder())


class _Inline:
    """A table inside a list of other things, which has to be written on one line."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = table


class _Encoder(toml.TomlEncoder):
    """`toml`'s encoder with strings, floats, lists and inline tables that always read back as they were."""

    def __init__(self) -> None:
        super().__init__()
        self.dump_funcs |= {str: _quoted, float: repr, _Inline: self._inline}

    def dump_list(self, v: list[Any]) -> str:
        return "[" + ", ".join(str(self.dump_value(item)) for item in v) + "]"

    def _inline(self, value: _Inline) -> str:
        pairs = (f"{_key(key)} = {self.dump_value(_inlined(item))}" for key, item in value.table.items())
        return "{ " + ", ".join(pairs) + " }" if value.table else "{}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


def _inlined(value: Any) -> Any:
    """The value with every table in it marked as inline."""
    if isinstance(value, dict):
        return _Inline(value)
    return [_inlined(item) for item in value] if isinstance(value, list) else value


def _inlined_lists(table: dict[str, Any]) -> dict[str, Any]:
    """The table with every table inside a list marked as inline, save those that are a list's own items."""
    return {key: _prepared(value) for key, value in table.items()}


def _prepared(value: Any) -> Any:
    if isinstance(value, dict):
        return _inlined_lists(value)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return [{key: _inlined(below) for key, below in item.items()} for item in value]
    return _inlined(value)
