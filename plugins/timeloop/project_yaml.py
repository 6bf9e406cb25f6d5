"""YAML of a Timeloop project with the place of every value, and the notes on each value.

Only plain data is built. A tag on a table, such as `!Component`, is kept as text under `TAG`; any other tag is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from sparsemap.errors import SpecError, shortened
from sparsemap.files import read_bytes, shown

TAG = "!"
TAGS = ("Component", "Container", "Hierarchical", "Parallel", "Pipelined", "Nothing", "ArithmeticComponent")
SCALARS = tuple(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str"))
TEXTS = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
BYTES = 1 << 20
NODES = 20_000
"""Most values in a file; values repeated by aliases count every time."""
DEPTH = 50
INCLUDE = re.compile(r"^\{\{ *include_text\( *(['\"])(.+?)\1 *\) *\}\} *$", re.M)
"""The template of public layer files for shared parts."""
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
"""A number, including 1e-9, which the YAML standard of 2002 reads as text."""


@attrs.frozen
class YamlSource:
    """Place of a value."""

    file: str = ""
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (f"{self.file}:{self.line}" if self.line else self.file, self.key) if part)


class YamlTable(dict[str, Any]):
    """A mapping of a file, hyphens in keys replaced by underscores, with the place of every key."""

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


def _kind(value: Any, kind: Any, source: YamlSource, expected: str, needed: bool = False) -> Any:
    if (value is None and not needed) or isinstance(value, kind):
        return value
    raise error(source, f"expected {expected}, found {shortened(value)}")


# ------------------------------------------------------------------------------------------------------------------ notes

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


# ------------------------------------------------------------------------------------------------------------------ files


def read(path: Path) -> YamlTable:
    """The mapping in a file; `SpecError` for invalid YAML, a file beyond the limits, or a foreign tag."""
    file = shown(path)
    text = included(path, text_of(path))
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        check_size(node)
        found = _value(loader, node, YamlSource(file, 1), ()) if node is not None else None
    except yaml.YAMLError as problem:
        raise SpecError.at(file, "", f"is not YAML: {' '.join(str(problem).split())}") from None
    except RecursionError:
        raise SpecError.at(file, "", "is nested too deeply") from None
    except ValueError as problem:
        if isinstance(problem, SpecError):
            raise
        raise SpecError.at(file, "", str(problem)) from None
    if not isinstance(found, YamlTable):
        raise SpecError.at(file, "", f"expected a table with keys such as 'architecture', found {shortened(found)}")
    return found


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


def included(path: Path, text: str) -> str:
    """The text with its includes resolved: YAML files below the parent of the problem's folder."""

    def resolved(match: re.Match[str]) -> str:
        beside = (path.parent / match[2]).resolve()
        above = path.parent.resolve().parent
        if above not in beside.parents or beside.suffix not in (".yaml", ".yml"):
            text = f"includes {shortened(match[2])}, which is no YAML file below {shown(above)}"
            raise SpecError.at(shown(path), "", text)
        return text_of(beside)

    text = INCLUDE.sub(resolved, text)
    if "{{" in text or "{%" in text:
        line = text[: text.find("{%" if "{%" in text else "{{")].count("\n") + 1
        message = f"line {line}: is a template; only {{{{include_text('FILE')}}}} on a line of its own is resolved"
        raise SpecError.at(shown(path), "", message)
    return text


def _value(loader: Any, node: Any, source: YamlSource, above: tuple[int, ...]) -> Any:
    if id(node) in above:
        raise error(source, "an alias leads back to itself")
    above = (*above, id(node))
    if isinstance(node, yaml.MappingNode):
        tag = _tag(node, source, "map")
        loader.flatten_mapping(node)
        table = YamlTable(source)
        if tag:
            table[TAG] = tag
        for key_node, child in node.value:
            key = str(key_node.value).replace("-", "_") if isinstance(key_node, yaml.ScalarNode) else ""
            table.lines[key] = key_node.start_mark.line + 1
            table[key] = _value(loader, child, table.at(key), above)
        bases = table.pop("<<<", None)
        for base in bases if isinstance(bases, list) else [bases]:
            if isinstance(base, YamlTable):
                table.fill(base)
        return table
    if isinstance(node, yaml.SequenceNode):
        _tag(node, source, "seq")
        lines = enumerate(child.start_mark.line + 1 for child in node.value)
        places = [YamlSource(source.file, line, f"{source.key}[{i}]") for i, line in lines]
        return [_value(loader, child, place, above) for child, place in zip(node.value, places, strict=True)]
    if node.tag in SCALARS:
        try:
            found = loader.construct_object(node)
        except (ValueError, OverflowError, KeyError, IndexError) as problem:
            raise error(source, f"{shortened(node.value)} is no value: {problem}") from None
        return float(found) if isinstance(found, str) and NUMBER.fullmatch(found) and not node.style else found
    if node.tag in TEXTS:
        return str(node.value)
    raise error(source, f"tag {shortened(node.tag)} is not one of Timeloop's")


def _tag(node: Any, source: YamlSource, usual: str) -> str:
    if node.tag == f"tag:yaml.org,2002:{usual}":
        return ""
    if usual == "map" and node.tag[:1] == "!" and node.tag[1:] in TAGS:
        return str(node.tag[1:])
    raise error(source, f"tag {shortened(node.tag)} is not one of Timeloop's: {', '.join('!' + tag for tag in TAGS)}")


def merged(paths: list[Path]) -> YamlTable:
    """The tables of all files in one; a key in two files must have equal values, or be a list."""
    whole = YamlTable(YamlSource())
    for path in paths:
        for key, value in (table := read(path)).items():
            if isinstance(whole.get(key), list) and isinstance(value, list):
                whole[key] = whole[key] + value
            elif key in whole and isinstance(whole[key], Mapping) and isinstance(value, Mapping) and key != "problem":
                whole[key].update({name: item for name, item in value.items() if name not in whole[key]})
                whole[key].lines.update(table[key].lines)
            elif key in whole and whole[key] != value and key != "version":
                text = f"stands in another file too; name the files of one project, with one '{key}'"
                raise error(table.at(key), text)
            else:
                whole[key] = value
    return whole
