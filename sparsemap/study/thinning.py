"""Thinning of points (energy, cycles, room) to the candidates of an optimal plan."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ..pieces.contracts.base import Array
from ..searching.hull import above

T = TypeVar("T")
AT_ONCE = 256
"""Points compared with a hull at once, before the test of single points."""


def thinned(points: Sequence[T], costs: Callable[[T], tuple[float, float, float]]) -> list[T]:
    """Points (energy, cycles, room) on the hull of all points with at most the same room; the first of equal points."""
    if len(points) < 2:
        return list(points)
    energy, cycles, room = np.array([costs(point) for point in points], np.float64).reshape(-1, 3).T
    return [points[i] for i in thinned_rows(energy, cycles, room)]


def thinned_rows(energy_pj: Array, cycles: Array, room: Array) -> list[int]:
    """Rows (n,) kept by `thinned`, by ascending room."""
    order = np.lexsort((energy_pj, cycles, room))
    corners: list[tuple[float, float]] = []
    kept: list[int] = []
    for begin in range(0, len(order), AT_ONCE):
        rows = order[begin : begin + AT_ONCE]
        if corners:  # what is clearly above the hull so far is above any later one
            known = np.array(corners)
            line = np.interp(energy_pj[rows], known[:, 0], known[:, 1], left=np.inf)
            rows = rows[cycles[rows] <= line * (1.0 + 1e-9)]
        for row, *point in zip(rows.tolist(), energy_pj[rows].tolist(), cycles[rows].tolist(), strict=True):
            if _joins(corners, point[0], point[1]):
                kept.append(row)
    return kept


def _joins(corners: list[tuple[float, float]], energy: float, cycles: float) -> bool:
    """Adds a point to the corners if it is on the hull of all; returns whether it is."""
    place = bisect_left(corners, (energy, cycles))
    if place and corners[place - 1][1] <= cycles:
        return False
    if place < len(corners):
        if corners[place] == (energy, cycles):
            return False
        if place and above((*corners[place - 1], None), (energy, cycles, None), (*corners[place], None)):
            return False
    end = place
    while end < len(corners) and corners[end][1] >= cycles:
        end += 1
    corners[place:end] = [(energy, cycles)]
    while place > 1 and above(*((*corner, None) for corner in corners[place - 2 : place + 1])):
        del corners[place - 1]
        place -= 1
    while place + 2 < len(corners) and above(*((*corner, None) for corner in corners[place : place + 3])):
        del corners[place + 1]
    return True
