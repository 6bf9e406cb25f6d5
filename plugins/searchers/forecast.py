"""What designs may score, told from those tried so far: of many proposals a search then evaluates the most promising.

Energy and cycles are sums and maxima of products of loop bounds, and so nearly smooth over their logarithms. A Gaussian
process learns the logarithm of the score over what loops move: words of tiles, how often they come, instances in use; genes
of other segments are alike or not (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006; Matern 3/2 and
linear kernel). Sums are formed without a library of linear algebra: its threads round differently, and wait for one another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemap import Space
from sparsemap.native import loaded
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


gaussian: Any = loaded(__package__, "gaussian")
"""The elimination in C, or None."""


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
        self.features, self.genes, self.scores = told[best], genes[best], own[best]

    def promise(self, designs: Decoded) -> Array:
        """(n,) what each may well score, lower is better: so many standard deviations below what is expected."""
        known, spread = len(self.scores), self.features.std(axis=0)
        spread = np.where(spread > 0.0, spread, 1.0) * np.sqrt(self.features.shape[1])
        features = (np.concatenate([self.features, self._told(designs)]) - self.features.mean(axis=0)) / spread
        genes = np.concatenate([self.genes, designs.genomes[:, self.rest]])
        kernel, product = likeness(features, genes, known, REACH, APART)
        kernel += (product + 1.0) / features.shape[1]
        told, expected = conditioned(kernel, self.scores, NOISE)
        own = 1.0 + ((features[known:] ** 2).sum(axis=1) + 1.0) / features.shape[1]
        return np.round(expected - DARING * np.sqrt(np.maximum(own - (told**2).sum(axis=1), 0.0)), DIGITS)

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


def likeness(features: Array, genes: Array, known: int, reach: float, apart: float) -> tuple[Array, Array]:
    """(n, known) how alike the scores of all designs and the first ones are, over the distance of features (n, F), `reach`
    at a time, and genes (n, g), each of which that differs adds `apart` to its square; and the products of the features."""
    product: Array = np.einsum("nf,mf->nm", features, features[:known])
    length, others = (features**2).sum(axis=1), np.zeros(product.shape, dtype=np.int16)
    by_gene = genes.T.astype(np.int16, order="C")  # only whether they are alike matters
    if gaussian is None or gaussian.differing(others, by_gene) is None:
        for own in by_gene:
            others += own[:, None] != own[:known]
    squared = length[:, None] + length[:known] - 2.0 * product + apart * others
    far = np.sqrt(np.maximum(squared, 0.0)) / reach
    return (1.0 + far) * np.exp(-far), product


def conditioned(kernel: Array, scores: Array, noise: float) -> tuple[Array, Array]:
    """What designs that scored so (k,) tell of others, of a kernel (k + n, k) of both: rows (n, k) whose products are what the
    covariance of the others loses, and (n,) the scores expected, in standard deviations from the mean."""
    known = len(scores)
    kernel[:known] += noise * np.eye(known)
    scores = (scores - scores.mean()) / (scores.std() or 1.0)
    reduced = _reduced(np.concatenate([kernel, scores[None]]))[known:]
    return reduced[:-1], (reduced[:-1] * reduced[-1]).sum(axis=1)


def _reduced(rows: Array) -> Array:
    """Rows (m, n), of which the first n are a symmetric positive definite matrix L L', times the inverse of L'; what is above
    the diagonal of the first means nothing."""
    if gaussian is not None and gaussian.reduced(rows) is not None:
        return rows
    for k in range(rows.shape[1]):
        rows[k:, k] /= np.sqrt(rows[k, k])
        rows[k + 1 :, k + 1 :] -= rows[k + 1 :, k, None] * rows[k + 1 : rows.shape[1], k]
    return rows
