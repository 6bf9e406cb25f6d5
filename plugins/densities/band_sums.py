"""Sums of the nonzeros in the blocks of bands."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from sparsemap.pieces.contracts.base import Array

from . import hypergeometric
from .atoms import NEVER, Atoms
from .inner import functions

draws = lru_cache(1 << 12)(hypergeometric.table)

ROOM = 64
"""Initial room for values of a band, per value of the band plus the next footprint."""

Kept = tuple[int, int, Array | None, list[Atoms] | None]
"""A footprint for `joined`: number of blocks; then either the nonzeros per kept block and the probabilities of an empty
sub-tile in 0, 1, .. kept blocks, or the occupancies of 0, 1, .. kept blocks."""
Placed = tuple[Atoms, int, int, float]
"""Occupancies with probabilities, a factor for the occupancies, their row in `placed`, and their share of this row."""
Share = tuple[int, Any, float, bool, bool]
"""A band for `gathered`: row of `placed`, description, share of the row, cut groups, and independence of sub-tile rows."""
Full = tuple[Array, list[tuple[int, Array]], list[tuple[int, Array]]]
"""(strips,) logarithms for `fullest`: the number of strips, the probability of full bands by number of bands, and the
share of these with an empty sub-tile by number of bands."""


def joined(footprints: list[Kept], blocks: int, keep: int, none: float) -> Atoms:
    """Occupancies of a band with these footprints, for `keep` of `blocks` kept, times `none`.

    Footprints are drawn in turn, each hypergeometric given the remaining kept blocks."""
    x, p, states = np.zeros(1, np.int64), np.full(1, none), np.array([0, 1])
    if none <= NEVER:
        return x[:0], p[:0]
    for place, (count, step, powers, held) in enumerate(footprints):
        last, kept = place == len(footprints) - 1, np.diff(states)
        tables = [draws(blocks, keep - j, count) if some else None for j, some in enumerate(kept.tolist())]
        drawn = np.zeros((len(kept), 3), np.int64)
        start = most = 0
        for row, table in zip(drawn, tables, strict=True):
            if table is not None:
                row[:] = table[0][0], start, start + len(table[0])
                start, most = start + len(table[0]), max(most, int(table[0][-1]))
        chances = np.concatenate([table[1] for table in tables if table is not None])
        if powers is not None:
            y, q, starts = np.arange(most + 1) * step, powers[: most + 1], np.arange(most + 2)
        else:
            assert held is not None
            y, q = (np.concatenate(parts) for parts in zip(*held[: most + 1], strict=True))
            starts = np.cumsum([0, *(len(one) for one, _ in held[: most + 1])])
        reach, ends = int(x.max() + y.max()) + 1, np.zeros(1 if last else keep + 1, np.int64)
        room = min(reach, ROOM * (len(x) + len(y)))
        while True:
            out = np.empty(room, np.int64), np.empty(room)
            given = states, x, p, drawn, chances, starts, y, np.ascontiguousarray(q)
            if functions.join(*given, last, np.zeros(reach), ends, *out) >= 0:
                break
            room *= 4
        x, p = out[0][: ends[-1]], out[1][: ends[-1]]
        if not len(x):
            break
        states, blocks = np.concatenate([[0], ends]), blocks - count
    return x, p


def placed(bands: list[Placed], rows: int, size: int, step: int) -> Array:
    """(rows, size) occupancy probabilities, split between the nearest places `step` apart, modulo `size`, a power of two."""
    out, after = np.zeros(rows * size), np.zeros(rows * size)
    for (x, p), times, row, share in bands:
        functions.place(x, p, times, share, step, row * size, size, out, after)
    return (out + after).reshape(rows, size)


def gathered(
    shares: list[Share], height: int, inner: int, known: dict[Any, Atoms], ask: Callable[..., Atoms]
) -> list[Placed]:
    """Bands of `height` rows, `inner` with a sub-tile, as in `placed`; one row stands for whole groups.

    Occupancies come from `known`, under ("_joined", (description, rows, inner)), or from `ask`."""
    every = [
        (at, (classes, height if partial else 1, 0 if certain else inner), share, 1 if partial else height)
        for at, classes, share, partial, certain in shares
    ]
    return [(known.get(("_joined", asked)) or ask(*asked), times, at, share) for at, asked, share, times in every]


def fullest(bands: list[Full]) -> float | None:
    """Share of empty sub-tiles in tiles with as many nonzeros as possible; None where all probabilities underflow."""
    ones, boths = [], []
    for first, every, inside in bands:
        for count, chance in every:
            first = first + count * chance
        ones.append(first)
        for count, chance in inside:
            first = first + count * chance
        boths.append(first)
    found = functions.share_of(np.concatenate(ones), np.concatenate(boths))
    return None if found < 0.0 else float(found)
