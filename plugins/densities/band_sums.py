"""Sums of what the blocks of bands hold: by `chances.c`, or in NumPy with the same numbers (`chances_numpy.py`)."""

from __future__ import annotations

import math
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
Share = tuple[int, Any, float, bool, bool]
"""Of `gathered`: a row of `placed`, what a band is like, and the share of it; whether its groups are cut, and whether it
holds the same however many rows the sub-tile has."""
Full = tuple[Array, list[tuple[int, Array]], list[tuple[int, Array]]]
"""(strips,) logarithms of `fullest`: of how many there are, of the chance that each of so many bands holds all that it can,
and of the share of that with an empty sub-tile in so many."""


def joined(footprints: list[Kept], blocks: int, keep: int, none: float) -> Atoms:
    """What a band holds of these footprints, given that `keep` of the `blocks` are kept, times `none`."""
    found = hypergeometric.COMPILED and hypergeometric.COMPILED.joined(footprints, blocks, keep, none, draws)
    dense = np.frombuffer(found) if found else _plain("joined")(footprints, blocks, keep, none, draws)
    x = np.flatnonzero(dense > NEVER)
    return x, dense[x]


def placed(bands: list[Placed], rows: int, size: int, step: int) -> Array:
    """(rows, size) of what bands hold, between the nearest two places `step` apart, modulo `size`, a power of two."""
    out = np.zeros((rows, size))
    if bands and (hypergeometric.COMPILED is None or hypergeometric.COMPILED.placed(bands, step, out) is None):
        _plain("placed")(bands, step, out)
    return out


def gathered(
    shares: list[Share], height: int, inner: int, known: dict[Any, Atoms], ask: Callable[..., Atoms]
) -> list[Placed]:
    """Bands of so many rows, `inner` of them with a sub-tile, as `placed` takes them: what they hold is `known` as
    ("_joined", (what they are like, rows, inner)), or asked for. Where groups are whole, of one row."""
    given = shares, height, inner, known, ask
    found = hypergeometric.COMPILED and hypergeometric.COMPILED.gathered(*given)
    return _plain("gathered")(*given) if found is None else found


def fullest(bands: list[Full]) -> float | None:
    """The share of empty sub-tiles in tiles that hold all that they can; None where there are none as far as numbers reach."""
    found = hypergeometric.COMPILED and hypergeometric.COMPILED.fullest(bands, hypergeometric.LOOPS)
    found = _plain("fullest")(bands) if found is None else found
    return None if math.isnan(found) else found


def _plain(name: str) -> Callable[..., Any]:
    return getattr(import_module(f"{__package__}.chances_numpy"), name)
