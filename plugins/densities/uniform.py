"""Nonzeros placed uniformly at random (section 5.1 of the Sparseloop model)."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy

from .hypergeometric import Array, none, none_many, none_run, table


def volume(tile: tuple[int, ...]) -> int:
    return math.prod(int(words) for words in tile)


def volumes(tiles) -> Array:
    """int64 volumes of tiles: a sequence of tuples, an array (T, ranks), or volumes already."""
    tiles = np.asarray(tiles, np.int64)
    return tiles if tiles.ndim == 1 else tiles.prod(axis=1)


@attrs.frozen
class UniformOccupancy(Occupancy):
    """r of N words are nonzero, all placements equally likely: occupancies are hypergeometric. Only volumes matter."""

    shape: tuple[int, ...]
    words: int
    """N"""
    nonzeros: int
    """r"""

    @property
    def density(self) -> float:
        return self.nonzeros / self.words

    def distribution(self, tile: tuple[int, ...]) -> tuple[Array, Array]:
        """P(k) = C(r,k) C(N-r,n-k) / C(N,n); for what is left out of large tiles see `hypergeometric.table`."""
        return table(self.words, self.nonzeros, volume(tile))

    def empty(self, tile: tuple[int, ...]) -> float:
        return float(none(self.words, self.nonzeros, volume(tile)))

    def empty_many(self, tiles) -> Array:
        """`empty` of many tiles (or volumes), float64."""
        return none_many(self.words, self.nonzeros, volumes(tiles))

    def empty_within(
        self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Array, quirks: frozenset[str] = frozenset()
    ) -> Array:
        """P0(n'|n,k) = C(n-k,n') / C(n,n')."""
        sub, words = volume(sub_tile), volume(tile)
        k = np.asarray(k)
        if sub >= words:
            return np.where(k > 0, 0.0, 1.0)
        if sub == 1:
            return (words - k) / words
        if not k.size:
            return np.zeros(0)
        k = k.astype(np.int64, copy=False)
        first, last = int(k[0]), int(k[-1])
        if last - first == len(k) - 1:
            return none_run(words, sub, first, len(k))
        return none_many(words, sub, k)

    def smallest(self, tile: tuple[int, ...], quirks: frozenset[str] = frozenset()) -> float:
        """max(0, n+r-N); with "Q3" what the evaluator gets by forming it in unsigned integers and doubles."""
        words, zeros = volume(tile), self.words - self.nonzeros
        if words <= zeros:
            return 0.0
        if "Q3" not in quirks:
            return float(words - zeros)
        wrapped = (float((words - self.words) % 2**64) + self.nonzeros) / words * words
        return 0.0 if wrapped >= 2.0**64 else float(math.floor(wrapped))

    def largest(self, tile: tuple[int, ...]) -> float:
        return float(min(volume(tile), self.nonzeros))

    def largest_many(self, tiles) -> Array:
        """`largest` of many tiles (or volumes), float64."""
        return np.minimum(volumes(tiles), self.nonzeros).astype(np.float64)

    def draw(self, rng: np.random.Generator) -> Array:
        """Exactly r nonzeros."""
        drawn = np.zeros(self.words, bool)
        drawn[rng.choice(self.words, self.nonzeros, replace=False, shuffle=False)] = True
        return drawn.reshape(self.shape)


@attrs.frozen(kw_only=True)
class Uniform(DensityModel):
    """`ceil(density * words)` nonzeros, placed uniformly at random."""

    type_name: ClassVar[str] = "uniform"

    density: float = attrs.field(validator=[attrs.validators.ge(0), attrs.validators.le(1)])

    def occupancy(self, shape: tuple[int, ...]) -> UniformOccupancy:
        words = volume(shape)
        return UniformOccupancy(tuple(shape), words, min(math.ceil(self.density * words), words))
