"""Defaults of the tables for occupancies with the plain contract only, and statistics of their distributions."""

from __future__ import annotations

import math

import numpy as np

from sparsemap.inner.arrays import dot, exps, log, log1p, logs, powers
from sparsemap.pieces.boundary import locked
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .methods import OccupancyMethods, Shape


def packed(asked: OccupancyMethods, tile: Shape, lanes: float) -> tuple[float, float]:
    """Share of the lanes filled over all passes, and the mean number of passes, ceil(k / lanes), over all tiles. With
    `lane-shares`, the share is the mean over tiles with nonzeros."""
    k, p = asked.distribution(tile)
    passes = np.ceil(k / lanes)
    mean, some = dot(p, passes), k > 0.0
    if not mean:
        return 1.0, 0.0
    if asked.lane_shares:
        return dot(p[some], k[some] / (lanes * passes[some])) / float(p[some].sum()), mean
    return dot(p, k) / (lanes * mean), mean


def one_by_one(asked: OccupancyMethods, sub_tiles: Array, tiles: Array, k: Nonzeros, counts: Array) -> Array:
    k, ends = locked(k), np.cumsum(counts)
    pairs = zip(sub_tiles, tiles, counts, ends, strict=True)
    parts = [
        asked.within(tuple(sub.tolist()), tuple(tile.tolist()), k[end - count : end]) for sub, tile, count, end in pairs
    ]
    return np.concatenate([np.zeros(0), *parts])


def each_apart(asked: OccupancyMethods, tile: Shape, granule: Shape) -> float:
    """Largest number of stored words, with every nonzero in a separate granule."""
    return float(min(math.prod(tile), math.prod(granule) * asked.largest(tile)))


def independent(asked: OccupancyMethods, fiber: Shape, position: Shape, fibers: float) -> float:
    """Expected maximum of independent fibers: sum of m (F(m)^fibers - F(m-1)^fibers). Positions of several words are
    taken as independently empty."""
    words = math.prod(position)
    if words == 1:
        m, p = asked.distribution(fiber)
    else:
        m = np.arange(math.prod(fiber) // words + 1)
        p = binomial(len(m) - 1, 1.0 - float(asked.empty(position)))
    below = powers(np.minimum(np.cumsum(p), 1.0), fibers)
    return dot(m, np.diff(below, prepend=0.0))


def binomial(n: int, p: float) -> Probabilities:
    """P(m) of m = 0 .. n successes in n trials of probability p."""
    if p <= 0.0 or p >= 1.0:
        return (np.arange(n + 1) == (n if p >= 1.0 else 0)).astype(np.float64)
    m = np.arange(1, n + 1)
    parts = np.concatenate([[0.0], np.cumsum(logs((n - m + 1) / m) + log(p) - log1p(-p))])
    found = exps(parts - parts.max())
    return found / found.sum()
