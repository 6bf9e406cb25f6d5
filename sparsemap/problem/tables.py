"""Memoised tables: per problem, and shared by problems with the same workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, TypeVar

import attrs
import numpy as np

from ..pieces.contracts import Piece

T = TypeVar("T")

Key = tuple[Any, ...]
"""The owner of a table, a class or function, then everything the table depends on. Pieces and unhashable values are
compared by content."""


@attrs.define(eq=False)
class Tables:
    """Memoised values by key, safe for several threads: each value is computed once."""

    _made: dict[Any, Any] = attrs.field(factory=dict, init=False)
    _contents: dict[int, tuple[Piece, Any]] = attrs.field(factory=dict, init=False)
    _equal: dict[Any, object] = attrs.field(factory=dict, init=False)
    _lock: Any = attrs.field(factory=RLock, init=False)

    def __getstate__(self) -> dict[str, Any]:
        return {}  # they are made again where they are needed

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]

    def remember(self, key: Key, make: Callable[[], T]) -> T:
        """The value of a key, computed by `make` on first use."""
        if not isinstance(key, tuple) or not key or not callable(key[0]):
            text = "expected a class or function, then what the table depends on"
            raise TypeError(f"key of a table: {text}; found {key!r}")
        key = tuple([self._content(part) if isinstance(part, Piece) else part for part in key])
        try:
            known = key in self._made
        except TypeError:
            key = tuple(map(content_of, key))
            known = key in self._made
        if not known:
            with self._lock:
                if key not in self._made:
                    self._made[key] = make()
        return self._made[key]

    def _content(self, piece: Piece) -> Any:
        """Stand-in for all pieces with this content; computed once per piece, since pieces are frozen."""
        if id(piece) not in self._contents:
            equal = self._equal.setdefault(content_of(piece), object())
            self._contents[id(piece)] = piece, equal  # the piece stays, so that no other one gets its number
        return self._contents[id(piece)][1]


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
