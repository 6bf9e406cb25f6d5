"""Further mistakes of a table unfit for an object: missing keys, and failed validators of other keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from typing import Any

import attrs

from ..errors import Mistake
from .structuring import collecting, join, keys, typed_keys
from .unstructuring import default
from .wording import expected


def mistakes_of(cls: Any, values: Mapping[Any, Any], missing: Iterable[str], mistakes: list[Mistake]) -> list[Mistake]:
    """All mistakes of a table: mistakes of its values, missing keys, and failures of the converters and validators of
    all fields; attrs itself stops at the first failure."""
    known = typed_keys(cls)
    mistakes += [Mistake("", key, f"missing; expected {expected(known[key].type)}") for key in missing]
    partial: Any = cls.__new__(cls)
    for key, field in keys(cls).items():
        with collecting(mistakes, join("", key)):
            value = values[field.alias] if field.alias in values else default(field, partial)
            if value is not attrs.NOTHING:
                convert: Any = None if isinstance(field.converter, attrs.Converter) else field.converter
                object.__setattr__(partial, field.name, convert(value) if convert else value)
    lenient = suppress(AttributeError) if mistakes else nullcontext()  # validators may look at a field that is wrong
    for key, field in keys(cls).items():
        if field.validator is not None and hasattr(partial, field.name):
            with collecting(mistakes, join("", key)), lenient:
                field.validator(partial, field, getattr(partial, field.name))
    return mistakes
