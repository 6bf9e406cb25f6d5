"""What designs may score, told from those tried so far: of many proposals a search then evaluates the most promising.

Energy and cycles are nearly smooth over the logarithms of loop bounds. A Gaussian process learns the logarithm of the score
over what loops move: words of tiles, how often they come, instances in use; other genes are alike or not (Rasmussen and
Williams, 2006; Matern 3/2 and linear kernel). Its loops are in `inner/gaussian.py`.
"""

from __future__ import annotations

import numpy as np

from sparsemap import Space
from sparsemap.inner.arrays import logs
from sparsemap.pieces.contracts import Array, Rows, Scores
from sparsemap.problem.designs import Decoded

from .genes import MAPPING
from .inner import functions

FEWEST, MOST = 40, 150
"""Valid designs from which on anything is told, and those that it is told from, the best ones."""
REACH, APART = 2.0, 0.1
"""Distance over which scores are alike, 1 is a standard deviation of all features; its square for a gene that differs."""
NOISE, DARING = 0.01, 4.0
"""Variance that nothing explains, as a share; standard deviations below what is expected that count as a promise."""
SAME = 1e-9
"""Deviations up to this one are the rounding of features that are all equal."""
DIGITS = 3
"""A promise is rounded so far: designs that the features do not tell apart keep their order on every machine."""


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
        """None: its designs have no loops."""
        return cls(space) if all(map(space.provides, MAPPING)) else None

    @property
    def knows(self) -> bool:
        return len(self.scores) >= FEWEST

    def receive(self, tried: Decoded, scores: Scores) -> None:
        """Takes in what designs have scored."""
        valid = np.flatnonzero(np.isfinite(scores) & (scores > 0.0))
        if not valid.size:
            return
        told, own = self._told(tried, valid), np.concatenate([self.scores, logs(scores[valid])])
        told = np.concatenate([self.features, told]) if len(self.scores) else told
        best = np.argsort(own, kind="stable")[:MOST]
        genes = np.concatenate([self.genes, tried.genomes[valid[:, None], self.rest]])
        self.features, self.genes, self.scores = told[best], genes[best], own[best]

    def promise(self, designs: Decoded, rows: Rows) -> Array:
        """(rows,) what designs at these rows may well score, lower is better: so many deviations below what is expected."""
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
        """(rows, F) logarithms: loop bounds at half weight; instances in use; by level and tensor the words of its tile, and all
        that are brought, where a tile stays during the innermost loops that do not move it."""
        columns, found = designs.designs.columns, np.empty((len(rows), self.width))
        bounds, order = (np.ascontiguousarray(columns[name][..., rows]) for name in ("bounds", "order"))
        scratch = np.empty((2, len(self.moves), len(bounds)))
        functions.features(logs(bounds), order, self.moves, self.is_spatial, *scratch, found)
        return found


def likeness(features: Array, genes: Array, known: int, reach: float, apart: float, slope: float = 0.0) -> Array:
    """How alike the scores of designs (n, known) and of the first ones are, of these up to the diagonal, see `alike`."""
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
    """Rows (m, n), of which the first n are a positive definite L L', times the inverse of L'; not above their diagonal."""
    functions.reduce(rows, np.empty((rows.shape[1], rows.shape[1])))
    return rows
