"""Attrs objects to descriptive tables of TOML files."""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from .structuring import join, keys


def unstructure(obj: Any, path: str = "", whole: bool = False) -> dict[str, Any]:
    """Table of an attrs object: fields different from their defaults, or all fields with `whole`, as plain values.

    A piece of a non-default type also gets the key `type`. `path` is for messages, as in `plain`."""
    cls = type(obj)
    type_name = getattr(cls, "type_name", "")
    table = {"type": type_name} if type_name and type_name != getattr(cls, "default_type", "") else {}
    for key, field in keys(cls).items():
        value = getattr(obj, field.name)
        if value is not None and (whole or not _same(value, default(field, obj))):
            table[key] = plain(value, join(path, key))
    return table


def plain(value: Any, path: str = "") -> Any:
    """The value in TOML's types; raises TypeError with the path of a value without a TOML form."""
    if type(value) in (str, int, float, bool):
        return value
    if isinstance(value, enum.Enum):
        value = value.value
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        value = value.tolist()
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, os.PathLike):
        return str(value)
    if attrs.has(type(value)):
        return unstructure(value, path)
    if isinstance(value, Mapping):
        items = ((_checked_key(key, path), item) for key, item in value.items() if item is not None)
        return {key: plain(item, join(path, key)) for key, item in items}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, Sequence):
        return [plain(item, join(path, index)) for index, item in enumerate(value)]
    if type(value).__module__ == "datetime":
        return value
    raise TypeError(f"{path or 'the value'}: TOML cannot hold {value!r} of type {type(value).__name__}")


def _checked_key(key: Any, path: str) -> str:
    text = str(key)
    if not text or "\\" in text or not text.isprintable():
        raise TypeError(f"{path or 'the table'}: {text!r} cannot be written as a key")
    return text


def _same(value: Any, default: Any) -> bool:
    if type(value) is not type(default):
        return False
    if hasattr(value, "dtype"):
        return value.shape == default.shape and bool((value == default).all())
    return bool(value == default or (isinstance(value, float) and math.isnan(value) and math.isnan(default)))


def default(field: attrs.Attribute[Any], obj: Any) -> Any:
    """The default of the field in this object; attrs.NOTHING without a default."""
    given: Any = field.default
    if isinstance(given, attrs.Factory):  # type: ignore[arg-type]
        return given.factory(obj) if given.takes_self else given.factory()
    return given
