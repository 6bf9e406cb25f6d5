"""What each type of field takes from a TOML table, and the words for it.

A whole number does for a `float`; nothing else is converted, in particular no text to a number and no `true` to 1. A
`Path` is relative to the file that names it. Hooks raise ValueError, or SpecError with paths relative to the value.
"""

from __future__ import annotations

import collections.abc
import enum
import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import attrs
import cattrs

from ..errors import Mistake, SpecError, nearest

LARGEST = 2**63
"""Whole numbers stay below it, in either direction."""

Hook = Callable[[Any, Any], Any]
"""`hook(value, cls)` gives the object of type `cls` for a value of a TOML table."""

converter = cattrs.Converter(detailed_validation=False)
"""The cattrs converter; `tables.structure_hook` is the usual way to teach it a type."""

current_file: ContextVar[str] = ContextVar("file of the table being read", default="")

# ------------------------------------------------------------------------------------------- mistakes and their places


def join(path: str, key: str) -> str:
    """The path of a key in the table at `path`."""
    key = key if re.fullmatch(r"[\w-]+", key) else repr(key)
    return f"{path}.{key}" if path else key


class collecting:
    """Turns what goes wrong inside the `with` block into mistakes at `path`."""

    def __init__(self, mistakes: list[Mistake], path: str) -> None:
        self.mistakes, self.path = mistakes, path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, SpecError):
            self.mistakes.extend(placed(error, self.path, ""))
        elif isinstance(error, ValueError | TypeError):
            self.mistakes.append(Mistake("", self.path, message(error)))
        return isinstance(error, SpecError | ValueError | TypeError)


def placed(error: SpecError, path: str, file: str) -> Iterator[Mistake]:
    """The mistakes of an error with `path` in front; those that stand in a file of their own keep their place."""
    for mistake in error.mistakes:
        if mistake.file:
            yield mistake
        else:
            below = mistake.path
            joined = path + below if below.startswith("[") else f"{path}.{below}" if path and below else path or below
            yield Mistake(file, joined, mistake.message)


def message(error: Exception) -> str:
    """The text of an error; attrs validators put more than the text into `args`."""
    return error.args[0] if error.args and isinstance(error.args[0], str) else str(error) or type(error).__name__


# -------------------------------------------------------------------------------------------------------------- words


def expected_found(cls: Any, value: Any) -> str:
    return f"expected {expected(cls)}, found {_found(value)}"


def expected(cls: Any) -> str:
    """The type in words."""
    names = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        Any: "a value",
        None: "a value",
    }
    if cls in names:
        return names[cls]
    origin, args = typing.get_origin(cls), typing.get_args(cls)
    if origin is typing.Literal:
        return " or ".join(map(repr, args))
    if _is_union(cls):
        words = [expected(arg) for arg in args if arg is not type(None)]
        return " or ".join(dict.fromkeys(words))
    base = origin or cls
    if not isinstance(base, type):
        return str(cls)
    if issubclass(base, enum.Enum):
        return " or ".join(repr(member.value) for member in base)
    if issubclass(base, os.PathLike):
        return "a path as text"
    if kind := getattr(base, "kind", ""):
        return f"the name or the table of a {kind}"
    if issubclass(base, collections.abc.Mapping) or attrs.has(base):
        return "a table"
    if issubclass(base, tuple) and args and ... not in args:
        return f"a list of {len(args)}"
    return "a list" if issubclass(base, collections.abc.Iterable) else base.__name__


def _found(value: Any) -> str:
    """The value in words, short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if len(value) else "an empty list"
    text = repr(value)
    text = text if len(text) <= 60 else text[:57] + "..."
    return f"text {text}" if isinstance(value, str) else text


# -------------------------------------------------------------------------------------------------------------- hooks


def _scalar(*accepted: type) -> Hook:
    """A hook that takes values of these types (bool only if it is one of them) and makes them the field's type."""

    def hook(value: Any, cls: Any) -> Any:
        if issubclass(cls, enum.Enum):  # such as StrEnum, which cattrs takes for text
            return _enum(cls)(value, cls)
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise ValueError(expected_found(cls, value))
        if isinstance(value, int) and abs(value) >= LARGEST:
            raise ValueError("is 2^63 or more, which is too large to be counted")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"expected a number that is finite, found {value}")
        return cls(value)

    return hook


