"""Tables of TOML files to attrs objects and back.

`structure` reports everything that is wrong with a table at once, each with file and path. The types of a class's
fields decide what a table may hold (see `field_types`). A field with an attrs converter gets the value as it stands in
the file, unless the converter is a container such as `tuple`. A field whose name is a keyword with an underscore
(`class_`) has the key without it.
"""

from __future__ import annotations

import collections.abc
import enum
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from ..errors import Mistake, PluginError, SpecError, listed, nearest
from .field_types import Hook, collecting, converter, current_file, expected, expected_found, join, message, placed

T = TypeVar("T")

_custom: dict[type, Hook] = {}
_references: list[tuple[Callable[[type], bool], Hook]] = []
_plans: dict[type, dict[str, tuple[attrs.Attribute[Any], Callable[[Any], Any]]]] = {}


def structure(cls: type[T], mapping: Any, file: str | os.PathLike[str] = "", path: str = "") -> T:
    """The object of type `cls` that a table describes.

    Raises SpecError with every mistake: unknown and missing keys, values of a wrong type, and what validators say.
    `file` and `path` say where the table stands.
    """
    token = current_file.set(str(file) or current_file.get())
    try:
        return _custom[cls](mapping, cls) if cls in _custom else _by_type(cls)(mapping, cls)
    except SpecError as error:
        raise SpecError(placed(error, path, str(file))) from error.__cause__
    except (ValueError, TypeError) as error:
        raise SpecError.at(file, path, message(error)) from error
    finally:
        current_file.reset(token)


def fields(cls: type[T], table: Any) -> T:
    """Like `structure`, with paths relative to the table and without the hook of `cls`: what such a hook ends with."""
    if isinstance(table, cls):
        return table
    if not isinstance(table, Mapping):
        raise ValueError(expected_found(cls, table))
    plan = _plan(cls)
    mistakes: list[Mistake] = []
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in plan:
            mistakes.append(Mistake("", join("", key), _unknown_key(key, plan)))
            continue
        field, hook = plan[key]
        with collecting(mistakes, join("", key)):
            values[_alias(field)] = hook(value)
    for key, (field, _) in plan.items():
        if field.default is attrs.NOTHING and key not in table:
            mistakes.append(Mistake("", join("", key), f"missing; expected {expected(field.type)}"))
    if not mistakes:
        try:
            return cls(**values)
        except (ValueError, TypeError, SpecError) as error:
            _validate(cls, values, mistakes)
            if not mistakes:
                mistakes.extend(error.mistakes if isinstance(error, SpecError) else [Mistake("", "", message(error))])
            raise SpecError(mistakes) from error
    _validate(cls, values, mistakes)
    raise SpecError(mistakes)


def structure_hook(cls: type, hook: Hook) -> None:
    """Lets `hook(value, cls)` build every `cls`; it raises ValueError, or SpecError with paths within the value."""
    _custom[cls] = hook
    _plans.clear()
    if not attrs.has(cls):
        converter.register_structure_hook(cls, hook)


def reference_hook(applies: Callable[[type], bool], hook: Hook) -> None:
    """Lets `hook(value, cls)` build fields whose class `applies`, but not such a class given to `structure` itself."""
    _references.append((applies, hook))


def _build_object(value: Any, cls: type) -> Any:
    """An attrs object inside another one."""
    if isinstance(value, cls):
        return value
    for applies, hook in _references:
        if applies(cls):
            return hook(value, cls)
    return _custom[cls](value, cls) if cls in _custom else fields(cls, value)


def _by_type(cls: Any) -> Hook:
    return (lambda value, _: fields(cls, value)) if attrs.has(cls) else converter.get_structure_hook(cls)


def _plan(cls: type) -> dict[str, tuple[attrs.Attribute[Any], Callable[[Any], Any]]]:
    """The fields of a class by key, each with the function that structures its value."""
    if cls not in _plans:
        try:
            attrs.resolve_types(cls)
        except NameError as error:
            text = f"{error}; types of fields must be imported when the program runs, not for type checking only"
            raise PluginError([Mistake("", f"class {cls.__name__}", text)]) from error
        _plans[cls] = {_field_key(field): (field, _field_hook(field)) for field in attrs.fields(cls) if field.init}
    return _plans[cls]


