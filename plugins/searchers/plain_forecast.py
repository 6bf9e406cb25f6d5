"""Promises in NumPy. No library of linear algebra forms sums: its threads round differently."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparsemap.pieces.contracts import Array

from .forecast import APART, DARING, DIGITS, NOISE, REACH


def promise(known: Array, genes: Array, scores: Array, told: Array, own_genes: Array) -> Array:
    """(n,) of designs with features (n, F) and genes (n, g), from those of known ones (k, F), (k, g) and their scores (k,)."""
    count, width = known.shape
    spread = known.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0) * np.sqrt(width)
    features = (np.concatenate([known, told]) - known.mean(axis=0)) / spread
    near, product = likeness(features, np.concatenate([genes, own_genes]), count, REACH, APART)
    rows = np.concatenate([near + (product + 1.0) / width, (scores - scores.mean())[None] / (scores.std() or 1.0)])
    np.einsum("kk->k", rows[:count])[:] += NOISE
    found = reduced(rows)[count:]
    lost, expected = (found[:-1] ** 2).sum(axis=1), (found[:-1] * found[-1]).sum(axis=1)
    own = 1.0 + ((features[count:] ** 2).sum(axis=1) + 1.0) / width
    return np.round(expected - DARING * np.sqrt(np.maximum(own - lost, 0.0)), DIGITS)


def features(bounds: Array, order: Array, moves: Array, is_spatial: Array) -> Iterator[Array]:
    """Those of `Forecast`, (f, n) each: `bounds` (L, D, n) are logarithms."""
    levels, _, count = bounds.shape
    spatial, in_time = np.flatnonzero(is_spatial), np.flatnonzero(~is_spatial)
    loops = np.take_along_axis(bounds, order, axis=1)
    moved = moves[:, order] & (loops > 0.0)  # (T, L, D, n)
    over = np.stack([in_turn(bounds[:, mine]) for mine in moves])
    words = over[:, ::-1].cumsum(axis=1)[:, ::-1]
    yield bounds.reshape(-1, count) / 2.0
    yield in_turn(bounds[spatial])
    for level in (*in_time[1:], levels):
        outside = in_time[in_time < level][::-1]
        steps = loops[outside, ::-1].reshape(-1, count)
        goes = np.logical_or.accumulate(moved[:, outside, ::-1].reshape(len(moved), -1, count), axis=1)
        brought = in_turn(np.where(goes, steps, 0.0)) + in_turn(over[:, spatial[spatial < level]])
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
    for column in features.T:
        product += column[:, None] * column[:known]
    for own in genes.T:
        far += own[:, None] != own[:known]
    far = -(np.sqrt(np.maximum(length[:, None] + length[:known] - 2.0 * product + apart * far, 0.0)) / reach)
    return np.exp(far) * (1.0 - far), product


def reduced(rows: Array) -> Array:
    """Rows (m, n), of which the first n are a positive definite L L', times the inverse of L'; not above their diagonal."""
    for k in range(rows.shape[1]):
        rows[k:, k] /= np.sqrt(rows[k, k])
        rows[k + 1 :, k + 1 :] -= rows[k + 1 :, k, None] * rows[k + 1 : rows.shape[1], k]
    return rows
