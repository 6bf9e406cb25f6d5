"""YAML files of other programs: plain tables with the place of every value.

Only plain data is built. A tag on a table, such as `!Component`, is kept as text under `TAG` if the reader knows the
tag; any other tag is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..errors import SpecError, shortened
from ..files import read_bytes, shown

TAG = "!"
SCALARS = tuple(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str"))
TEXTS = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
BYTES = 1 << 20
NODES = 20_000
"""Most values in a file; values repeated by aliases count every time."""
DEPTH = 50
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
"""A number, including 1e-9, which the YAML standard of 2002 reads as text."""


@attrs.frozen
class Tags:
    """Tags that a program's files may have."""

    owner: str = "YAML"
    """Name of the program."""
    names: Sequence[str] = ()
    example: str = ""
    """A key of the files, for error messages."""
    hyphens: bool = False
    """Whether keys keep hyphens."""


@attrs.frozen
class YamlSource:
    """Place of a value."""

    file: str = ""
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (f"{self.file}:{self.line}" if self.line else self.file, self.key) if part)


class YamlTable(dict[str, Any]):
    """A mapping of a file, hyphens in keys usually replaced by underscores, with the place of every key."""

    def __init__(self, source: YamlSource) -> None:
        super().__init__()
        self.source = source
        self.lines: dict[str, int] = {}

    def fill(self, base: YamlTable) -> None:
        """Add the keys missing in this table from `base`, in nested tables as well."""
        for key, value in base.items():
            if key not in self:
                self[key], self.lines[key] = value, base.at(key).line
            elif isinstance(value, YamlTable) and isinstance(self[key], YamlTable):
                self[key].fill(value)

    def at(self, key: str) -> YamlSource:
        path = f"{self.source.key}.{key}" if self.source.key else key
        return YamlSource(self.source.file, self.lines.get(key, self.source.line), path)

    def table(self, key: str) -> YamlTable:
        """The table under a key, empty if absent; `SpecError` for any other value."""
        return _kind(self.get(key), YamlTable, self.at(key), "a table") or YamlTable(self.at(key))

    def rows(self, key: str) -> list[YamlTable]:
        """The tables of the list under a key."""
        found = _kind(self.get(key), list, self.at(key), "a list of tables") or []
        return [_kind(row, YamlTable, self.at(key), "a table", True) for row in found]

    def names(self, key: str) -> list[str]:
        """The names under a key; a single name may stand without brackets."""
        found = self.get(key)
        found = [found] if isinstance(found, str) else _kind(found, list, self.at(key), "a list of names") or []
        return [_kind(name, str, self.at(key), "a name", True) for name in found]

    def wholes(self, key: str) -> list[int]:
        """The whole numbers from 1 on of the list under a key."""
        found = _kind(self.get(key), list, self.at(key), "a list of whole numbers") or []
        return [whole(value, self.at(key)) for value in found]

    def number(self, *keys: str) -> float | None:
        """The number under the first present key; `SpecError` for any other value, or below zero."""
        for key in keys:
            if (found := self.get(key)) is not None:
                if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 2**63:
                    raise error(self.at(key), f"expected a number, found {shortened(found)}")
                return found
        return None


def error(source: YamlSource, text: str) -> SpecError:
    """A mistake at a place."""
    return SpecError.at(source.file, source.key, f"line {source.line}: {text}" if source.line else text)


