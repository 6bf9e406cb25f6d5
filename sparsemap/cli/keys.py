"""Keys of specs, read from the classes: types, units, defaults, limits, and meanings.

`list`, `extra schema` and the reference are three ways to write the keys."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import Any

import attrs

from ..pieces.contracts.base import NAMES, UNIT, Naming
from ..spec.structuring import typed_keys
from ..spec.unstructuring import plain as toml_value
from ..spec.unstructuring import unstructure

HEADER = ("name", "description", "source")
SUFFIXES = {"_pj_per_bit": "pJ/bit", "_pj": "pJ", "_nm": "nm", "_kib": "KiB", "_bits": "bit"}
"""Units by suffix of field names."""
LATER = "(depends on other keys)"


@attrs.frozen
class Key:
    """A key of a spec."""

    name: str
    type: Any
    default: Any
    """Default in spec notation; attrs.NOTHING: required; None: absent."""
    names: Naming | None
    """Kind of pieces for texts and tables of the key; None if given by the type, or for keys without pieces."""
    unit: str
    doc: str
    limits: Mapping[str, Any]
    """Limits of the value in words of JSON Schema, such as `minimum`; for the items of a list or table under `items`."""
    as_it_stands: bool
    """Whether the class takes the value unchanged from the file, of any type."""


def keys_of(cls: type) -> dict[str, Key]:
    """The keys of a class by name."""
    docs, found = field_docs(cls), {}
    for name, field in typed_keys(cls).items():
        unit = field.metadata.get(UNIT) or next((u for end, u in SUFFIXES.items() if field.name.endswith(end)), "")
        converter: Any = field.converter
        found[name] = Key(
            name, field.type, _default(field), field.metadata.get(NAMES), unit, docs.get(field.name, ""),
            dict(_limits(field.validator)), converter is not None and not isinstance(converter, type),
        )  # fmt: skip
    return found


def _default(field: attrs.Attribute[Any]) -> Any:
    """The default in spec notation."""
    default: Any = field.default
    if default is attrs.NOTHING:
        return default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        if default.takes_self:
            return LATER
        default = default.factory()
    if attrs.has(type(default)):
        return unstructure(default) or getattr(default, "type_name", {})
    with suppress(TypeError):
        return None if default is None else toml_value(default)
    return str(default)


def _limits(validator: Any) -> Iterator[tuple[str, Any]]:
    """Limits from validators of attrs in words of JSON Schema; other validators give none."""
    kind = type(validator).__name__.strip("_")
    if kind == "AndValidator":
        for each in validator._validators:
            yield from _limits(each)
    elif kind == "OptionalValidator":
        yield from _limits(validator.validator)
    elif kind == "NumberValidator":
        words = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}
        yield words[validator.compare_op], validator.bound
    elif kind == "InValidator":
        yield "enum", list(validator.options)
    elif kind in ("MinLengthValidator", "MaxLengthValidator"):
        yield ("minItems", validator.min_length) if kind.startswith("Min") else ("maxItems", validator.max_length)
    elif kind in ("DeepIterable", "DeepMapping"):
        inner = validator.member_validator if kind == "DeepIterable" else validator.value_validator
        yield "items", dict(_limits(inner))
        outer = validator.iterable_validator if kind == "DeepIterable" else validator.mapping_validator
        yield from _limits(outer)


def paragraphs(cls: type) -> list[str]:
    """Paragraphs of a class's own docstring, each on a line."""
    return [plain(text) for text in inspect.cleandoc(vars(cls).get("__doc__") or "").split("\n\n")]


def first_sentence(cls: type) -> str:
    """The first sentence of the class's docstring, without its full stop."""
    return re.split(r"(?<=[a-z0-9)])\.(?:\s|$)", paragraphs(cls)[0], maxsplit=1)[0]


def plain(text: str) -> str:
    return " ".join(text.split())


def field_docs(cls: type) -> dict[str, str]:
    """Docstrings of the fields of a class and its base classes, by field."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if attrs.has(base):
            docs |= _own_docs(base)
    return docs


@lru_cache(1024)  # to find the source of a class, Python reads all of its file
def _own_docs(cls: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    docs = {}
    for field, below in pairwise(getattr(tree, "body", [])):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = below.value if isinstance(below, ast.Expr) else None
            if isinstance(text, ast.Constant):
                docs[field.target.id] = plain(str(text.value))
    return docs
