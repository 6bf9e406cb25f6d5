"""Sums of what the blocks of bands hold."""

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
"""Values that a band holds, over those of a footprint more, at first."""

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
    """What a band holds of these footprints, given that `keep` of the `blocks` are kept, times `none`: footprints are drawn one
    after the other, each hypergeometric given the kept blocks that are left."""
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
    """(rows, size) of what bands hold, between the nearest two places `step` apart, modulo `size`, a power of two."""
    out, after = np.zeros(rows * size), np.zeros(rows * size)
    for (x, p), times, row, share in bands:
        functions.place(x, p, times, share, step, row * size, size, out, after)
    return (out + after).reshape(rows, size)


def gathered(
    shares: list[Share], height: int, inner: int, known: dict[Any, Atoms], ask: Callable[..., Atoms]
) -> list[Placed]:
    """Bands of so many rows, `inner` of them with a sub-tile, as `placed` takes them: what they hold is `known` as
    ("_joined", (what they are like, rows, inner)), or asked for. Where groups are whole, of one row."""
    every = [
        (at, (classes, height if partial else 1, 0 if certain else inner), share, 1 if partial else height)
        for at, classes, share, partial, certain in shares
    ]
    return [(known.get(("_joined", asked)) or ask(*asked), times, at, share) for at, asked, share, times in every]


def fullest(bands: list[Full]) -> float | None:
    """The share of empty sub-tiles in tiles that hold all that they can; None where there are none as far as numbers reach."""
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
