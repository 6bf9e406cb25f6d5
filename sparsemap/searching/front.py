"""Several objectives at once: dominance, crowding, hypervolume, and the bounded set of the best trade-offs of a search.

All values are minimised. A row of values (n, M) dominates another if it is no worse in every objective and better in
one. Rows with an infinite or undefined value belong to invalid designs and are dominated by every other row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

Array = np.ndarray

FRONT_LIMIT = 1000
"""Designs that a search keeps on its front."""


def non_dominated(values: Array) -> Array:
    """(n,) bool, the rows of `values` (n, M) that no other row dominates; of equal rows all or none."""
    kept = np.zeros(len(values), dtype=bool)
    rest = np.flatnonzero(np.isfinite(values).all(axis=1))
    rest = rest[np.lexsort(values[rest].T[::-1])]  # in this order no row is dominated by a later one
    if values.shape[1] == 2 and rest.size:  # then a row is on the front if its second value is the lowest so far
        ahead = values[rest]
        lowest = np.concatenate([[np.inf], np.minimum.accumulate(ahead[:-1, 1])])
        lower = ahead[:, 1] < lowest
        kept[rest[(ahead == ahead[lower][np.cumsum(lower) - 1]).all(axis=1)]] = True
        return kept
    while rest.size:
        ahead = values[rest]
        kept[rest[(ahead == ahead[0]).all(axis=1)]] = True
        rest = rest[(ahead < ahead[0]).any(axis=1)]
    return kept


def ranks(values: Array, enough: int | None = None) -> Array:
    """(n,) int64: 0 for the non-dominated rows, 1 for those that only rank 0 dominates, and so on.

    Once `enough` rows have their rank, all others share the next one. Rows that are not finite come last.
    """
    found = np.full(len(values), -1, dtype=np.int64)
    rest = np.flatnonzero(np.isfinite(values).all(axis=1))
    count, rank = 0, 0
    while rest.size and (enough is None or count < enough):
        first = non_dominated(values[rest])
        found[rest[first]] = rank
        count, rank, rest = count + int(first.sum()), rank + 1, rest[~first]
    found[rest] = rank
    found[found < 0] = rank + bool(rest.size)
    return found


def scaled(values: Array) -> Array:
    """Values as distances are measured on them: logarithms where all are positive, because costs span decades."""
    positive = (values > 0).all(axis=0)
    return np.where(positive, np.log(np.where(positive, values, 1.0)), values)


def crowding(values: Array) -> Array:
    """(n,) crowding distance of mutually non-dominated rows (Deb et al. 2002), on the scale of `scaled`.

    The distance between the neighbours of a row, summed over objectives and relative to the range of each; infinite for
    the rows at the ends.
    """
    values = scaled(values)
    distance = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        along = column[order]
        if not len(along) or along[-1] == along[0]:
            continue
        distance[order[[0, -1]]] = np.inf
        distance[order[1:-1]] += (along[2:] - along[:-2]) / (along[-1] - along[0])
    return distance


def hypervolume(values: Array, reference: Sequence[float] | Array) -> float:
    """The volume that rows (n, M) dominate up to the reference point (M,); rows that do not beat it add nothing."""
    reference = np.asarray(reference, dtype=np.float64)
    inside = np.isfinite(values).all(axis=1) & (values < reference).all(axis=1)
    points = values[inside]
    return _volume(points[non_dominated(points)], reference)


def _volume(points: Array, reference: Array) -> float:
    """Slices along the last objective, each as wide as the distance to the next point."""
    if not len(points):
        return 0.0
    points = points[np.argsort(points[:, -1], kind="stable")]
    widths = np.diff(np.append(points[:, -1], reference[-1]))
    if len(reference) == 1:
        return float(reference[0] - points[0, 0])
    if len(reference) == 2:
        return float((widths * (reference[0] - np.minimum.accumulate(points[:, 0]))).sum())
    slices = (_volume(points[: last + 1, :-1], reference[:-1]) for last in range(len(points)))
    return sum(float(width) * volume for width, volume in zip(widths, slices, strict=True))


def knee(values: Array) -> int | None:
    """The row of a front (n, 2) that lies furthest below the line between its ends; None if no row does."""
    if len(values) < 3:
        return None
    points = scaled(values)
    span = np.ptp(points, axis=0)
    if not span.all():
        return None
    below = 1.0 - ((points - points.min(axis=0)) / span).sum(axis=1)
    row = int(np.argmax(below))
    return row if below[row] > 0 else None


@attrs.define(eq=False)
class Front:
    """The non-dominated designs of a search, at most `limit`, sorted by their values; of equal ones the first found.

    Beyond the limit the most crowded designs go, never the best in one objective nor that with the best score.
    """

    limit: int = attrs.field(default=FRONT_LIMIT, validator=attrs.validators.ge(1))
    genomes: Array | None = None
    """(n, G) int64; None while nothing is known."""
    values: Array = attrs.field(factory=lambda: np.zeros((0, 0)))
    """(n, M) float64."""
    numbers: Array = attrs.field(factory=lambda: np.zeros((0, 1)))
    """(n, k) float64: the score, and whatever else is to be kept of each design."""

    def __len__(self) -> int:
        return len(self.values)

    def add(self, genomes: Array, values: Array, numbers: Array) -> int:
        """Takes in a batch: genomes (n, G), values (n, M), numbers (n, k). How many of it are on the front then."""
        rows = np.flatnonzero(non_dominated(values))
        if not rows.size:
            return 0
        genomes, values, numbers = genomes[rows], values[rows], numbers[rows]
        before = len(self)
        if self.genomes is not None:
            genomes = np.concatenate([self.genomes, genomes])
            values = np.concatenate([self.values, values])
            numbers = np.concatenate([self.numbers, numbers])
        distinct = np.unique(values, axis=0, return_index=True)[1]  # sorted by value, the first of equal ones
        rows = distinct[non_dominated(values[distinct])]
        rows = rows[self._spread(values[rows], numbers[rows, 0])]
        self.genomes, self.values, self.numbers = genomes[rows], values[rows], numbers[rows]
        return int((rows >= before).sum())

    def _spread(self, values: Array, scores: Array) -> Array:
        """Rows to keep, in order; the most crowded go a few at a time, since each that goes makes room for others."""
        kept = np.arange(len(values))
        while (excess := len(kept) - self.limit) > 0:
            distance = crowding(values[kept])
            distance[np.argmin(scores[kept])] = math.inf
            most = np.argsort(distance, kind="stable")[: max(1, excess // 4)]
            kept = np.delete(kept, most)
        return kept
