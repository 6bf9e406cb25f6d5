"""TOML text by the package `toml`. The package gets plain values only. Strings, floats and lists are formatted here,
because the package writes NumPy scalars as strings and mishandles some backslashes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import toml

from ..writing import write_text
from .unstructuring import plain


def write(path: str | os.PathLike[str], mapping: Mapping[str, Any] | Any) -> None:
    """Writes a table, or an attrs object, as a TOML file, whole or not at all."""
    write_text(path, dumps(mapping))


def dumps(mapping: Mapping[str, Any] | Any) -> str:
    """TOML text of a table or an attrs object. Keys with the value None are left out.

    NumPy scalars and arrays, tuples, sets, paths, enums and attrs objects become plain values; any other value without
    a TOML form raises TypeError with its path."""
    return toml.dumps(_sections(plain(mapping)), encoder=_Encoder())


def inline(mapping: Mapping[str, Any]) -> str:
    """A table in TOML's inline form, `{ k = 64, c = 3 }`."""
    return str(_Encoder().dump_value(_hidden(plain(mapping))))


class _Encoder(toml.TomlEncoder):
    """`toml`'s encoder with strings, floats, lists and inline tables safe to read back unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.dump_funcs |= {str: _quoted, float: repr, dict: self._inline, MappingProxyType: self._inline}

    def dump_list(self, v: list[Any]) -> str:
        return "[" + ", ".join(str(self.dump_value(item)) for item in v) + "]"

    def _inline(self, table: Mapping[str, Any]) -> str:
        pairs = (f"{_key(key)} = {self.dump_value(value)}" for key, value in table.items())
        return "{ " + ", ".join(pairs) + " }" if table else "{}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


def _sections(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table with all inline tables hidden: `toml` makes a section of every dict, in a list too."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found[key] = _sections(value)
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            found[key] = [{inner: _hidden(item) for inner, item in row.items()} for row in value]
        else:
            found[key] = _hidden(value)
    return found


def _hidden(value: Any) -> Any:
    return MappingProxyType(value) if isinstance(value, dict) else tuple(value) if isinstance(value, list) else value
