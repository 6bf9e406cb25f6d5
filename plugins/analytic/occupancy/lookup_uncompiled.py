"""What `fast.c` does with the places of a table (`lookup`), in NumPy: loaded where there is no compiler."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import Array, Rows


def home(keys: Array, bits: int, mix: int) -> Array:
    """(N,) the first place of each key."""
    return ((keys * mix) >> (64 - bits)) & ((1 << bits) - 1)


def probed(keys: Array, table: Array, row_of: Array, bits: int, mix: int) -> tuple[Array, Rows]:
    """Row of every key, and which keys are missing."""
    place = home(keys, bits, mix)
    wrong = np.flatnonzero(table[place] != keys)
    missing = []
    while len(wrong):
        empty = table[place[wrong]] == 0
        missing.append(wrong[empty])
        wrong = wrong[~empty]
        place[wrong] = (place[wrong] + 1) & ((1 << bits) - 1)
        wrong = wrong[table[place[wrong]] != keys[wrong]]
    return row_of[place], np.concatenate(missing) if missing else wrong


def place(table: Array, row_of: Array, keys: Array, rows: Rows, bits: int, mix: int) -> None:
    """Distinct new keys: all try their places at once, those that find theirs taken try the next one."""
    at = home(keys, bits, mix)
    while len(keys):
        free = table[at] == 0
        table[at[free]] = keys[free]  # of several keys for one place, any one stays
        won = table[at] == keys
        row_of[at[won]] = rows[won]
        keys, rows, at = keys[~won], rows[~won], (at[~won] + 1) & ((1 << bits) - 1)
