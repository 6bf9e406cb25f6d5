"""Masks of blocks, a layer at a time: at once, step by step, or evenly over rows of blocks.

Masks are (R, C) bool, True for a kept block (*Weight Block Sparsity*, III-B, III-C, IV-B2). Scores alone may leave rows
and columns without a block, and layers with inputs that no layer computes. So masks keep a block in as many rows and
columns as possible, at the smallest loss of scores and with the same number of blocks."""

from __future__ import annotations

import math

import numpy as np

from sparsemap.pieces.contracts.base import Array

BALANCES = ("none", "rows")


def zeros_of(sparsity: float, blocks: int) -> int:
    """floor(sparsity * blocks), robust against rounding errors."""
    return math.floor(sparsity * blocks + 1e-9)


def one_shot(scores: Array, sparsity: float) -> Array:
    """A mask without the floor(sparsity * blocks) smallest scores; the first of equal scores goes first."""
    kept: Array = np.ones(scores.size, bool)
    kept[np.argsort(scores, axis=None, kind="stable")[: zeros_of(sparsity, scores.size)]] = False
    kept = kept.reshape(scores.shape)
    return _covering_columns(_covering_columns(kept, scores).T, scores.T).T


def _covering_columns(kept: Array, scores: Array) -> Array:
    """Blocks moved within their rows, from columns with several blocks to empty columns."""
    kept = kept.copy()
    while True:
        counts = kept.sum(axis=0)
        movable = np.argwhere(kept & (counts > 1))
        empty = np.flatnonzero(counts == 0)
        if not len(movable) or not len(empty):
            return kept
        loss = scores[tuple(movable.T)][:, None] - scores[movable[:, 0]][:, empty]
        best, to = np.unravel_index(loss.argmin(), loss.shape)
        row, column = movable[best]
        kept[row, column], kept[row, empty[to]] = False, True


def balanced(scores: Array, sparsity: float, part: int = 0) -> Array:
    """A mask with floor(sparsity * n) zeros in each range of n = `part` columns (0: all) of every row of blocks.

    Every split of the outputs, and of the inputs into these ranges, is then even."""
    found = []
    for own in np.split(scores, range(part, scores.shape[1], part) if part else (), axis=1):
        kept = np.ones(own.shape, bool)
        worst = np.argsort(own, axis=1, kind="stable")[:, : zeros_of(sparsity, own.shape[1])]
        np.put_along_axis(kept, worst, False, axis=1)
        found.append(_covering_columns(kept, own))
    return np.hstack(found)


STEP = 0.05
"""Share of all zeros in a step of gradual pruning."""


def gradual_step(kept: Array, scores: Array, sparsity: float) -> Array:
    """The next mask of gradual pruning: max(1, floor(Z / 20)) more zeros, at most Z = floor(sparsity * blocks) in
    total.

    Zeros stay zero. Every row and column keeps its last block, even if fewer than Z blocks can then be pruned."""
    target = zeros_of(sparsity, kept.size)
    left = min(max(1, zeros_of(STEP, target)), target - int((~kept).sum()))
    kept = kept.copy()
    rows, columns = kept.sum(axis=1), kept.sum(axis=0)
    for place in np.argsort(scores, axis=None, kind="stable"):
        if left <= 0:
            break
        row, column = divmod(int(place), kept.shape[1])
        if kept[row, column] and rows[row] > 1 and columns[column] > 1:
            kept[row, column] = False
            rows[row] -= 1
            columns[column] -= 1
            left -= 1
    return kept


def gradual_rounds(blocks: int, sparsity: float) -> int:
    """Steps until floor(sparsity * blocks) zeros."""
    target = zeros_of(sparsity, blocks)
    return math.ceil(target / max(1, zeros_of(STEP, target)))
