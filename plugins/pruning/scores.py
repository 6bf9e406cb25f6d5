"""Importance of words and blocks: the class-aware saliency of CRISP, norms, variance, Fisher information, chance.

Scores are at least 0; the smallest are pruned first."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from .blocks import BlockGrid

WORD_CRITERIA = ("saliency", "saliency-all", "l1", "l2", "fisher", "random")
"""Criteria of single words; the score of a block is the sum over its words (and the square root for `l2`)."""
CRITERIA = (*WORD_CRITERIA, "variance", "tensor-variance")
NEEDS = {"saliency": "gradient", "saliency-all": "gradient", "fisher": "squared_gradient"}
"""Field of `Evidence` beside the weights, by criterion."""


@attrs.frozen
class Evidence:
    """Weights and gradients of a layer; all arrays have the shape of its weights."""

    weights: Array
    gradient: Array | None = None
    """Mean dL/dW over the samples of the user's classes, at the masked forward pass."""
    squared_gradient: Array | None = None
    """Mean of (dL/dW)^2 of single samples, over the samples."""

    def needed(self, criterion: str) -> Array:
        found = getattr(self, NEEDS[criterion])
        if found is None:
            raise SparseMapError(f"criterion {criterion!r} needs gradients, and there are weights only")
        return found


def saliency(weights: Array, gradient: Array) -> Array:
    """T_w = |dL/dW . W|, elementwise, with the mean gradient over the samples of the user's classes (CRISP, Eq. 1)."""
    return np.abs(np.asarray(gradient, np.float64) * weights)


def word_scores(criterion: str, evidence: Evidence, rng: np.random.Generator) -> Array:
    """A float64 score per word, in the shape of the weights."""
    weights = np.asarray(evidence.weights, np.float64)
    match criterion:
        case "saliency" | "saliency-all":
            return saliency(weights, evidence.needed(criterion))
        case "l1":
            return np.abs(weights)
        case "l2":
            return weights**2
        case "fisher":
            return weights**2 * evidence.needed("fisher")
        case "random":
            return rng.random(weights.shape)
    raise SparseMapError(f"criterion {criterion!r} does not score words; those that do: {', '.join(WORD_CRITERIA)}")


def block_scores(criterion: str, grid: BlockGrid, evidence: Evidence, rng: np.random.Generator) -> Array:
    """A float64 score per block, (R, C) (*Weight Block Sparsity*, III-B, E, F).

    L1 = sum |w|; L2 = sqrt(sum w^2); variance = mean of (w - mu)^2 with mu the mean of the block, or of the whole tensor
    for `tensor-variance`; Fisher = sum of w^2 times the mean squared gradient; saliency = sum of T_w."""
    if criterion == "random":
        return rng.random(grid.counts)
    if criterion in ("variance", "tensor-variance"):
        weights = grid.matrix(np.asarray(evidence.weights, np.float64))
        mean = grid.expand(grid.sums(weights) / grid.words) if criterion == "variance" else weights.mean()
        return grid.sums((weights - mean) ** 2) / grid.words
    sums = grid.sums(grid.matrix(word_scores(criterion, evidence, rng)))
    return np.sqrt(sums) if criterion == "l2" else sums
