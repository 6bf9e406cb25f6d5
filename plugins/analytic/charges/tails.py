"""Thresholds of more than two tensors that thin the work of compute units."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .maxima import TAILS


def best_of_tails(product: Array, reached: Array) -> tuple[Array, Array]:
    """Of thresholds (n, A * TAILS) that about as many units reach, the one of the largest product: with several operands their
    combinations would otherwise be all products of thresholds."""
    count = product.shape[1] // len(TAILS)
    together = np.add.outer(np.arange(count), np.arange(len(TAILS))).ravel()
    best = [
        rows[product[:, rows].argmax(axis=1)] for rows in map(np.flatnonzero, together == np.unique(together)[:, None])
    ]
    at = np.stack(best, axis=1)
    return np.take_along_axis(product, at, axis=1), np.take_along_axis(reached, at, axis=1)
