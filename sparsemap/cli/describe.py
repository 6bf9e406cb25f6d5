"""`sparsemap list KIND NAME`: class, fields with meanings, and origin of a piece.

The text below a field in the class is the meaning of the field.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

import attrs

from ..files import shown
from ..pieces.registry import RESERVED, Origin, Registry, is_path
from .keys import HEADER, keys_of, paragraphs


@attrs.frozen
class FieldText:
    """A key of a spec: value, origin of the value, and meaning."""

    key: str
    value: Any
    state: str
    """"set", "default" or "required"."""
    doc: str


@attrs.frozen
class Description:
    kind: str
    name: str
    type_name: str
    description: str
    about_type: str
    source: str
    origin: Mapping[str, str]
    fields: tuple[FieldText, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return attrs.asdict(self)

    def text(self, width: int = 100) -> str:
        """Text with keys of the spec before defaults."""
        title = f"{self.kind} {self.name}" + (f"   (type {self.type_name})" if self.type_name != self.name else "")
        lines = [title]
        for text in dict.fromkeys((self.description, *self.about_type.split("\n\n"))):
            lines += textwrap.wrap(text, width)
        lines.append("")
        plugin = f"plugin {self.origin['plugin']} {self.origin['version']}".rstrip() if self.origin["plugin"] else ""
        lines += [f"from    {', '.join(filter(None, [plugin, self.origin['file']]))}"]
        if self.source:
            lines += textwrap.wrap(f"source  {self.source}", width, subsequent_indent=" " * 8)
        for state, heading in (("required", "required"), ("set", "set"), ("default", "by default")):
            found = [field for field in self.fields if field.state == state]
            if found:
                lines += ["", heading]
            for field in found:
                value = "" if state == "required" else f" = {toml_text(field.value, 4)}"
                for line in f"  {field.key}{value}".split("\n"):
                    indent = " " * (len(line) - len(line.lstrip()) + 4)
                    words = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": indent}
                    lines += textwrap.wrap(line, width, **words) or [""]  # type: ignore[arg-type]
                lines += textwrap.wrap(field.doc, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
        return "\n".join(lines) + "\n"


def described(registry: Registry, kind: str, name: str) -> Description:
    """The piece of a kind, or a type of the name; SpecError with the nearest name otherwise."""
    types, names = registry.types(kind), registry.names(kind)
    if is_path(name):
        named = registry.resolve(kind, name).name  # which tells what is wrong with it
        table, origin, name = registry.spec(kind, name), Origin("", shown(name)), named
    elif name in names:
        table, origin = registry.spec(kind, name), registry.origin(kind, name)
    elif name in types:
        table, origin = {"type": name}, registry.type_origin(kind, name)
    else:
        raise registry.no_name(kind, name, [*names, *types])
    cls = types[table["type"]]
    known = {key: field for key, field in keys_of(cls).items() if key not in HEADER}
    fields = []
    for key, field in known.items():
        state = "required" if field.default is attrs.NOTHING else "default"
        value = None if state == "required" else field.default
        fields.append(FieldText(key, table.get(key, value), "set" if key in table else state, field.doc))
    extra = [key for key in table if key not in (*known, *HEADER, *RESERVED)]
    fields += [FieldText(key, table[key], "set", "") for key in extra]
    texts = (str(table.get("description", "")), "\n\n".join(paragraphs(cls)), str(table.get("source", "")))
    where = {"plugin": origin.plugin, "version": origin.version, "file": origin.file}
    return Description(kind, name, table["type"], *texts, where, tuple(fields))


def toml_text(value: Any, indent: int = 0) -> str:
    """A value as in a spec; a list of tables has a line per table."""
    if value is None:
        return "(absent)"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key} = {toml_text(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        items = [toml_text(item) for item in value]
        if any(isinstance(item, Mapping) for item in value) and len(value) > 1:
            space = " " * indent
            return "[\n" + "".join(f"{space}{item},\n" for item in items) + " " * max(indent - 2, 0) + "]"
        return f"[{', '.join(items)}]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
