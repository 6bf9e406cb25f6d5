"""TOML files, read with the standard library's `tomllib`; `toml_text` writes TOML."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import SpecError, placed, unknown
from ..files import read_bytes, shown
from .structuring import expected_found, join

YAML = (".yaml", ".yml")
"""Endings of files with a spec in YAML: the same keys, as nested tables."""


def read(path: str | os.PathLike[str], kind: str = "") -> dict[str, Any]:
    """The table in a TOML file, or in a file of `YAML`. Raises SpecError for a missing file, or for anything but UTF-8
    and TOML or YAML (with line and column).

    For a missing file, the error names the file of a similar name beside it, if of this `kind`. The key `format` of a
    file by SparseMap is checked and left out."""
    text = b""
    try:
        if os.fspath(path).endswith(YAML):
            from .yaml_tables import Tags
            from .yaml_tables import read as read_yaml

            table: dict[str, Any] = read_yaml(Path(path), Tags("SparseMap", hyphens=True))
        else:
            text = read_bytes(path)
            table = tomllib.loads(text.decode("utf-8-sig"))
        _check_depth(table)
    except (SpecError, ValueError, RecursionError) as error:
        from .unread import why_not

        raise why_not(Path(path), kind, text, error) from None
    if "format" not in table:
        return table
    from ..file_formats import opened_toml

    return opened_toml(table, kind, shown(path))


def _check_depth(table: Any) -> None:
    """RecursionError for tables nested deeper than `DEEPEST`, as by dotted keys, which parsers read in a loop."""
    inner = [table]
    for _ in range(DEEPEST):
        inner = [
            x for one in inner for x in (one.values() if isinstance(one, dict) else one) if isinstance(x, dict | list)
        ]
    if inner:
        raise RecursionError


DEEPEST = 100
HEAD = re.compile(rb'(?:\s*#[^\n]*\n)*\s*kind = "([\w-]+)"\r?\nname = "([\w-]+)"\r?\n')


def head(path: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Kind and name from the first lines of a spec, or None if elsewhere; the rest of the file is not parsed."""
    found = HEAD.match(read_bytes(path))
    return found and (found[1].decode(), found[2].decode())


THOSE = "..."
"""Placeholder in a list for the items of the base list."""


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the keys of `over`: tables merge key by key, everything else (lists too) is replaced.

    In a list, "..." stands for the items of the list of `base`. A table over a list of named tables changes the tables
    by name. An inner table with another `type` (or `class`) also replaces: keys of a class have no meaning for another
    class. SpecError for an unknown name."""
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
