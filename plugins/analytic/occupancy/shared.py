"""Tables keyed by their arguments, shared by all problems, chips, seeds and searchers of a process, with bounded
memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from typing import Any, Protocol, TypeVar
from weakref import ref

import attrs

from sparsemap.pieces.contracts import Piece

MOST = 32 << 20
"""Limit of numbers in all tables, 256 MB; beyond, the least recently used tables are dropped."""


class SizedTable(Protocol):
    """Interface of a table with a known size."""

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        ...


Kept = TypeVar("Kept", bound=SizedTable)


class SharedTables:
    """Tables keyed by constructor and arguments; safe for several threads."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._asked = 0
        self._tables: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._tables)

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        return sum(table.size for table in self._tables.values())

    def get(self, make: Callable[..., Kept], *arguments: Any) -> Kept:
        """`make(*arguments)`, or the table made earlier from equal arguments. Arguments compared by identity, such as
        data in memory, get a new table, not kept."""
        key = content(arguments)
        if key is None:
            return make(*arguments)
        key = make, key
        with self._lock:
            found: Kept = self._tables.pop(key, None) or make(*arguments)
            self._tables[key] = found
            self._asked += 1
            if 4 * self._asked >= len(self._tables):  # adding up all sizes each time would take longer with every table
                self._drop()
        return found

    def _drop(self) -> None:
        self._asked, size = 0, self.size
        while len(self._tables) > 1 and size > self.most:
            size -= self._tables.popitem(last=False)[1].size

    def clear(self) -> None:
        with self._lock:
            self._tables.clear()


_known: dict[int, tuple[ref[Any], Hashable]] = {}
"""Contents of live frozen pieces, by identity."""


def content(value: Any) -> Hashable:
    """Hashable content for comparing a value; None: the value, or a part, compares by identity only."""
    if isinstance(value, Piece):
        known = _known.get(id(value))
        if known is None or known[0]() is not value:
            number = id(value)
            known = _known[number] = ref(value, lambda _: _known.pop(number, None)), _content(value)
        return known[1]
    return _content(value)


def _content(value: Any) -> Hashable:
    if isinstance(value, Mapping):
        value = tuple(value.items())
    if isinstance(value, tuple | list):
        parts = [content(part) for part in value]
    elif attrs.has(type(value)) and type(value).__hash__ is not object.__hash__:
        parts = [content(getattr(value, field.name)) for field in attrs.fields(type(value)) if field.eq]
    elif value is None or (type(value).__hash__ not in (None, object.__hash__)):
        return type(value), value
    else:
        return None
    return None if None in parts else (type(value), *parts)


SHARED = SharedTables()
