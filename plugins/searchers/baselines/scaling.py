"""Between genes and scores, and the numbers that continuous and learning methods work with."""

from __future__ import annotations

import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Array, Genomes, PerDesign, Scores

INVALID = 100.0
"""The loss of an invalid design: 10^100, worse than any valid one."""


def genes_at(points: Array, space: Space) -> Genomes:
    """Points of the unit cube (n, G) to genomes (n, G) int64: every value of a gene gets an equal share of its axis."""
    cells = np.floor(np.asarray(points, dtype=np.float64) * (space.high - space.low + 1)).astype(np.int64)
    return space.low + np.clip(cells, 0, space.high - space.low)


def unit(genomes: Genomes, space: Space) -> Array:
    """Genomes (n, G) to the unit cube, float64: lowest value 0, highest 1."""
    return (genomes - space.low) / np.maximum(space.high - space.low, 1)


def losses(scores: Scores) -> PerDesign:
    """Decimal logarithm of the scores, (n,); `INVALID` for invalid designs."""
    known = np.isfinite(scores)
    logs = np.log10(np.maximum(np.where(known, scores, 1.0), np.finfo(np.float64).tiny))
    return np.where(known, logs, INVALID)
