"""What `fast.c` does with the places of a table (`lookup`), in NumPy: loaded where there is no compiler."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows

from .lookup import MIX, SPARSE


def enter(keys: Array, places: Array, count: int, rows: Rows, new: Rows) -> int:
    """Puts in the row of every key, those that are new from `count` on, in their order, and where each of these comes first. How
    many there are; -1 less where there was no room for all."""
    wanted, first, which = np.unique(keys, return_index=True, return_inverse=True)
    found = places[_placed(wanted, places)]
    missing = np.flatnonzero(found[:, 0] == 0)
    missing = missing[np.argsort(first[missing])]
    if (count + len(missing)) * SPARSE > len(places):
        return -1
    found[missing, 1] = count + np.arange(len(missing))
    place(np.stack([wanted[missing], found[missing, 1]], axis=1), places)
    rows[:], new[: len(missing)] = found[which, 1], first[missing]
    return len(missing)


def place(pairs: Array, places: Array) -> None:
    """Distinct new keys, with their rows: all try their places at once, those that find theirs taken try the next one."""
    while len(pairs):
        at = _placed(pairs[:, 0], places)
        places[at] = pairs  # of several keys for one place, any one stays
        pairs = pairs[places[at, 0] != pairs[:, 0]]


def _placed(keys: Array, places: Array) -> Array:
    """(N,) where each key is, or the first place that is free for it."""
    bits, last = len(places).bit_length() - 1, len(places) - 1
    at = ((keys * MIX) >> (64 - bits)) & last
    while (wrong := np.flatnonzero((places[at, 0] != keys) & (places[at, 0] != 0))).size:
        at[wrong] = (at[wrong] + 1) & last
    return at
