"""What designs may score, told from those tried so far: of many proposals a search then evaluates the most promising.

Energy and cycles are nearly smooth over the logarithms of loop bounds. A Gaussian process learns the logarithm of the score
over what loops move: words of tiles, how often they come, instances in use; other genes are alike or not (Rasmussen and
Williams, 2006; Matern 3/2 and linear kernel). `plain_forecast` has it in NumPy, where it is not compiled (`gaussian.c`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemap import Space
from sparsemap.native import loaded
from sparsemap.pieces.contracts import Array, Rows, Scores
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
FIGURES = np.array([REACH, APART, NOISE, DARING, 10.0**DIGITS])
"""What `promise` in C asks for."""

gaussian: Any = loaded(__package__, "gaussian")
"""The same in C, or None."""


class Forecast:
    """Features (n, F), genes (n, g) and logarithms of the scores (n,) of the best designs so far."""

    def __init__(self, space: Space) -> None:
        problem, levels = space.problem, space.problem.mapping_levels
        self.moves = np.array([[dim in tensor.dims for dim in problem.dims] for tensor in problem.tensors])
        self.is_spatial = np.array([level.spatial for level in levels], dtype=bool)
        times = np.count_nonzero(~self.is_spatial)
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
        told, own = self._told(tried, valid), np.concatenate([self.scores, np.log(scores[valid])])
        told = np.concatenate([self.features, told]) if len(self.scores) else told
        best = np.argsort(own, kind="stable")[:MOST]
        genes = np.concatenate([self.genes, tried.genomes[valid[:, None], self.rest]])
        self.features, self.genes, self.scores = told[best], genes[best], own[best]

    def promise(self, designs: Decoded, rows: Rows) -> Array:
        """(rows,) what designs at these rows may well score, lower is better: so many deviations below what is expected."""
        found, columns = np.empty(len(rows)), designs.designs.columns
        loops = np.log2(columns["bounds"]), columns["order"], self.moves, self.is_spatial
        known = self.features, self.genes, self.scores
        genes = designs.genomes, self.rest
        if gaussian is None or gaussian.promise(found, rows, *known, *loops, *genes, FIGURES, np.exp) is None:
            from .plain_forecast import promise

            return promise(*known, self._told(designs, rows), designs.genomes[rows][:, self.rest])
        return found

    def _told(self, designs: Decoded, rows: Rows) -> Array:
        """(rows, F) logarithms: loop bounds at half weight; instances in use; by level and tensor the words of its tile, and all
        that are brought, where a tile stays during the innermost loops that do not move it."""
        bounds, order = np.log2(designs.designs.columns["bounds"]), designs.designs.columns["order"]
        found = np.empty((len(rows), self.width))
        if gaussian is None or gaussian.told(found, rows, bounds, order, self.moves, self.is_spatial) is None:
            from .plain_forecast import features

            given = bounds[..., rows], order[..., rows].astype(np.intp), self.moves, self.is_spatial
            found = np.concatenate(list(features(*given))).T.copy()
        return found
