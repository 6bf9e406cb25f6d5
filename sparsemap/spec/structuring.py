"""Tables of TOML files to attrs objects.

A `Reader` reports all mistakes of a table together, each with its path. The types of a class's fields define the
allowed contents of a table; cattrs walks over the types, and collects mistakes by path. A whole number is accepted as a
`float`, and a `Path` is relative to its own file; nothing else is converted, in particular no text to a number and no
`true` to 1. A field with an attrs converter gets the value unchanged from the file, unless the converter is a container
such as `tuple`. A field named by a keyword with an underscore (`class_`) has the key without the underscore. A class
may define a class method `from_table` to turn the user's value into the table of its fields."""

from __future__ import annotations

import enum
import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, cast

import attrs
from cattrs import Converter, IterableValidationError
from cattrs.cols import list_structure_factory, mapping_structure_factory
from cattrs.gen import make_hetero_tuple_structure_fn

from ..errors import Mistake, PluginError, SpecError, a, listed, nearest

LARGEST = 2**63
"""Exclusive limit of whole numbers, in either direction."""

CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters forbidden in texts: terminal controls and invisible characters; tabs and line ends are allowed."""

_CONTAINERS = (tuple, list, dict, set, frozenset)
_COLLECTIONS = (*_CONTAINERS, Sequence, Iterable, Set, Mapping, MutableMapping)
_ACCEPTED: dict[Any, Any] = {float: (int, float), Path: (str, os.PathLike)}


@contextmanager
def collecting(mistakes: list[Mistake], path: str) -> Iterator[None]:
    """Adds mistakes raised inside the `with` block to `mistakes`, at `path`."""
    try:
        yield
    except IterableValidationError as error:
        for inside, note in error.group_exceptions()[0]:
            with collecting(mistakes, join(path, note.index)):
                raise inside from inside.__cause__
    except SpecError as error:
        mistakes.extend(error.within(path).mistakes)
    except (ValueError, TypeError) as error:
        from .wording import reworded

        mistakes.append(Mistake("", path, reworded(error)))


def join(path: str, key: str | int) -> str:
    """The path of a key in the table at `path`, or of an index in the list at `path`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    key = key if re.fullmatch(r"[\w-]+", key) else repr(key)
    return f"{path}.{key}" if path else key


def keys(cls: type) -> dict[str, attrs.Attribute[Any]]:
    """Fields of a class by their key in a spec."""
    return {(field.alias or field.name).removesuffix("_"): field for field in attrs.fields(cls) if field.init}


def typed_keys(cls: type) -> dict[str, attrs.Attribute[Any]]:
    """Like `keys`, with types in place of their texts; PluginError for a type unknown at run time."""
    try:
        attrs.resolve_types(cls, include_extras=False)
    except NameError as error:
        from .wording import class_line

        text = f"{error}; types of fields must be imported when the program runs, not for type checking only"
        raise PluginError([Mistake(class_line(cls), f"class {cls.__name__}", text)]) from error
    return keys(cls)


@attrs.frozen
class Reader:
    """Reads the tables of a file. Raises SpecError with every mistake, at paths within the value."""

    file: str = ""
    """Paths in a table are relative to the folder of this file."""
    refer: Callable[[Any, Any], Any] | None = None
    """`refer(value, cls)` resolves a name or description to the piece of contract `cls`."""

    def read(self, cls: Any, value: Any) -> Any:
        """The value converted to type `cls`; a class of pieces is described by its fields, not named."""
        mistakes: list[Mistake] = []
        token = _reader.set(self)
        try:
            with collecting(mistakes, ""):
                return _filled(value, cls) if attrs.has(cls) else _converter().structure(value, cls)
        finally:
            _reader.reset(token)
        raise SpecError(mistakes)


class SpecTable(dict[str, Any]):
    """An unread table kept by a piece for later; inner paths are relative to the folder of `file`."""

    file = ""

    @classmethod
    def of(cls, value: Any, file: str) -> Any:
        """The value with all tables, at any depth, turned into spec tables."""
        if isinstance(value, list | tuple):
            return type(value)(cls.of(item, file) for item in value)
        if not isinstance(value, dict) or isinstance(value, SpecTable):
            return value
        table = cls({key: cls.of(item, file) for key, item in value.items()})
        table.file = file
        return table


_reader: ContextVar[Reader] = ContextVar("the reader at work, for the hooks")


# ------------------------------------------------------------------------------------------------------ hooks of cattrs


@cache
def _converter() -> Converter:
    converter = Converter(prefer_attrib_converters=True, structure_fallback_factory=lambda _: _scalar)
    for cls in (str, bytes, int, float, Path):
        converter.register_structure_hook(cls, _scalar)
    register = converter.register_structure_hook_func
    register(lambda cls: _base(cls) is typing.Literal or isinstance(cls, enum.EnumMeta), _option)
    register(lambda cls: _base(cls) in (typing.Union, types.UnionType), _union)
    register(attrs.has, _object)
    converter.register_structure_hook_factory(lambda cls: _base(cls) in _COLLECTIONS, _collection)
    return converter


