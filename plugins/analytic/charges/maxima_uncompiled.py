"""What `maxima.c` does, in NumPy: expected maxima from lists of values and their probabilities."""

from __future__ import annotations

import math

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .maxima import WINDOW

MERGED = 256
"""Values of a distribution that are told apart, at most: steps of a tenth of a standard deviation."""


@attrs.frozen(eq=False)
class Shares:
    """The probabilities of values in ascending order, neighbours as one where they are many."""

    y: Array
    """(C,) what counts as one .."""
    reaches: Array
    """(C,) .. and the share that has this value at least."""

    @classmethod
    def of(cls, values: Array, p: Array) -> Shares:
        size = -(-len(p) // MERGED)
        share = p
        if size > 1:
            which, first = np.arange(len(p)) // size, values[::size]
            share = np.bincount(which, p)
            mean = np.bincount(which, p * values) / np.where(share > 0.0, share, 1.0)
            # rounding may put the mean of equal values below the one before
            values = np.maximum.accumulate(np.where(share > 0.0, mean, first))
        return cls(values, np.minimum(np.cumsum(share[::-1])[::-1], 1.0))

    def maxima(self, lanes: Array) -> Array:
        """(len(lanes),) expected maxima of so many of them; each is twice the one before."""
        with np.errstate(divide="ignore"):
            weights = [-np.expm1(lanes[0] * np.log1p(-self.reaches))]
        for _ in lanes[1:]:
            weights.append(weights[-1] * (2.0 - weights[-1]))  # 1 - (1 - w)^2
        rises = self.y.copy()
        rises[1:] -= self.y[:-1]
        found: Array = np.cumsum(np.array(weights) * rises, axis=1)[:, -1]
        return found


def work_row(k: Array, p: Array, looks: int, words: float, lanes: Array, tails: Array) -> Array:
    """A row of `WorkTiles`: k, p are the occupancies of a tile and their shares."""
    if looks == 1:
        values = np.where(k > 0.0, 1.0 - (1.0 - np.minimum(k / words, 1.0)), 0.0)
    else:
        values = 1.0 - (1.0 - np.minimum(np.maximum(looks, k) / words, 1.0)) ** np.minimum(looks, k)
    if (values[1:] < values[:-1]).any():
        order = np.argsort(values, kind="stable")
        values, p = values[order], p[order]
    shares = Shares.of(values, p)
    at = np.maximum(np.searchsorted(-shares.reaches, -tails, side="right") - 1, 0)
    first = np.searchsorted(shares.y, shares.y[at], side="left")  # all that have this value reach it
    moments = np.cumsum([p * (values * values), np.where(values > 0.0, p, 0.0)], axis=1)[:, -1]
    return np.concatenate([shares.maxima(lanes), moments, shares.y[at], shares.reaches[first]])


def met_row(places: float, chance: float, low: float, high: float, lanes: Array) -> Array:
    """A row of `MetPlaces`: from `low` to `high` of the places hold something."""
    if high - low > WINDOW:
        mean, spread = places * chance, math.sqrt(places * chance * (1.0 - chance))
        k = np.linspace(low, high, WINDOW)
        logs = -0.5 * ((k - mean) / spread) ** 2
    else:
        k = np.arange(low, high + 1.0)
        ratio = np.log((places - k[:-1]) / (k[:-1] + 1.0)) + math.log(chance) - math.log1p(-chance)
        logs = np.concatenate([[0.0], np.cumsum(ratio)])
    p = np.exp(logs - logs.max())
    return Shares.of(k / places, p / p.cumsum()[-1]).maxima(lanes)
