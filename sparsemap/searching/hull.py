"""The lower-left convex hull of energies and cycles: candidates for the optimum of any quasi-concave cost of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import attrs
import numpy as np

from ..pieces.contracts.base import Array

T = TypeVar("T")
Corner = tuple[float, float, T]
"""Energy, cycles, and their owner."""


def hull(points: Iterable[Corner[T]]) -> list[Corner[T]]:
    """The vertices of the lower-left convex hull, by ascending energy; of equal points the first."""
    found: list[Corner[T]] = []
    for point in sorted(points, key=lambda p: p[:2]):
        if found and point[1] >= found[-1][1]:
            continue
        while len(found) > 1 and above(found[-2], found[-1], point):
            found.pop()
        found.append(point)
    return found


def above(a: Corner[T], b: Corner[T], c: Corner[T]) -> bool:
    """Whether b is on or above the line from a to c; energies ascend from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


@attrs.define(eq=False)
class HullOfDesigns:
    corners: list[Corner[Array]] = attrs.field(factory=list)
    """Corners with genomes (G,)."""

    def add(self, genomes: Array, energy_pj: Array, cycles: Array) -> None:
        """Adds a batch: genomes (n, G), energies and cycles (n,), infinite for invalid designs."""
        rows = np.flatnonzero(np.isfinite(energy_pj) & np.isfinite(cycles))
        if self.corners and rows.size:
            known = np.array([corner[:2] for corner in self.corners])
            line = np.interp(energy_pj[rows], known[:, 0], known[:, 1], left=np.inf)
            rows = rows[cycles[rows] < line]
        if rows.size:
            more = zip(energy_pj[rows].tolist(), cycles[rows].tolist(), genomes[rows], strict=True)
            self.corners = [(e, c, genome.copy()) for e, c, genome in hull([*self.corners, *more])]
