"""Types and values in words, for messages about the contents of a table."""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from ..errors import a, nearest, shortened
from ..files import shown
from .structuring import kind_of, options

_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_WORDS |= {Path: "a path as text", Any: "a value", None: "a value"}
_COMPARED = re.compile(r"'\w+' must be (>=|>|<=|<) (\S+): (.*)", re.S)
_COUNTED = re.compile(r"Length of '\w+' must be (>=|<=) (\d+): (\d+)")
_SIGNS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}


def expected(cls: Any) -> str:
    """The type in words."""
    base, args = typing.get_origin(cls) or cls, typing.get_args(cls)
    if base in _WORDS:
        return _WORDS[base]
    if base is typing.Literal or isinstance(base, enum.EnumMeta):
        return " or ".join(repr(key) for key, _ in options(cls))
    if base in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(expected(arg) for arg in args if arg is not type(None)))
    if not isinstance(base, type):
        return str(cls)
    if kind := kind_of(base):
        return f"the name or the table of {a(kind)}"
    if issubclass(base, Mapping) or attrs.has(base):
        return "a table"
    if issubclass(base, tuple) and args and ... not in args:
        return f"a list of {len(args)}"
    return "a list" if issubclass(base, Iterable) else base.__name__


def found(value: Any) -> str:
    """The value in words, short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if len(value) else "an empty list"
    return f"text {shortened(value)}" if isinstance(value, str) else shortened(value)


def reworded(error: Exception) -> str:
    """The text of an error; attrs validators' texts are changed to the wording of all other messages."""
    plain = error.args and isinstance(error.args[0], str)  # attrs validators put more than the text into `args`
    text = error.args[0] if plain else str(error) or type(error).__name__
    if found := _COMPARED.fullmatch(text):
        return f"is {found[3]}, expected {_SIGNS[found[1]]} {found[2]}"
    if found := _COUNTED.fullmatch(text):
        return f"has {found[3]} entries, expected {_SIGNS[found[1]]} {found[2]}"
    if len(error.args) == 4 and " must be in " in text:
        _, _, options, value = error.args
        guess = nearest(value if isinstance(value, str) else "", [name for name in options if isinstance(name, str)])
        words = f"expected {' or '.join(map(repr, options))}, found {shortened(value)}"
        return words + (f"; did you mean {guess!r}?" if guess else "")
    return text


def class_line(cls: Any) -> str:
    """Place of a class for messages: `FILE, line N`; empty for an unreadable source."""
    try:
        return f"{shown(inspect.getfile(cls))}, line {inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return ""
