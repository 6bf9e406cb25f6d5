"""The lower-left convex hull of energies and cycles: the designs that a quasi-concave cost of both may want."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import attrs
import numpy as np

from ..pieces.contracts.base import Array

T = TypeVar("T")
Corner = tuple[float, float, T]
"""Energy, cycles, and whatever has them."""
AT_ONCE = 256
"""Points that are held against a hull in one go before they are tried one by one."""


def hull(points: Iterable[Corner[T]]) -> list[Corner[T]]:
    """The vertices of the lower-left convex hull, by ascending energy; of equal points the first."""
    found: list[Corner[T]] = []
    for point in sorted(points, key=lambda p: p[:2]):
        if found and point[1] >= found[-1][1]:
            continue
        while len(found) > 1 and _above(found[-2], found[-1], point):
            found.pop()
        found.append(point)
    return found


def thinned(points: Sequence[T], costs: Callable[[T], tuple[float, float, float]]) -> list[T]:
    """Those of points of (energy, cycles, room) that are on the hull of all that need no more room; of equal ones the first."""
    energy, cycles, room = np.array([costs(point) for point in points], np.float64).reshape(-1, 3).T
    return [points[i] for i in thinned_rows(energy, cycles, room)]


def thinned_rows(energy_pj: Array, cycles: Array, room: Array) -> list[int]:
    """The rows (n,) that `thinned` keeps, by ascending room."""
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
    """Whether a point is on the hull of corners and itself, which they then are."""
    place = bisect_left(corners, (energy, cycles))
    if place and corners[place - 1][1] <= cycles:
        return False
    if place < len(corners):
        if corners[place] == (energy, cycles):
            return False
        if place and _above((*corners[place - 1], None), (energy, cycles, None), (*corners[place], None)):
            return False
    end = place
    while end < len(corners) and corners[end][1] >= cycles:
        end += 1
    corners[place:end] = [(energy, cycles)]
    while place > 1 and _above(*((*corner, None) for corner in corners[place - 2 : place + 1])):
        del corners[place - 1]
        place -= 1
    while place + 2 < len(corners) and _above(*((*corner, None) for corner in corners[place : place + 3])):
        del corners[place + 1]
    return True


def _above(a: Corner[T], b: Corner[T], c: Corner[T]) -> bool:
    """Whether b is on or above the line from a to c, which have less and more energy."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


@attrs.define(eq=False)
class HullOfDesigns:
    """The designs of a search that are on the hull."""

    corners: list[Corner[Array]] = attrs.field(factory=list)
    """With genomes (G,)."""

    def add(self, genomes: Array, energy_pj: Array, cycles: Array) -> None:
        """A batch: (n, G), and (n,) each, infinite where a design is invalid."""
        rows = np.flatnonzero(np.isfinite(energy_pj) & np.isfinite(cycles))
        if self.corners and rows.size:
            known = np.array([corner[:2] for corner in self.corners])
            line = np.interp(energy_pj[rows], known[:, 0], known[:, 1], left=np.inf)
            rows = rows[cycles[rows] < line]
        if rows.size:
            more = zip(energy_pj[rows].tolist(), cycles[rows].tolist(), genomes[rows], strict=True)
            self.corners = [(e, c, genome.copy()) for e, c, genome in hull([*self.corners, *more])]
