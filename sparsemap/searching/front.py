"""Several objectives at once: dominance, crowding, and the bounded set of the best trade-offs of a search.

All values are minimised. A row of values (n, M) dominates another if no worse in every objective and better in at least
one. Rows with an infinite or undefined value belong to invalid designs and are dominated by every other row."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from ..inner.arrays import logs
from ..pieces.contracts import Array, Genomes, PerDesign, Rows, Scores, Values
from ..problem.problem import Problem
from .best import Best

FRONT_LIMIT = 1000
"""Largest number of designs on the front of a search."""


def non_dominated(values: Values) -> PerDesign:
    """(n,) bool: whether no other row dominates this row of `values` (n, M); of equal rows all or none."""
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


def scaled(values: Values) -> Values:
    """Values on the scale of distances: logarithms for all-positive objectives, because costs span decades."""
    positive = (values > 0).all(axis=0)
    return np.where(positive, logs(np.where(positive, values, 1.0)), values)


def crowding(values: Values) -> PerDesign:
    """(n,) crowding distance of mutually non-dominated rows (Deb et al. 2002), on the scale of `scaled`.

    The distance between the neighbours of a row, summed over objectives and relative to the range of each; infinite for
    the rows at the ends."""
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


@attrs.define(eq=False)
class Front:
    """The non-dominated designs of a search, at most `limit`, sorted by value; the first of equal designs stays.

    Beyond the limit the most crowded designs are dropped, never the best in an objective nor the best by score."""

    limit: int = attrs.field(default=FRONT_LIMIT, validator=attrs.validators.ge(1))
    genomes: Genomes | None = None
    """(n, G) int64; None for an empty front."""
    values: Values = attrs.field(factory=lambda: np.zeros((0, 0)))
    """(n, M) float64."""
    numbers: Array = attrs.field(factory=lambda: np.zeros((0, 1)))
    """(n, k) float64: the score, then further numbers of each design."""

    def __len__(self) -> int:
        return len(self.values)

    def add(self, genomes: Genomes, values: Values, numbers: Array) -> int:
        """Adds a batch: genomes (n, G), values (n, M), numbers (n, k). Returns the number of new designs on the front."""
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

    def _spread(self, values: Values, scores: Scores) -> Rows:
        """Rows to keep, in order. The most crowded rows are dropped a few at a time, since each gap makes room for its
        neighbours."""
        kept = np.arange(len(values))
        while (excess := len(kept) - self.limit) > 0:
            distance = crowding(values[kept])
            distance[np.argmin(scores[kept])] = math.inf
            most = np.argsort(distance, kind="stable")[: max(1, excess // 4)]
            kept = np.delete(kept, most)
        return kept


def designs_on(front: Front, names: Sequence[str], problem: Problem) -> tuple[Best, ...]:
    """The designs on the front of a search, by ascending values of the first objective; `names` are the names of costs."""
    if front.genomes is None:
        return ()
    found, width = [], len(names)
    for genome, values, (score, *columns) in zip(front.genomes, front.values, front.numbers.tolist(), strict=True):
        parts = (columns[start : start + width] for start in range(0, len(columns), width))
        costs, *there = (dict(zip(names, part, strict=True)) for part in parts)
        in_scenarios = dict(zip(problem.scenarios, there, strict=True))
        found.append(Best(problem, genome, costs, score, tuple(map(float, values)), in_scenarios))
    return tuple(found)
