"""Operands with equally filled tiles within blocks (`imbalance`)."""

from __future__ import annotations

import numpy as np

from sparsemap.inner.arrays import log1p
from sparsemap.pieces.contracts.base import Array

from ..layout import Layout


def blocks_of(lay: Layout, t: int) -> Array:
    """(D,) steps of a dimension within a block of tensor t."""
    found = np.ones(lay.D)
    for rank, words in zip(lay.ranks[t], lay.alike.get(t, (1,) * len(lay.ranks[t])), strict=True):
        for d, factor in rank:
            found[d] = max(1.0, words / factor)
    return found


def rarity(density: float) -> float:
    """Logarithm of the probability of an empty word."""
    return log1p(-min(density, 1.0 - 1e-12))
