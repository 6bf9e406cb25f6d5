"""Tables that are made once and kept: those of a problem, and those that problems with one workload share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, TypeVar

import attrs
import numpy as np

from ..pieces.contracts import Piece

T = TypeVar("T")

Key = tuple[Any, ...]
"""The class or function that a table belongs to, then what the table depends on. What cannot be hashed, such as the fields
of a piece with a mapping among them, counts by content."""


@attrs.define(eq=False)
class Tables:
    """Values by key. Several threads may ask at once: each value is made once."""

    _made: dict[Any, Any] = attrs.field(factory=dict, init=False)
    _contents: dict[int, tuple[Piece, Any]] = attrs.field(factory=dict, init=False)
    _lock: Any = attrs.field(factory=RLock, init=False)

    def __getstate__(self) -> dict[str, Any]:
        return {}  # they are made again where they are needed

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]

    def remember(self, key: Key, make: Callable[[], T]) -> T:
        """The value of a key, made where it is not known yet."""
        if not isinstance(key, tuple) or not key or not callable(key[0]):
            text = "expected a class or function, then what the table depends on"
            raise TypeError(f"key of a table: {text}; found {key!r}")
        try:
            known = key in self._made
        except TypeError:
            key = tuple(map(self._content, key))
            known = key in self._made
        if not known:
            with self._lock:
                if key not in self._made:
                    self._made[key] = make()
        return self._made[key]

    def _content(self, part: Any) -> Any:
        """What a part of a key counts by; of a piece, which is frozen, it is made once."""
        if not isinstance(part, Piece):
            return content_of(part)
        if id(part) not in self._contents:
            self._contents[id(part)] = part, content_of(part)  # the piece stays, so that no other one gets its number
        return self._contents[id(part)][1]


def content_of(value: Any) -> Any:
    """A hashable value, equal for equal contents."""
    if isinstance(value, type):
        return value
    if isinstance(value, Mapping):
        return Mapping, tuple((key, content_of(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(content_of, value))
    if isinstance(value, np.ndarray):
        return np.ndarray, value.shape, value.dtype.str, value.tobytes()
    if attrs.has(type(value)):
        fields = attrs.fields(type(value))
        return type(value), *(content_of(getattr(value, field.name)) for field in fields if field.eq)
    return value
