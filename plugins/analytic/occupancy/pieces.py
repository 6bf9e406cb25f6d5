"""Pieces of merged-window bins (`bins`) in which rounding by a format passes a whole number.

`inner/rank_pieces.py` finds the steps and cuts the bins. In between, the density computes occupied positions around a
step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array, Nonzeros, Rows

from ..inner import functions
from .tiles import TAIL

if TYPE_CHECKING:
    from .units import Placed, Ranks, UnitTables

CUTS = float(1 << 12)
"""Ranks with more steps in one window are not cut: among thousands of steps, none matters."""
NONE = np.zeros((2, 0), dtype=np.int64), np.zeros((4, 0))
"""Result without any pieces."""


def cut(given: Placed, at: Array, steps: Array, occupied_at: Callable[[Rows, Nonzeros], Array]) -> tuple[Array, Array]:
    """Rank and bin (2, m) of pieces, with mean occupancy and probability (2, m). Per rank, pieces before a step come
    first, then the pieces behind the last step of each bin.

    Input: rank and bin (P, 2) with steps of `occupied`, in order; `steps` (P, 5) as in `find_steps`. `occupied_at(rank,
    k)` is the function itself."""
    count = int(steps[:, 0].sum())
    source, (value, first), near = np.empty(count, np.int64), np.empty((2, count)), np.empty(4 * count)
    rank = np.empty(4 * count, np.int64)
    functions.place_steps(given.tiles, given.places, at, steps, source, value, first, rank, near)
    places, found = np.empty((2, 2 * count), np.int64), np.empty((2, 2 * count))
    steps_at = at, source, value, first, occupied_at(rank, near)
    made = functions.cut_bins(given.tiles, given.chances, given.places, *steps_at, np.empty(2), places, found)
    return np.ascontiguousarray(places[:, :made]), np.ascontiguousarray(found[:, :made])


def cut_bins(tables: UnitTables, ranks: Ranks, given: Placed) -> tuple[Array, Array]:
    """Rank and bin (2, m) of pieces, with fibers, occupied positions, groups and probability (4, m)."""
    tiles, actual = tables.tiles, tables.tiles.occupancy.actual
    if not tiles.merged:
        return NONE
    limits = *given, tiles.one, actual, TAIL, CUTS, tables.scratch[0]
    count = functions.find_steps(*limits, *tables.steps)
    if count > len(tables.steps[0]):
        tables.steps = np.empty((2 * count, 2), np.int64), np.empty((2 * count, 5))
        functions.find_steps(*limits, *tables.steps)
    if not count:
        return NONE

    def points_at(rank: Rows, k: Nonzeros, *parts: Array) -> Array:
        """(parts, n) fibers, occupied positions and groups, by the part of each."""
        subs, wholes = (
            np.concatenate([part[:, rank].T for part in some]).astype(np.int64)
            for some in (parts, [ranks.shape(0)] * len(parts))
        )
        empty = tiles.occupancy.within_real(subs, wholes, np.concatenate([k] * len(parts)))
        points = (1.0 - np.where((subs == wholes).all(axis=1), 0.0, empty)).reshape(len(parts), -1)
        if actual:  # by Timeloop, over non-empty fibers
            points[1] = np.minimum(1.0, points[1] / np.where(points[0] > 0.0, points[0], 1.0))
        return points * given.sizes[[1, 0, 2][: len(parts)]][:, rank]

    parts = [ranks.shape(1), ranks.shape(2), *([ranks.group] if len(ranks.group) else [])]
    at, steps = (each[:count] for each in tables.steps)
    places, (k, p) = cut(given, at, steps, lambda rank, k: points_at(rank, k, *parts[:2])[1])
    points = points_at(places[0], k, *parts)
    return places, np.concatenate([points, np.zeros((3 - len(points), len(p))), p[None]])
