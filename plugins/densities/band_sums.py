"""Sums of what the blocks of bands hold: by `chances.c`, or in NumPy with the same numbers (`chances_numpy.py`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from sparsemap.pieces.contracts.base import Array

from . import hypergeometric
from .atoms import NEVER, Atoms

draws = lru_cache(1 << 12)(hypergeometric.table)

Kept = tuple[int, int, Array | None, list[Atoms] | None]
"""A footprint of `joined`: in how many blocks it occurs; either the nonzeros that each of them holds and the probabilities
that 0, 1, .. of them do with the sub-tile empty, or what so many hold."""
Placed = tuple[Atoms, int, int, float]
"""Occupancies and their probabilities, what the former are multiplied by, their row of `placed`, and their share of it."""


def joined(footprints: list[Kept], blocks: int, keep: int, none: float) -> Atoms:
    """What a band holds of these footprints, given that `keep` of the `blocks` are kept, times `none`."""
    found = hypergeometric.COMPILED and hypergeometric.COMPILED.joined(footprints, blocks, keep, none, draws)
    dense = np.frombuffer(found) if found else _plain("joined")(footprints, blocks, keep, none, draws)
    x = np.flatnonzero(dense > NEVER)
    return x, dense[x]


def placed(bands: list[Placed], rows: int, size: int, step: int) -> Array:
    """(rows, size) of what bands hold, between the nearest two places `step` apart, modulo `size`, a power of two."""
    out = np.zeros((rows, size))
    if hypergeometric.COMPILED is None or hypergeometric.COMPILED.placed(bands, step, out) is None:
        _plain("placed")(bands, step, out)
    return out


def _plain(name: str) -> Callable[..., Any]:
    return getattr(import_module(f"{__package__}.chances_numpy"), name)