def _path(value: Any, _: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise ValueError(expected_found(Path, value))
    file = current_file.get()
    return Path(file).parent / value if file else Path(value)


def _literal(cls: Any) -> Hook:
    known = typing.get_args(cls)

    def hook(value: Any, _: Any) -> Any:
        for option in known:
            if type(option) is type(value) and option == value:
                return option
        guess = (
            nearest(value, filter(lambda option: isinstance(option, str), known)) if isinstance(value, str) else None
        )
        raise ValueError(expected_found(cls, value) + (f"; did you mean {guess!r}?" if guess else ""))

    return hook


def _enum(cls: type[enum.Enum]) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        try:
            return cls(value)
        except ValueError:
            raise ValueError(expected_found(cls, value)) from None

    return hook


def _is_union(cls: Any) -> bool:
    return typing.get_origin(cls) in (typing.Union, types.UnionType)


def _union(cls: Any) -> Hook:
    """The member whose type the value has already, else the first that takes it."""
    members = typing.get_args(cls)

    def hook(value: Any, _: Any) -> Any:
        if value is None and type(None) in members:
            return None
        if type(value) in members:
            return converter.structure(value, type(value))
        inside: SpecError | None = None
        for member in members:
            if member is type(None):
                continue
            try:
                return converter.structure(value, member)
            except SpecError as error:
                inside = inside or error
            except (ValueError, TypeError) as error:
                single = error
        if inside is not None:
            raise inside
        raise single if len(members) - (type(None) in members) == 1 else ValueError(expected_found(cls, value))

    return hook


_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def _is_list(cls: Any) -> bool:
    return (typing.get_origin(cls) or cls) in _LISTS


def _is_table(cls: Any) -> bool:
    return (typing.get_origin(cls) or cls) in _TABLES


def _list(cls: Any) -> Hook:
    """Lists, tuples and sets; one without a concrete type becomes a tuple."""
    origin, args = typing.get_origin(cls) or cls, typing.get_args(cls)
    make = origin if origin in (list, tuple, set, frozenset) else tuple
    fixed = origin is tuple and bool(args) and ... not in args
    item_type = args[0] if args else Any

    def hook(value: Any, _: Any) -> Any:
        if not isinstance(value, list | tuple | set | frozenset):
            raise ValueError(expected_found(cls, value))
        if fixed and len(value) != len(args):
            raise ValueError(f"expected a list of {len(args)}, found one of {len(value)}")
        item_types = args if fixed else [item_type] * len(value)
        return make(_items(((f"[{index}]", item) for index, item in enumerate(value)), item_types))

    return hook


def _table(cls: Any) -> Hook:
    args = typing.get_args(cls)

    def hook(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(expected_found(cls, value))
        places = ((join("", str(key)), item) for key, item in value.items())
        return dict(zip(value, _items(places, [args[1] if args else Any] * len(value)), strict=True))

    return hook


def _items(places: Any, item_types: Any) -> list[Any]:
    """Every item structured; the mistakes of all of them are raised together."""
    mistakes: list[Mistake] = []
    items = []
    for (path, item), item_type in zip(places, item_types, strict=True):
        with collecting(mistakes, path):
            items.append(item if item_type is Any else converter.structure(item, item_type))
    if mistakes:
        raise SpecError(mistakes)
    return items


for _type, _accepted in ((int, (int,)), (float, (int, float)), (str, (str,)), (bool, (bool,))):
    converter.register_structure_hook(_type, _scalar(*_accepted))
converter.register_structure_hook_factory(_is_list, _list)
converter.register_structure_hook_factory(_is_table, _table)
converter.register_structure_hook_factory(_is_union, _union)
converter.register_structure_hook_factory(lambda cls: typing.get_origin(cls) is typing.Literal, _literal)
converter.register_structure_hook_factory(lambda cls: isinstance(cls, type) and issubclass(cls, enum.Enum), _enum)
converter.register_structure_hook(Path, _path)
