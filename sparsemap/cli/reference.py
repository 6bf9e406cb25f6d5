"""The reference of all keys as Markdown: a section per kind, an item per key."""

from __future__ import annotations

import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ..errors import a
from ..pieces.contracts.base import Naming
from ..pieces.registry import Registry
from ..spec.wording import expected
from .describe import toml_text
from .keys import HEADER, LATER, Key, first_sentence, keys_of

HEAD = """# Reference of keys

Every key that a spec file may have, by kind and type, as `sparsemap extra schema --all --markdown` prints it. All specs have
`kind` and `name`; any may have `type` (its class; each section names the default), `description`, `source`, `extends`
(a spec to start from, a name or a file) and `override`. `sparsemap list KIND NAME` shows what a piece has,
`sparsemap extra schema KIND` the same as a JSON Schema.
"""
WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def text(registry: Registry, kinds: Iterable[str]) -> str:
    """The pages of some kinds as one."""
    return "\n".join([HEAD, *(section(registry, kind) for kind in kinds)])


def section(registry: Registry, kind: str) -> str:
    """The types of a kind; SpecError for an unknown kind."""
    lines = [f"## {kind}", ""]
    for name, cls in registry.types(kind).items():
        default = ", the default" if name == cls.default_type and len(registry.types(kind)) > 1 else ""
        lines += [f"### {kind}: `{name}`{default}", "", *wrapped(f"{first_sentence(cls)}."), ""]
        keys = {key: about for key, about in keys_of(cls).items() if key not in HEADER}
        lines += listed(keys)
        for inner in dict.fromkeys(cls for about in keys.values() for cls in objects(about.type)):
            used = ", ".join(f"`{key}`" for key, about in keys.items() if inner in objects(about.type))
            lines += [*wrapped(f"In {used}: {first_sentence(inner)}."), "", *listed(keys_of(inner))]
    return "\n".join(lines)


def listed(keys: Mapping[str, Key]) -> list[str]:
    """An item per key."""
    lines = [line for key in keys.values() for line in wrapped(item(key))]
    return [*lines, ""] if lines else ["No keys of its own.", ""]


def item(key: Key) -> str:
    parts = [words(key.type, key.names) + limits(key.limits)]
    parts += [f"in {key.unit}".replace("in such as", "such as")] if key.unit else []
    if key.default is attrs.NOTHING:
        parts += ["required"]
    elif key.default is not None:
        parts += [key.default if key.default == LATER else f"default `{toml_text(key.default)}`"]
    return f"- `{key.name}`: {', '.join(parts)}." + f" {key.doc}" * bool(key.doc)


def wrapped(line: str) -> list[str]:
    return textwrap.wrap(
        line, 120, subsequent_indent="  " * line.startswith("- "), break_long_words=False, break_on_hyphens=False
    )


def words(cls: Any, names: Naming | None = None, several: bool = False) -> str:
    """The type in words, with elements of lists and tables; `several` in the plural."""
    base, args = typing.get_origin(cls) or cls, typing.get_args(cls)
    inside = [arg for arg in args if arg is not ...]
    kind = getattr(base, "kind", "") or (names.kind if names else "")
    if base in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(words(arg, names, several) for arg in args if arg is not type(None)))
    if getattr(base, "kind", ""):
        return f"names or tables of {plural(kind)}" if several else f"name or table of {a(kind)}"
    if kind and base is str:
        return f"names of {plural(kind)}" if several else f"name of {a(kind)}"
    if isinstance(base, type) and issubclass(base, Mapping):
        if names and args == (str, Any) and several:
            return f"tables of {plural(kind)}"
        held = f" of {words(inside[1], names, True)}" if inside[1:] and inside[1] is not Any else ""
        return ("tables" if several else expected(base).removeprefix("a ")) + held
    if base in (tuple, list, set, frozenset) and inside:
        return f"{'lists' if several else 'list'} of {words(inside[0], names, True)}"
    one = WORDS.get(base) or expected(cls).removeprefix("a ").removeprefix("the ")
    return one if one == "true or false" or not several else f"{one}s"


def plural(kind: str) -> str:
    return kind if kind == "hardware" else f"{kind}s"


def limits(limits: Mapping[str, Any]) -> str:
    """Limits in words, such as ", at least 1"."""
    signs = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    found = [f"{signs[word]} {value:g}" for word, value in limits.items() if word in signs]
    found += [" or ".join(f"`{option}`" for option in limits["enum"])] if "enum" in limits else []
    return "".join(f", {each}" for each in found)


def objects(cls: Any) -> list[type]:
    """Classes of tables within a type that are no pieces."""
    base, args = typing.get_origin(cls) or cls, typing.get_args(cls)
    if isinstance(base, type) and attrs.has(base) and not getattr(base, "kind", ""):
        return [base]
    return [inner for arg in args for inner in objects(arg)]
