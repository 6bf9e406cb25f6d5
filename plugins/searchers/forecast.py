"""What designs may score, told from those tried so far: of many proposals a search then evaluates the most promising.

Energy and cycles are sums and maxima of products of loop bounds, and so nearly smooth over their logarithms. A Gaussian
process learns the logarithm of the score over what loops move: words of tiles, how often they come, instances in use; genes
of other segments are alike or not (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006; Matern 3/2 and
linear kernel). Sums are formed without a library of linear algebra: its threads round differently, and wait for one another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Array, Scores
from sparsemap.problem.designs import Decoded

from .genes import MAPPING

FEWEST, MOST = 40, 150
"""Valid designs from which on anything is told, and those that it is told from, the best ones."""
REACH = 2.0
"""Distance over which scores are alike: 1 is a standard deviation of all features."""
APART = 0.1
"""Squared distance of designs with another gene in one place."""
NOISE = 0.01
"""Variance that nothing explains, as a share."""
DARING = 4.0
"""Standard deviations below what is expected that count as a promise: what is little known is worth a try."""
DIGITS = 3
"""A promise is rounded so far: designs that the features do not tell apart keep their order on every machine."""


class _Fitted(NamedTuple):
    mean: Array
    spread: Array
    features: Array
    genes: Array
    inverse: Array
    """Of the kernel of all pairs of known designs (n, n), .."""
    weights: Array
    """.. and times their scores (n,)."""


class Forecast:
    """Features (n, F), genes (n, g) and logarithms of the scores (n,) of the best designs so far."""

    def __init__(self, space: Space) -> None:
        problem, levels = space.problem, space.problem.mapping_levels
        self.moves = np.array([[dim in tensor.dims for dim in problem.dims] for tensor in problem.tensors])
        self.spatial = np.array([i for i, level in enumerate(levels) if level.spatial], dtype=np.int64)
        self.in_time = np.array([i for i, level in enumerate(levels) if not level.spatial], dtype=np.int64)
        parts = [part for name, part in space.slices.items() if not MAPPING & {*space.segments[name].provides}]
        self.rest = np.array([gene for part in parts for gene in range(part.start, part.stop)], dtype=np.int64)
        self.features, self.genes, self.scores = np.zeros((0, 1)), np.zeros((0, len(self.rest)), np.int64), np.zeros(0)
        self.fitted: _Fitted | None = None

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
        told, own = self._told(tried.take(valid)), np.log(scores[valid])
        if len(self.scores):
            told, own = np.concatenate([self.features, told]), np.concatenate([self.scores, own])
        best = np.argsort(own, kind="stable")[:MOST]
        genes = np.concatenate([self.genes, tried.genomes[valid][:, self.rest]])
        self.features, self.genes, self.scores, self.fitted = told[best], genes[best], own[best], None

    def promise(self, designs: Decoded) -> Array:
        """(n,) what each may well score, lower is better: so many standard deviations below what is expected."""
        known = self.fitted = self.fitted or self._fit()
        features = (self._told(designs) - known.mean) / known.spread
        kernel = _kernel(features, designs.genomes[:, self.rest], known.features, known.genes)
        own = 1.0 + ((features**2).sum(axis=1) + 1.0) / features.shape[1]
        variance = np.maximum(own - (_products(kernel, known.inverse) * kernel).sum(axis=1), 0.0)
        return np.round((kernel * known.weights).sum(axis=1) - DARING * np.sqrt(variance), DIGITS)

    def _fit(self) -> _Fitted:
        mean, spread = self.features.mean(axis=0), self.features.std(axis=0)
        spread = np.where(spread > 0.0, spread, 1.0) * np.sqrt(self.features.shape[1])
        features = (self.features - mean) / spread
        kernel = _kernel(features, self.genes, features, self.genes)
        inverse = _inverse(kernel + NOISE * np.eye(len(kernel)))
        scores = (self.scores - self.scores.mean()) / (self.scores.std() or 1.0)
        return _Fitted(mean, spread, features, self.genes, inverse, (inverse * scores).sum(axis=1))

    def _told(self, designs: Decoded) -> Array:
        """(n, F) logarithms: loop bounds at half weight; instances in use; by level and tensor the words of its tile, and all
        that are brought, where a tile stays during the innermost loops that do not move it."""
        bounds = np.log2(designs.designs.columns["bounds"])
        order = designs.designs.columns["order"].astype(np.intp)
        levels, _, count = bounds.shape
        loops = np.take_along_axis(bounds, order, axis=1)
        moved = self.moves[:, order] & (loops > 0.0)  # (T, L, D, n)
        over = np.einsum("td,ldn->tln", self.moves.astype(np.float64), bounds)
        words = over[:, ::-1].cumsum(axis=1)[:, ::-1]
        found = [bounds.reshape(-1, count) / 2.0, bounds[self.spatial].sum(axis=1)]
        for level in (*self.in_time[1:], levels):
            outside = self.in_time[self.in_time < level][::-1]
            steps = loops[outside, ::-1].reshape(-1, count)
            goes = np.logical_or.accumulate(moved[:, outside, ::-1].reshape(len(moved), -1, count), axis=1)
            brought = np.where(goes, steps, 0.0).sum(axis=1) + over[:, self.spatial[self.spatial < level]].sum(axis=1)
            if level < levels:
                found.append(words[:, level])
                brought = brought + words[:, level]
            found.append(brought)
        return np.concatenate(found).T


def _kernel(features: Array, genes: Array, others: Array, other_genes: Array) -> Array:
    """(n, m)"""
    product = _products(features, others)
    squared = (features**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * product
    for own, other in zip(genes.T, other_genes.T, strict=True):
        squared += APART * (own[:, None] != other)
    far = np.sqrt(np.maximum(squared, 0.0)) / REACH
    return (1.0 + far) * np.exp(-far) + (product + 1.0) / features.shape[1]


def _products(rows: Array, others: Array) -> Array:
    """(n, m) of rows (n, F) and (m, F)."""
    found: Array = np.einsum("nf,mf->nm", rows, others)
    return found


def _inverse(matrix: Array) -> Array:
    """Of a symmetric positive definite one (n, n), by Gauss and Jordan."""
    found, change = matrix.copy(), np.empty_like(matrix)
    for k in range(len(found)):
        pivot, factors = found[k, k], found[:, k].copy()
        factors[k] = 0.0
        found[:, k] = 0.0
        found[k, k] = 1.0
        found[k] /= pivot
        found -= np.multiply(factors[:, None], found[k], out=change)
    return found
