"""Named rows by the integers that determine them: a hash map for whole arrays of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from .. import native

Row = TypeVar("Row", bound=tuple[Any, ...])
"""A named tuple; its fields are columns."""


class Number(NamedTuple):
    """A row of one number."""

    value: Array


class Told(NamedTuple):
    """What a format's lists of positions go by, as `units.c` has it: of groups, and of the positions of one."""

    group_entry: Array
    groups: Array
    positions: Array
    entry: Array
    entry_count: Array
    most: Array
    usual: Array
    coord_bits: Array
    readable: Array
    readable_even: Array


UNKNOWN = -1  # code of a format that is not known there
ODD = [2 * int(x) + 1 - (1 << 63) for x in np.random.default_rng(20250101).integers(0, 1 << 63, 64)]
"""Fixed odd multipliers, one per component of a fingerprint."""
FACTORS = np.array(ODD)
MIX = 0x9E3779B97F4A7C15 - (1 << 64)
SPARSE = 4
"""Places per row, at least: nearly all keys are found at the first place."""


def take(named: Row, rows: Rows | slice) -> Row:
    """Some entries of all columns; entries are the last axis."""
    if isinstance(rows, slice) and not rows.start and rows.stop == named[-1].shape[-1]:
        return named
    return type(named)(*(column[rows] if column.ndim == 1 else column[:, rows] for column in named))


def distinct(values: Array, axis: int | None = None) -> Array:
    """Every value once, ascending. `np.unique` without an index imports NumPy's masked arrays, a tenth of NumPy."""
    return np.unique(values, return_index=True, axis=axis)[0]


def fingerprint(parts: Array | Sequence[Array], first: int = 0) -> Array:
    """(N,) int64 from integer-valued arrays, with the multipliers from `first` on.

    Two different keys share one with a probability of about n^2 / 2^64 for n keys: 10^-9 for a hundred thousand.
    """
    if native.fast is not None:
        found = np.empty(len(parts[0]), dtype=np.int64)
        if native.fast.fingerprint(found, FACTORS, first, list(parts)) is not None:
            return found
    key = parts[0].astype(np.int64) * ODD[first]
    for i, part in enumerate(parts[1:], first + 1):
        key += part.astype(np.int64) * ODD[i]
    return key | 1  # 0 is an empty place


class Table(Generic[Row]):
    """A growing hash map from fingerprints to rows, with linear probing; all lookups of a batch at once."""

    def __init__(self, row: type[Row], most: int = 1 << 18) -> None:
        """A table that would have more than `most` rows starts afresh."""
        self.row, self.most = row, most
        self.changes = 0
        """How often rows came or went."""
        self.clear()

    @property
    def size(self) -> int:
        """Numbers kept."""
        return sum(len(column) for column in self.columns) + 2 * len(self._keys)

    def clear(self) -> None:
        self.count = 0
        self.changes += 1
        self.columns = self.row(*[np.zeros(0)] * len(self.row.__annotations__))
        self._resize(10)

    def find(self, keys: Array, fill: Callable[[Rows], Row]) -> Row:
        """The rows of all keys (N,), as columns (N,). `fill(first)` gets one position in `keys` per missing distinct
        key, (n,), and returns their rows, as columns (n,)."""
        rows = self.rows(keys, fill)  # may make new columns
        if native.fast is not None:
            found = np.empty((len(self.columns), len(rows)))
            if native.fast.gather(found, rows, tuple(self.columns)) is not None:
                return self.row(*found)
        return take(self.columns, rows)

    def rows(self, keys: Array, fill: Callable[[Rows], Row]) -> Rows:
        """Where in `columns` the rows are that `find` returns, (N,)."""
        rows, missing = self._probe(keys)
        if len(missing):
            distinct, first = np.unique(keys[missing], return_index=True)
            wanted = missing[first]
            if self.count and self.count + len(distinct) > self.most:
                self.clear()
                distinct, wanted = np.unique(keys, return_index=True)
            self._insert(distinct, fill(wanted))
            rows, _ = self._probe(keys)
        return rows

    def _resize(self, bits: int) -> None:
        self.bits = bits
        places = np.zeros(1 << bits, dtype=[("key", np.int64), ("row", np.int64)])
        self._keys, self._row_of = places["key"], places["row"]

    def _probe(self, keys: Array) -> tuple[Array, Rows]:
        """Row of every key, and which keys are missing."""
        if native.fast is not None:
            rows, lacking = np.empty((2, len(keys)), dtype=np.int64)
            count = native.fast.probe(keys, self._keys, self._row_of, self.bits, MIX, rows, lacking)
            if count is not None:
                return rows, lacking[:count]
        from .lookup_uncompiled import probed

        return probed(keys, self._keys, self._row_of, self.bits, MIX)

    def _insert(self, keys: Array, values: Row) -> None:
        """Distinct new keys."""
        start = self.count
        self.count = start + len(keys)
        self.changes += 1
        if self.count > len(self.columns[0]) or not start:
            fields = [(name, new.dtype) for name, new in zip(self.row.__annotations__, values, strict=True)]
            rows = np.zeros(2 * self.count, dtype=np.dtype(fields, align=True))  # the columns of a row are near
            for name, old in zip(self.row.__annotations__, self.columns, strict=True):
                rows[name][:start] = old[:start]
            self.columns = self.row(*(rows[name] for name in self.row.__annotations__))
        for column, new in zip(self.columns, values, strict=True):
            column[start : self.count] = new
        if self.count * SPARSE > len(self._keys):
            taken = np.flatnonzero(self._keys)
            old_keys, old_rows = self._keys[taken], self._row_of[taken]
            self._resize((2 * self.count * SPARSE - 1).bit_length())
            self._place(old_keys, old_rows)
        self._place(keys, np.arange(start, self.count))

    def _place(self, keys: Array, rows: Rows) -> None:
        """Distinct new keys."""
        given = self._keys, self._row_of, keys, rows, self.bits, MIX
        if native.fast is None or native.fast.place(*given) is None:
            from .lookup_uncompiled import place

            place(*given)


class Lists:
    """Arrays of float64 one after the other in one growing array: what a row names by the place where it starts."""

    def __init__(self) -> None:
        self.data = np.zeros(1 << 10)
        self.size = 0

    def add(self, values: Array) -> int:
        """Where the values start."""
        start, self.size = self.size, self.size + len(values)
        if self.size > len(self.data):
            grown = np.zeros(2 * self.size)
            grown[:start] = self.data[:start]
            self.data = grown
        self.data[start : self.size] = values
        return start


def chunks(sizes: Array, most: int) -> Iterator[slice]:
    """Runs of entries whose sizes add up to no more than `most`, or single entries."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, "right")))
        yield slice(start, stop)
        start = stop
