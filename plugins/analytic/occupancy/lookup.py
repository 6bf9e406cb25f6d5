"""Rows of numbers looked up by integer keys: a hash map for whole arrays of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from ..inner import functions

FIRST = 1 << 10
"""Number of places of an empty table."""


def distinct(values: Array, axis: int | None = None) -> Array:
    """Distinct values, ascending. `np.unique` without an index imports NumPy's masked arrays, a tenth of NumPy."""
    return np.unique(values, return_index=True, axis=axis)[0]


def fingerprint(parts: Array | Sequence[Array]) -> Array:
    """(N,) int64 keys from all bits of numbers.

    Two different inputs collide with a probability of about n^2 / 2^64 for n inputs: 10^-9 for a hundred thousand."""
    columns = np.ascontiguousarray(parts, dtype=np.float64)
    keys = np.empty(columns.shape[1], dtype=np.int64)
    functions.mix_all(columns, keys)
    return keys


class Table:
    """A growing hash map from fingerprints to rows, with linear probing; all lookups of a batch at once."""

    def __init__(self, width: int = 1, most: int = 1 << 18) -> None:
        """`width`: numbers per row. A table about to exceed `most` rows is emptied first."""
        self.width, self.most = width, most
        self.clear()

    @property
    def size(self) -> int:
        """Total count of stored numbers."""
        return self.data.size + self.places.size

    @property
    def bits(self) -> int:
        """Bits of the number of a place."""
        return len(self.places).bit_length() - 1

    def clear(self) -> None:
        self.count = 0
        self.data = np.zeros((0, self.width))
        self.places = np.zeros((FIRST, 2), dtype=np.int64)  # a key and its row each; 0 is no key

    def found(self, keys: Array, fill: Callable[[Rows], Array]) -> Array:
        """Rows of all keys, (N, width). `fill(first)` receives the indices (n,) of the first occurrence of every missing
        key, ascending, and returns the missing rows (n, width)."""
        rows = self.rows(keys, fill)  # may make new data
        return self.data.take(rows, axis=0)

    def rows(self, keys: Array, fill: Callable[[Rows], Array]) -> Rows:
        """(N,) indices into `data` of the rows returned by `found`."""
        rows, new = self._entered(keys)
        if self.count and self.count + len(new) > self.most:
            self.clear()
            rows, new = self._entered(keys)
        if len(new):
            try:
                self._add(fill(new))
            except BaseException:
                self.clear()  # of keys without rows
                raise
        return rows

    def _entered(self, keys: Array) -> tuple[Rows, Rows]:
        """Row of every key, and the first occurrences of new keys; new keys get the next rows."""
        (rows, new), count, full = np.empty((2, len(keys)), dtype=np.int64), 0, True
        while full:
            found = functions.enter(keys, self.places, self.bits, self.count + count, rows, new[count:])
            full = found < 0
            count += -1 - found if full else found
            if full:
                self._spread()
        return rows, new[:count]

    def _spread(self) -> None:
        """Move all keys to a table with twice the places."""
        taken, self.places = self.places[self.places[:, 0] != 0], np.zeros((2 * len(self.places), 2), dtype=np.int64)
        functions.place(taken, self.places, self.bits)

    def _add(self, values: Array) -> None:
        start, self.count = self.count, self.count + len(values)
        if self.count > len(self.data):
            grown = np.zeros((2 * self.count, self.width))
            grown[:start] = self.data[:start]
            self.data = grown
        self.data[start : self.count] = values


class Lists:
    """Arrays of float64 appended to one growing array; a row refers to an array by its start."""

    def __init__(self) -> None:
        self.data = np.zeros(1 << 10)
        self.size = 0

    def add(self, values: Array) -> int:
        """Append values and return their start."""
        start, self.size = self.size, self.size + len(values)
        if self.size > len(self.data):
            grown = np.zeros(2 * self.size)
            grown[:start] = self.data[:start]
            self.data = grown
        self.data[start : self.size] = values
        return start


def chunks(sizes: Array, most: int) -> Iterator[slice]:
    """Runs of entries with total size up to `most`, or single larger entries."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, "right")))
        yield slice(start, stop)
        start = stop
