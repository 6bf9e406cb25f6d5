"""Tables of TOML files to attrs objects.

A `Reader` reports all mistakes of a table together, each with its path. The types of a class's fields decide what
a table may hold. A whole number does for a `float`, and a `Path` is relative to the file that names it; nothing else is
converted, in particular no text to a number and no `true` to 1. A field with an attrs converter gets the value as it
stands in the file, unless the converter is a container such as `tuple`. A field whose name is a keyword with an
underscore (`class_`) has the key without it. A class may have a class method `from_table` that gives the table of its
fields for the value as the user writes it.
"""

from __future__ import annotations

import collections.abc
import enum
import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs

from ..errors import Mistake, PluginError, SpecError, listed, nearest, shortened
from ..files import class_line

T = TypeVar("T")

LARGEST = 2**63
"""Whole numbers stay below it, in either direction."""

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What texts do not hold, since a terminal would obey it; tabs and line ends they may."""

Refer = Callable[[Any, Any], Any]
"""`refer(value, cls)` gives the piece of class `cls` that a value names or describes, or raises ValueError."""

_CONTAINERS = (tuple, list, dict, set, frozenset)
_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_SCALARS: dict[Any, tuple[Any, ...]] = {int: (int,), float: (int, float), str: (str,), bool: (bool,)}
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Any: "a value", None: "a value"}


@contextmanager
def collecting(mistakes: list[Mistake], path: str) -> Iterator[None]:
    """Adds what goes wrong inside the `with` block to `mistakes`, at `path`."""
    try:
        yield
    except SpecError as error:
        mistakes.extend(error.within(path).mistakes)
    except (ValueError, TypeError) as error:
        mistakes.append(Mistake("", path, message(error)))


def join(path: str, key: str) -> str:
    """The path of a key in the table at `path`."""
    key = key if re.fullmatch(r"[\w-]+", key) else repr(key)
    return f"{path}.{key}" if path else key


def message(error: Exception) -> str:
    """The text of an error; attrs validators put more than the text into `args`."""
    return error.args[0] if error.args and isinstance(error.args[0], str) else str(error) or type(error).__name__


def keys(cls: type) -> dict[str, attrs.Attribute[Any]]:
    """The fields of a class by the key that sets them."""
    return {alias(field).removesuffix("_"): field for field in attrs.fields(cls) if field.init}


def alias(field: attrs.Attribute[Any]) -> str:
    """The name of the argument that sets the field."""
    return field.alias or field.name


def default(field: attrs.Attribute[Any], obj: Any) -> Any:
    """The default of the field in this object; attrs.NOTHING if it has none."""
    given: Any = field.default
    if isinstance(given, attrs.Factory):  # type: ignore[arg-type]
        return given.factory(obj) if given.takes_self else given.factory()
    return given


@attrs.frozen
class Reader:
    """Reads the tables of one file. What it raises has paths within the value that is read."""

    file: str = ""
    """Paths in a table are relative to its folder."""
    refer: Refer | None = None
    """Builds the fields whose class is a contract of pieces."""

    def read(self, cls: Any, value: Any) -> Any:
        """The value as a field of type `cls` holds it."""
        base, args = typing.get_origin(cls) or cls, typing.get_args(cls)
        if base is Any or base is None:
            return value
        if base in (typing.Union, types.UnionType):
            return self._union(cls, args, value)
        if base is typing.Literal:
            return _option(cls, [(option, option) for option in args], value)
        if base in _LISTS:
            return self._list(cls, base, args, value)
        if base in _TABLES:
            return self._table(cls, args, value)
        if attrs.has(base):
            return self._object(base, value)
        return self._scalar(base, value)

    def fields(self, cls: type[T], value: Any) -> T:
        """The object whose fields a table sets.

        Raises SpecError with every mistake: unknown and missing keys, values of a wrong type, what validators say.
        """
        if isinstance(value, cls):
            return value
        mistakes: list[Mistake] = []
        with collecting(mistakes, ""):
            table = getattr(cls, "from_table", lambda table: table)(value)
            if not isinstance(table, Mapping):
                raise ValueError(expected_found(cls, table))
            return self._filled(cls, table)
        raise SpecError(mistakes)

    def _filled(self, cls: Any, table: Mapping[str, Any]) -> Any:
        try:
            attrs.resolve_types(cls, include_extras=False)
        except NameError as error:
            text = f"{error}; types of fields must be imported when the program runs, not for type checking only"
            raise PluginError([Mistake(class_line(cls), f"class {cls.__name__}", text)]) from error
        known = keys(cls)
        mistakes: list[Mistake] = []
        whole: list[Mistake] = []
        values: dict[str, Any] = {}
        for key, item in table.items():
            with collecting(mistakes, join("", key)):
                if key not in known:
                    guess = nearest(key, known)
                    hint = f"did you mean {guess!r}?" if guess else f"known: {listed(known)}"
                    raise ValueError(f"unknown key; {hint}")
                raw = known[key].converter is not None and known[key].converter not in _CONTAINERS
                values[key] = item if raw or known[key].type is None else self.read(known[key].type, item)
        for key in (key for key, field in known.items() if field.default is attrs.NOTHING and key not in table):
            mistakes.append(Mistake("", key, f"missing; expected {expected(known[key].type)}"))
        if not mistakes:
            with collecting(whole, ""):
                return cls(**{alias(known[key]): item for key, item in values.items()})
        _validate(cls, values, mistakes)
        raise SpecError(mistakes or whole)

    def _object(self, cls: Any, value: Any) -> Any:
        """A piece is named or described, any other object is described."""
        if isinstance(value, cls) or not (kind := _kind(cls)):
            return self.fields(cls, value)
        if self.refer is None:
            raise ValueError(f"the name of a {kind} means something in a registry only; give the object")
        return self.refer(value, cls)

    def _union(self, cls: Any, members: tuple[Any, ...], value: Any) -> Any:
        """As the member whose type the value has already, else as the first that takes it."""
        if type(value) in members:
            return value if value is None else self.read(type(value), value)
        mistakes: list[list[Mistake]] = []
        for member in (member for member in members if member is not type(None)):
            mistakes.append([])
            with collecting(mistakes[-1], ""):
                return self.read(member, value)
        inside = [found for found in mistakes if found[0].path or found[0].file]
        if len(mistakes) > 1 and not inside:
            raise ValueError(expected_found(cls, value))
        raise SpecError((inside or mistakes)[0])

    def _list(self, cls: Any, base: Any, args: tuple[Any, ...], value: Any) -> Any:
        """Lists, tuples and sets; one without a concrete type becomes a tuple."""
        if not isinstance(value, list | tuple | set | frozenset):
            raise ValueError(expected_found(cls, value))
        item_types = [args[0] if args else Any] * len(value)
        if base is tuple and args and ... not in args:
            if len(value) != len(args):
                raise ValueError(f"expected a list of {len(args)}, found one of {len(value)}")
            item_types = list(args)
        places = [f"[{index}]" for index in range(len(value))]
        return (base if base in _CONTAINERS else tuple)(self._items(places, item_types, value))

    def _table(self, cls: Any, args: tuple[Any, ...], value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise ValueError(expected_found(cls, value))
        places = [join("", str(key)) for key in value]
        return dict(
            zip(value, self._items(places, [args[1] if args else Any] * len(value), value.values()), strict=True)
        )

    def _items(self, places: list[str], item_types: list[Any], items: Iterable[Any]) -> list[Any]:
        """Every item read; the mistakes of all of them are raised together."""
        mistakes: list[Mistake] = []
        read = []
        for place, item_type, item in zip(places, item_types, items, strict=True):
            with collecting(mistakes, place):
                read.append(self.read(item_type, item))
        if mistakes:
            raise SpecError(mistakes)
        return read

    def _scalar(self, cls: Any, value: Any) -> Any:
        if not isinstance(cls, type):
            raise ValueError(expected_found(cls, value))
        if issubclass(cls, enum.Enum):
            return value if isinstance(value, cls) else _option(cls, [(item.value, item) for item in cls], value)
        if issubclass(cls, os.PathLike):
            if not isinstance(value, str | os.PathLike):
                raise ValueError(expected_found(cls, value))
            return Path(self.file).parent / value if self.file else Path(value)
        accepted = _SCALARS.get(cls, (cls,))
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            raise ValueError(expected_found(cls, value))
        if isinstance(value, int) and abs(value) >= LARGEST:
            raise ValueError("is 2^63 or more, which is too large to be counted")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"expected a number that is finite, found {value}")
        if isinstance(value, str) and (found := CONTROL.search(value)):
            raise ValueError(f"holds the control character {found[0]!r}")
        return float(value) if cls is float else value


def _option(cls: Any, options: list[tuple[Any, Any]], value: Any) -> Any:
    """The second of the pair whose first is the value."""
    for key, option in options:
        if type(key) is type(value) and key == value:
            return option
    texts = [key for key, _ in options if isinstance(key, str)]
    guess = nearest(value, texts) if isinstance(value, str) else None
    raise ValueError(expected_found(cls, value) + (f"; did you mean {guess!r}?" if guess else ""))


def _validate(cls: Any, values: Mapping[str, Any], mistakes: list[Mistake]) -> None:
    """Adds what the converters and validators of all fields say, not only of the first that fails."""
    partial: Any = cls.__new__(cls)
    converted: dict[str, Any] = {}
    for key, field in keys(cls).items():
        with collecting(mistakes, join("", key)):
            value = values[key] if key in values else default(field, partial)
            if value is attrs.NOTHING:
                continue
            if field.converter is not None and not isinstance(field.converter, attrs.Converter):
                value = field.converter(value)
            object.__setattr__(partial, field.name, value)
            converted[key] = value
    incomplete = bool(mistakes)
    for key, value in converted.items():
        field = keys(cls)[key]
        try:
            with collecting(mistakes, join("", key)):
                if field.validator is not None:
                    field.validator(partial, field, value)
        except AttributeError:
            if not incomplete:  # a validator may look at a field that is itself wrong
                raise


# --------------------------------------------------------------------------------------------------- words of messages


def _kind(cls: Any) -> str:
    """The kind of a contract of pieces; empty for other classes."""
    kind = getattr(cls, "kind", "")
    return kind if isinstance(kind, str) else ""


def expected_found(cls: Any, value: Any) -> str:
    return f"expected {expected(cls)}, found {_found(value)}"


def expected(cls: Any) -> str:
    """The type in words."""
    base, args = typing.get_origin(cls) or cls, typing.get_args(cls)
    if base in _WORDS:
        return _WORDS[base]
    if base is typing.Literal:
        return " or ".join(map(repr, args))
    if base in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(expected(arg) for arg in args if arg is not type(None)))
    if not isinstance(base, type):
        return str(cls)
    if issubclass(base, enum.Enum):
        return " or ".join(repr(member.value) for member in base)
    if issubclass(base, os.PathLike):
        return "a path as text"
    if kind := _kind(base):
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
    return f"text {shortened(value)}" if isinstance(value, str) else shortened(value)
