"""What designs may score, told from those tried so far: of many proposals a search then evaluates the most promising.

Energy and cycles are nearly smooth over the logarithms of loop bounds. A Gaussian process learns the logarithm of the score
over what loops move: words of tiles, how often they come, instances in use; other genes are alike or not (Rasmussen and
Williams, 2006; Matern 3/2 and linear kernel). No library of linear algebra forms sums: its threads round differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsemap import Space
from sparsemap.native import loaded
from sparsemap.pieces.contracts import Array, Scores
from sparsemap.problem.designs import Decoded

from .genes import MAPPING

FEWEST, MOST = 40, 150
"""Valid designs from which on anything is told, and those that it is told from, the best ones."""
REACH, APART = 2.0, 0.1
"""Distance over which scores are alike, 1 is a standard deviation of all features; its square for a gene that differs."""
NOISE, DARING = 0.01, 4.0
"""Variance that nothing explains, as a share; standard deviations below what is expected that count as a promise."""
DIGITS = 3
"""A promise is rounded so far: designs that the features do not tell apart keep their order on every machine."""

gaussian: Any = loaded(__package__, "gaussian")
"""The same in C, or None."""


class Forecast:
    """Features (n, F), genes (n, g) and logarithms of the scores (n,) of the best designs so far."""

    def __init__(self, space: Space) -> None:
        problem, levels = space.problem, space.problem.mapping_levels
        self.moves = np.array([[dim in tensor.dims for dim in problem.dims] for tensor in problem.tensors])
        self.is_spatial = np.array([level.spatial for level in levels], dtype=bool)
        self.spatial, self.in_time = np.flatnonzero(self.is_spatial), np.flatnonzero(~self.is_spatial)
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
        told, own = self._told(tried.take(valid)), np.concatenate([self.scores, np.log(scores[valid])])
        told = np.concatenate([self.features, told]) if len(self.scores) else told
        best = np.argsort(own, kind="stable")[:MOST]
        genes = np.concatenate([self.genes, tried.genomes[valid][:, self.rest]])
        self.features, self.genes, self.scores = told[best], genes[best], own[best]

    def promise(self, designs: Decoded) -> Array:
        """(n,) what each may well score, lower is better: so many standard deviations below what is expected."""
        known, spread = len(self.scores), self.features.std(axis=0)
        spread = np.where(spread > 0.0, spread, 1.0) * np.sqrt(self.features.shape[1])
        features = (np.concatenate([self.features, self._told(designs)]) - self.features.mean(axis=0)) / spread
        genes = [self.genes, designs.genomes[:, self.rest]]
        kernel, product = likeness(features, np.concatenate(genes), known, REACH, APART)
        told, expected = conditioned(kernel + (product + 1.0) / features.shape[1], self.scores, NOISE)
        own = 1.0 + ((features[known:] ** 2).sum(axis=1) + 1.0) / features.shape[1]
        return np.round(expected - DARING * np.sqrt(np.maximum(own - (told**2).sum(axis=1), 0.0)), DIGITS)

    def _told(self, designs: Decoded) -> Array:
        """(n, F) logarithms: loop bounds at half weight; instances in use; by level and tensor the words of its tile, and all
        that are brought, where a tile stays during the innermost loops that do not move it."""
        bounds, order = np.log2(designs.designs.columns["bounds"]), designs.designs.columns["order"]
        levels, dims, count = bounds.shape
        found = np.empty((levels * dims + len(self.spatial) + (2 * len(self.in_time) - 1) * len(self.moves), count))
        if gaussian is None or gaussian.told(found, bounds, order, self.moves, self.is_spatial) is None:
            found = np.concatenate(list(self._features(bounds, order.astype(np.intp))))
        return found.T

    def _features(self, bounds: Array, order: Array) -> Iterator[Array]:
        """Those of `_told`, (f, n) each: `bounds` (L, D, n) are logarithms."""
        levels, _, count = bounds.shape
        loops = np.take_along_axis(bounds, order, axis=1)
        moved = self.moves[:, order] & (loops > 0.0)  # (T, L, D, n)
        over = np.stack([in_turn(bounds[:, mine]) for mine in self.moves])
        words = over[:, ::-1].cumsum(axis=1)[:, ::-1]
        yield bounds.reshape(-1, count) / 2.0
        yield in_turn(bounds[self.spatial])
        for level in (*self.in_time[1:], levels):
            outside = self.in_time[self.in_time < level][::-1]
            steps = loops[outside, ::-1].reshape(-1, count)
            goes = np.logical_or.accumulate(moved[:, outside, ::-1].reshape(len(moved), -1, count), axis=1)
            brought = in_turn(np.where(goes, steps, 0.0)) + in_turn(over[:, self.spatial[self.spatial < level]])
            if level < levels:
                yield words[:, level]
                brought = brought + words[:, level]
            yield brought


def in_turn(parts: Array) -> Array:
    """Sums (k, n) of (k, m, n), one after the other."""
    found = np.zeros((len(parts), parts.shape[2]))
    for place in range(parts.shape[1]):
        found += parts[:, place]
    return found


def likeness(features: Array, genes: Array, known: int, reach: float, apart: float) -> tuple[Array, Array]:
    """(n, known) how alike the scores of all designs and the first ones are, by the distance of features (n, F) over `reach`;
    each gene (n, g) that differs adds `apart` to its square. And the products of the features."""
    length, far, product = (features**2).sum(axis=1), *np.zeros((2, len(features), known))
    by_gene = genes.T.astype(np.int16, order="C")  # only whether they are alike matters
    given = far, product, np.ascontiguousarray(features), length, by_gene, apart, reach
    if gaussian is None or gaussian.alike(*given) is None:
        for column in features.T:
            product += column[:, None] * column[:known]
        for own in by_gene:
            far += own[:, None] != own[:known]
        far = -np.sqrt(np.maximum(length[:, None] + length[:known] - 2.0 * product + apart * far, 0.0)) / reach
    near = np.exp(far)
    near *= np.subtract(1.0, far, out=far)  # arrays of this size are dear to allocate
    return near, product


def conditioned(kernel: Array, scores: Array, noise: float) -> tuple[Array, Array]:
    """Of a kernel (k + n, k) of designs that scored so (k,) and others: rows (n, k) whose products the covariance of these
    loses, and the scores (n,) expected of them, in standard deviations from the mean."""
    rows = np.concatenate([kernel, (scores - scores.mean())[None] / (scores.std() or 1.0)])
    np.einsum("kk->k", rows[: len(scores)])[:] += noise
    found = reduced(rows)[len(scores) :]
    return found[:-1], (found[:-1] * found[-1]).sum(axis=1)


def reduced(rows: Array) -> Array:
    """Rows (m, n), of which the first n are a positive definite L L', times the inverse of L'; not above their diagonal."""
    if gaussian is not None and gaussian.reduced(rows) is not None:
        return rows
    for k in range(rows.shape[1]):
        rows[k:, k] /= np.sqrt(rows[k, k])
        rows[k + 1 :, k + 1 :] -= rows[k + 1 :, k, None] * rows[k + 1 : rows.shape[1], k]
    return rows