def _alias(field: attrs.Attribute[Any]) -> str:
    """The name of the argument that sets the field."""
    return field.alias or field.name


def _field_key(field: attrs.Attribute[Any]) -> str:
    """The name of the key that sets the field."""
    return _alias(field).removesuffix("_")


def _default(field: attrs.Attribute[Any], obj: Any) -> Any:
    """The default of the field in this object; attrs.NOTHING if it has none."""
    default: Any = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return default.factory(obj) if default.takes_self else default.factory()
    return default


_CONTAINERS = (tuple, list, dict, set, frozenset)


def _field_hook(field: attrs.Attribute[Any]) -> Callable[[Any], Any]:
    raw = field.converter is not None and field.converter not in _CONTAINERS
    if raw or field.type is None:
        return lambda value: value
    hook = converter.get_structure_hook(field.type)
    return lambda value: hook(value, field.type)


def _validate(cls: type, values: Mapping[str, Any], mistakes: list[Mistake]) -> None:
    """Adds what the converters and validators of all fields say, not only of the first that fails."""
    partial: Any = object.__new__(cls)
    converted: dict[str, Any] = {}
    for key, (field, _) in _plan(cls).items():
        with collecting(mistakes, join("", key)):
            value = values[_alias(field)] if _alias(field) in values else _default(field, partial)
            if value is attrs.NOTHING:
                continue
            if field.converter is not None and not isinstance(field.converter, attrs.Converter):
                value = field.converter(value)
            object.__setattr__(partial, field.name, value)
            converted[key] = value
    incomplete = bool(mistakes)
    for key, value in converted.items():
        field, _ = _plan(cls)[key]
        if field.validator is None:
            continue
        try:
            with collecting(mistakes, join("", key)):
                field.validator(partial, field, value)
        except AttributeError:
            if not incomplete:  # a validator may look at a field that is itself wrong
                raise


def _unknown_key(key: str, known: Mapping[str, Any]) -> str:
    guess = nearest(key, known)
    return "unknown key; " + (f"did you mean {guess!r}?" if guess else f"known: {listed(known)}")


# --------------------------------------------------------------------------------------------------- objects to tables


def unstructure(obj: Any) -> dict[str, Any]:
    """The table that describes an attrs object: its fields that differ from their defaults, as plain values.

    A piece whose type is not the default of its kind also gets the key `type`.
    """
    return _object_table(obj, "")


def plain(value: Any, path: str = "") -> Any:
    """The value in the types that TOML has; raises TypeError with the path to what TOML cannot hold."""
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
        return _object_table(value, path)
    if isinstance(value, Mapping):
        return {
            _checked_key(key, path): plain(item, join(path, str(key)))
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, collections.abc.Sequence):
        return [plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if type(value).__module__ == "datetime":
        return value
    raise TypeError(f"{path or 'the value'}: TOML cannot hold {value!r} of type {type(value).__name__}")


def _checked_key(key: Any, path: str) -> str:
    text = str(key)
    if not text or "\\" in text or not text.isprintable():
        raise TypeError(f"{path or 'the table'}: {text!r} cannot be written as a key")
    return text


def _object_table(obj: Any, path: str) -> dict[str, Any]:
    cls = type(obj)
    table = {}
    type_name = getattr(cls, "type_name", "")
    if type_name and type_name != getattr(cls, "default_type", ""):
        table["type"] = type_name
    for field in attrs.fields(cls):
        value = getattr(obj, field.name)
        if field.init and value is not None and not _is_default(obj, field, value):
            table[_field_key(field)] = plain(value, join(path, _field_key(field)))
    return table


def _is_default(obj: Any, field: attrs.Attribute[Any], value: Any) -> bool:
    default = _default(field, obj)
    return type(value) is type(default) and bool(_same(value, default))


def _same(value: Any, default: Any) -> bool:
    if hasattr(value, "dtype"):
        return value.shape == default.shape and bool((value == default).all())
    return value == default or (isinstance(value, float) and math.isnan(value) and math.isnan(default))


converter.register_structure_hook_factory(
    lambda cls: isinstance(cls, type) and attrs.has(cls), lambda cls: lambda value, _: _build_object(value, cls)
)