def _base(cls: Any) -> Any:
    return typing.get_origin(cls) or cls


def _filled(table: Any, cls: Any) -> Any:
    """The object with fields from a table."""
    if isinstance(table, cls):
        return table
    table = getattr(cls, "from_table", lambda table: table)(table)
    if not isinstance(table, Mapping):
        raise ValueError(expected_found(cls, table))
    known = typed_keys(cls)
    values: dict[str, Any] = {}
    mistakes: list[Mistake] = []
    whole: list[Mistake] = []
    for key, item in table.items():
        with collecting(mistakes, join("", key)):
            if key not in known:
                guess = nearest(key, known)
                raise ValueError(f"unknown key; {f'did you mean {guess!r}?' if guess else f'known: {listed(known)}'}")
            field, type_ = known[key], known[key].type
            as_it_is = type_ is None or field.converter not in (None, *_CONTAINERS)
            values[field.alias or field.name] = item if as_it_is else _converter().structure(item, cast(Any, type_))
    missing = [key for key, field in known.items() if field.default is attrs.NOTHING and key not in table]
    if not (mistakes or missing):
        with collecting(whole, ""):
            return cls(**values)
    from .incomplete import mistakes_of

    raise SpecError(mistakes_of(cls, values, missing, mistakes) or whole)


def _object(value: Any, cls: Any) -> Any:
    """A piece from its name or description, any other object from its description."""
    cls, refer = _base(cls), _reader.get().refer
    if isinstance(value, cls) or not (kind := kind_of(cls)):
        return _filled(value, cls)
    if refer is None:
        raise ValueError(f"the name of {a(kind)} means something in a registry only; give the object")
    return refer(value, cls)


def _union(value: Any, cls: Any) -> Any:
    """The value as the union member of its own type, else as the first member to accept the value."""
    members = typing.get_args(cls)
    if type(value) in members:
        return value if value is None else _converter().structure(value, type(value))
    mistakes: list[list[Mistake]] = []
    for member in (member for member in members if member is not type(None)):
        mistakes.append([])
        with collecting(mistakes[-1], ""):
            return _converter().structure(value, member)
    inside = [found for found in mistakes if found[0].path or found[0].file]
    if len(mistakes) > 1 and not inside:
        raise ValueError(expected_found(cls, value))
    raise SpecError((inside or mistakes)[0])


def _collection(cls: Any, converter: Converter) -> Callable[[Any, Any], Any]:
    """Hook for tables, lists, tuples and sets; a list without a concrete type becomes a tuple."""
    base, args = _base(cls), typing.get_args(cls)
    several = base is tuple and args and ... not in args
    table = issubclass(base, Mapping)
    accepted: Any = Mapping if table else list | tuple if several else list | tuple | set | frozenset
    factory: Any = mapping_structure_factory if table else list_structure_factory
    walk = (make_hetero_tuple_structure_fn if several else factory)(cls, converter)
    made = base if base in _CONTAINERS else dict if table else tuple

    def hook(value: Any, _: Any) -> Any:
        if not isinstance(value, accepted):
            raise ValueError(expected_found(cls, value))
        if several and len(value) != len(args):
            raise ValueError(f"expected a list of {len(args)}, found one of {len(value)}")
        found = made(walk(value, cls))
        return SpecTable.of(found, _reader.get().file) if table and args[-1:] == (Any,) else found

    return hook


def _scalar(value: Any, cls: Any) -> Any:
    if isinstance(cls, enum.EnumMeta):  # such as StrEnum, which cattrs takes for text
        return _option(value, cls)
    accepted = _ACCEPTED.get(cls, cls) if isinstance(cls, type) else ()
    if not isinstance(value, accepted) or (isinstance(value, bool) and cls is not bool):
        raise ValueError(expected_found(cls, value))
    if isinstance(value, int) and abs(value) >= LARGEST:
        raise ValueError("is 2^63 or more, which is too large to be counted")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"expected a number that is finite, found {value}")
    if isinstance(value, str) and (found := CONTROL.search(value)):
        raise ValueError(f"holds the control character {found[0]!r}")
    if cls is Path:
        return Path(_reader.get().file).parent / value
    return float(value) if cls is float else value


def _option(value: Any, cls: Any) -> Any:
    """The option of a Literal or the member of an Enum, from the member itself or its value."""
    for key, option in options(cls):
        if value is option or (type(key) is type(value) and key == value):
            return option
    guess = nearest(value if isinstance(value, str) else "", [key for key, _ in options(cls) if isinstance(key, str)])
    raise ValueError(expected_found(cls, value) + (f"; did you mean {guess!r}?" if guess else ""))


def options(cls: Any) -> list[tuple[Any, Any]]:
    return [(getattr(option, "value", option), option) for option in typing.get_args(cls) or cls]


def kind_of(cls: Any) -> str:
    """The kind of a contract of pieces; empty for other classes."""
    kind = getattr(cls, "kind", "")
    return kind if isinstance(kind, str) else ""


def expected_found(cls: Any, value: Any) -> str:
    """Message with the accepted type and the actual value."""
    from .wording import expected, found

    return f"expected {expected(cls)}, found {found(value)}"
