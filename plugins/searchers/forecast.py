"""Forecast of scores from the designs tried so far, so that a search evaluates only the most promising of many
proposals.

Energy and cycles are nearly smooth over the logarithms of loop bounds. A Gaussian process learns the logarithm of the
score from features of the loops: words of tiles, number of deliveries, instances in use. Other genes count as equal or
different (Rasmussen and Williams, 2006; Matern 3/2 and linear kernel). The loops are in `inner/gaussian.py`."""

from __future__ import annotations

import numpy as np

from sparsemap import Space
from sparsemap.inner.arrays import logs
from sparsemap.pieces.contracts import Array, Rows, Scores
from sparsemap.problem.designs import Decoded

from .genes import MAPPING
from .inner import functions

FEWEST, MOST = 40, 150
"""Smallest number of valid designs for a forecast, and largest number used, the best designs."""
REACH, APART = 2.0, 0.1
"""Distance over which scores are similar, relative to a standard deviation of all features; squared distance per
different gene."""
NOISE, DARING = 0.01, 4.0
"""Relative unexplained variance; number of standard deviations below the expected score counted as a promise."""
SAME = 1e-9
"""Deviations up to this value are rounding of equal features."""
DIGITS = 3
"""Digits of a promise: designs with equal features keep their order on every machine."""


class Forecast:
    """Features (n, F), genes (n, g) and logarithms of the scores (n,) of the best designs so far."""

    def __init__(self, space: Space) -> None:
        problem, levels = space.problem, space.problem.mapping_levels
        self.moves = np.array(
            [[dim in tensor.dims for dim in problem.dims] for tensor in problem.tensors], dtype=np.uint8
        )
        self.is_spatial = np.array([level.spatial for level in levels], dtype=np.uint8)
        times = np.count_nonzero(self.is_spatial == 0)
        self.width = len(levels) * len(problem.dims) + len(levels) - times + (2 * times - 1) * len(problem.tensors)
        parts = [part for name, part in space.slices.items() if not MAPPING & {*space.segments[name].provides}]
        self.rest = np.array([gene for part in parts for gene in range(part.start, part.stop)], dtype=np.int64)
        self.features, self.genes, self.scores = np.zeros((0, 1)), np.zeros((0, len(self.rest)), np.int64), np.zeros(0)

    @classmethod
    def of(cls, space: Space) -> Forecast | None:
        """Forecast of a space; None if its designs have no loops."""
        return cls(space) if all(map(space.provides, MAPPING)) else None

    @property
    def knows(self) -> bool:
        return len(self.scores) >= FEWEST

    def receive(self, tried: Decoded, scores: Scores) -> None:
        """Learn the scores of designs."""
        valid = np.flatnonzero(np.isfinite(scores) & (scores > 0.0))
        if not valid.size:
            return
        told, own = self._told(tried, valid), np.concatenate([self.scores, logs(scores[valid])])
        told = np.concatenate([self.features, told]) if len(self.scores) else told
        best = np.argsort(own, kind="stable")[:MOST]
        genes = np.concatenate([self.genes, tried.genomes[valid[:, None], self.rest]])
        self.features, self.genes, self.scores = told[best], genes[best], own[best]

    def promise(self, designs: Decoded, rows: Rows) -> Array:
        """(rows,) optimistic forecast for designs at these rows, lower is better: `DARING` deviations below the
        expected score."""
        count, width = self.features.shape
        spread, scores = self.features.std(axis=0), self.scores - self.scores.mean()
        spread = np.where(spread > SAME, spread, 1.0) * np.sqrt(width)
        features = (np.concatenate([self.features, self._told(designs, rows)]) - self.features.mean(axis=0)) / spread
        genes = np.concatenate([self.genes, designs.genomes[rows][:, self.rest]])
        near, length = likeness(features, genes, count, REACH, APART, slope=1.0 / width), (features**2).sum(axis=1)
        near = np.concatenate([near, scores[None] / (self.scores.std() or 1.0)])
        np.einsum("kk->k", near[:count])[:] += NOISE
        found = reduced(near)[count:]
        lost, expected = (found[:-1] ** 2).sum(axis=1), (found[:-1] * found[-1]).sum(axis=1)
        own = 1.0 + (length[count:] + 1.0) / width
        return np.round(expected - DARING * np.sqrt(np.maximum(own - lost, 0.0)), DIGITS)

    def _told(self, designs: Decoded, rows: Rows) -> Array:
        """(rows, F) logarithms: loop bounds at half weight; instances in use; by level and tensor, the words of the
        tile and the total words delivered, with tiles stationary during the innermost loops not moving the tensor."""
        columns, found = designs.designs.columns, np.empty((len(rows), self.width))
        bounds, order = (np.ascontiguousarray(columns[name][..., rows]) for name in ("bounds", "order"))
        scratch = np.empty((2, len(self.moves), len(bounds)))
        functions.features(logs(bounds), order, self.moves, self.is_spatial, *scratch, found)
        return found


def likeness(features: Array, genes: Array, known: int, reach: float, apart: float, slope: float = 0.0) -> Array:
    """Similarity of the scores of designs (n, known) to the first designs, for these up to the diagonal, see `alike`."""
    found, length = np.empty((len(features), known)), (features**2).sum(axis=1)
    given = (
        np.ascontiguousarray(features),
        np.ascontiguousarray(features[:known].T),
        length,
        genes.T.astype(np.float64, order="C"),
    )
    functions.alike(*given, reach, apart, slope, np.empty((2, known)), found)
    return found


def reduced(rows: Array) -> Array:
    """Rows (m, n), of which the first n form a positive definite matrix L L', multiplied by the inverse of L'; entries
    above the diagonal are unchanged."""
    functions.reduce(rows, np.empty((rows.shape[1], rows.shape[1])))
    return rows
