"""Keys of rows of numbers, and the places of keys in a table (`occupancy/lookup.py`)."""

from __future__ import annotations

from sparsemap.inner.primitives import hashed, mixed
from sparsemap.inner.types import Reals2, Whole, Wholes, Wholes2

__all__ = ["SPARSE", "enter", "mix_all", "place"]

SPARSE = 2
"""Places per row, at least: most keys sit at their first place."""


def key_of(columns: Reals2, first: Whole, count: Whole, i: Whole, key: Whole) -> Whole:
    """A key, not yet odd, from another and all bits of `count` numbers in column i, from row `first` on."""
    for c in range(first, first + count):
        key = mixed(key, columns[c, i])
    return key


def mix_all(columns: Reals2, keys: Wholes) -> None:
    """Keys (n,) of columns (c, n)."""
    for i in range(keys.shape[0]):
        keys[i] = key_of(columns, 0, columns.shape[0], i, 0) | 1  # 0 is an empty place


def enter(keys: Wholes, places: Wholes2, bits: Whole, count: Whole, rows: Wholes, new: Wholes) -> Whole:
    """Row (n,) of every key (n,) in a table with 2^bits places, each a key and a row. New keys get the next rows from
    `count` on; `new` holds the index of their first occurrence. Return the number of new keys, or -1 minus this number
    when places run short."""
    found = 0
    for i in range(keys.shape[0]):
        at = place_of(places, bits, keys[i])
        if at < 0:
            return -1 - found
        if places[at, 0] == 0:
            if (count + found + 1) * SPARSE > places.shape[0] or found == new.shape[0]:
                return -1 - found
            places[at, 0] = keys[i]
            places[at, 1] = count + found
            new[found] = i
            found += 1
        rows[i] = places[at, 1]
    return found


def place(pairs: Wholes2, places: Wholes2, bits: Whole) -> None:
    """Insert distinct keys with rows (n, 2) into a table with more places than keys."""
    for i in range(pairs.shape[0]):
        at = place_of(places, bits, pairs[i, 0])
        places[at, 0] = pairs[i, 0]
        places[at, 1] = pairs[i, 1]


def place_of(places: Wholes2, bits: Whole, key: Whole) -> Whole:
    """Place of a key, or the first free place for a new key; -1: none."""
    at = hashed(key, bits)
    for _ in range(places.shape[0]):
        if places[at, 0] == key or places[at, 0] == 0:
            return at
        at = (at + 1) & (places.shape[0] - 1)
    return -1