def whole(value: Any, source: YamlSource) -> int:
    """The value, if a whole number from 1 to 2^63 - 1; `SpecError` otherwise."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is int and 1 <= value < 2**63:
        return value
    raise error(source, f"expected a whole number from 1 on, found {shortened(value)}")


def _kind(value: Any, kind: Any, source: YamlSource, expected: str, needed: bool = False) -> Any:
    if (value is None and not needed) or isinstance(value, kind):
        return value
    raise error(source, f"expected {expected}, found {shortened(value)}")


# ------------------------------------------------------------------------------------------------------------------ files


def read(path: Path, tags: Tags, expand: Callable[[Path, str], str] = lambda _, text: text) -> YamlTable:
    """The mapping in a file; `SpecError` for invalid YAML, a file beyond the limits, or a foreign tag.

    `expand`: replaces the text of the file, whose path comes first, for instance to resolve includes."""
    found = read_value(path, tags, expand)
    if not isinstance(found, YamlTable):
        keys = f" with keys such as '{tags.example}'" if tags.example else ""
        raise SpecError.at(shown(path), "", f"expected a table{keys}, found {shortened(found)}")
    return found


def read_value(path: Path, tags: Tags, expand: Callable[[Path, str], str] = lambda _, text: text) -> Any:
    """Like `read`, for a file that may also hold a list."""
    import yaml

    file, text = shown(path), expand(path, text_of(path))
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        check_size(node)
        return _value(loader, node, YamlSource(file, 1), (), tags) if node is not None else None
    except yaml.YAMLError as problem:
        raise SpecError.at(file, "", f"is not YAML: {' '.join(str(problem).split())}") from None
    except RecursionError:
        raise SpecError.at(file, "", "is nested too deeply") from None
    except ValueError as problem:
        if isinstance(problem, SpecError):
            raise
        raise SpecError.at(file, "", str(problem)) from None


def check_size(node: Any) -> None:
    """Refuse recursive or multiplying aliases, before any value is built."""
    level, count = [node], 0
    for _ in range(DEPTH):
        count += len(level)
        if count > NODES:
            raise ValueError(f"holds more than {NODES:,} values")
        parents = [parent.value for parent in level if parent is not None and not isinstance(parent.value, str)]
        children = [child if isinstance(child, tuple) else (child,) for value in parents for child in value]
        if not (level := [part for child in children for part in child]):
            return
    raise ValueError(f"is nested more than {DEPTH} deep")


def text_of(path: Path, limit: int = BYTES) -> str:
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError.at(shown(path), "", f"is not UTF-8 text (byte {error.start})") from None


def _value(loader: Any, node: Any, source: YamlSource, above: tuple[int, ...], tags: Tags) -> Any:
    import yaml

    if id(node) in above:
        raise error(source, "an alias leads back to itself")
    above = (*above, id(node))
    if isinstance(node, yaml.MappingNode):
        tag = _tag(node, source, "map", tags)
        loader.flatten_mapping(node)
        table = YamlTable(source)
        if tag:
            table[TAG] = tag
        for key_node, child in node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            key = key if tags.hyphens else key.replace("-", "_")
            table.lines[key] = key_node.start_mark.line + 1
            table[key] = _value(loader, child, table.at(key), above, tags)
        bases = table.pop("<<<", None)
        for base in bases if isinstance(bases, list) else [bases]:
            if isinstance(base, YamlTable):
                table.fill(base)
        return table
    if isinstance(node, yaml.SequenceNode):
        _tag(node, source, "seq", tags)
        lines = enumerate(child.start_mark.line + 1 for child in node.value)
        places = [YamlSource(source.file, line, f"{source.key}[{i}]") for i, line in lines]
        return [_value(loader, child, place, above, tags) for child, place in zip(node.value, places, strict=True)]
    if node.tag in SCALARS:
        try:
            found = loader.construct_object(node)
        except (ValueError, OverflowError, KeyError, IndexError) as problem:
            raise error(source, f"{shortened(node.value)} is no value: {problem}") from None
        return float(found) if isinstance(found, str) and NUMBER.fullmatch(found) and not node.style else found
    if node.tag in TEXTS:
        return str(node.value)
    raise _foreign(node, source, tags)


def _tag(node: Any, source: YamlSource, usual: str, tags: Tags) -> str:
    if node.tag == f"tag:yaml.org,2002:{usual}":
        return ""
    if usual == "map" and node.tag[:1] == "!" and node.tag[1:] in tags.names:
        return str(node.tag[1:])
    raise _foreign(node, source, tags)


def _foreign(node: Any, source: YamlSource, tags: Tags) -> SpecError:
    names = f": {', '.join('!' + name for name in tags.names)}" if tags.names and node.tag[:1] == "!" else ""
    return error(source, f"tag {shortened(node.tag)} is not one of {tags.owner}'s{names}")
