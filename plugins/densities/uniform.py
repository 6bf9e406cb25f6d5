"""Nonzeros placed uniformly at random (section 5.1)."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.inner.arrays import log, log1ps, log2s, logs
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .hypergeometric import none, none_within, real_within, table
from .volumes import share, volume, volumes


@attrs.frozen
class UniformOccupancy(Occupancy):
    """r of N words are nonzero, with all placements equally likely: occupancies are hypergeometric. Only volumes
    matter."""

    shape: tuple[int, ...] = attrs.field(eq=False)
    words: int
    """N, words of the tensor."""
    nonzeros: int
    """r, nonzeros of the tensor."""

    @property
    def density(self) -> float:  # type: ignore[override]
        return self.nonzeros / self.words

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(k) = C(r,k) C(N-r,n-k) / C(N,n); large tiles list fewer k, see `hypergeometric.table`."""
        return table(self.words, self.nonzeros, volume(tile))

    def empty(self, tile: tuple[int, ...]) -> float:
        return float(none(self.words, self.nonzeros, volume(tile)))

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """P0(n'|n,k) = C(n-k,n') / C(n,n')."""
        k = np.asarray(k)
        return self.empty_within_many(np.array([[volume(sub_tile)]]), np.array([[volume(tile)]]), k, np.array([k.size]))

    def empty_within_many(self, sub_tiles: Array, tiles: Array, k: Nonzeros, counts: Array) -> Array:
        return none_within(volumes(sub_tiles), volumes(tiles), k, counts)

    def grain(self, tile: tuple[int, ...]) -> int:
        return 1

    def empty_within_real(self, sub_tiles: Array, tiles: Array, k: Array) -> Array:
        return real_within(volumes(sub_tiles), volumes(tiles), k)

    def timeloop_smallest(self, tile: tuple[int, ...]) -> float:
        """max(0, n+r-N), as computed by Timeloop in unsigned integers and doubles (Q3)."""
        words = volume(tile)
        if words <= self.words - self.nonzeros:
            return 0.0
        wrapped = (float((words - self.words) % 2**64) + self.nonzeros) / words * words
        return 0.0 if wrapped >= 2.0**64 else float(math.floor(wrapped))

    def largest(self, tile: tuple[int, ...]) -> float:
        return float(min(volume(tile), self.nonzeros))

    def largest_many(self, tiles) -> Array:
        """`largest` of many tiles (or volumes), float64."""
        return np.minimum(volumes(tiles), self.nonzeros).astype(np.float64)

    def placements_bits(self, tiles, k: Nonzeros) -> Array:
        """Lower bound on log2 C(n, k): 2^(n h(k/n)) / sqrt(8 k (n-k) / n)."""
        n, k = volumes(tiles).astype(np.float64), np.asarray(k, dtype=np.float64)
        inside = (k > 0.0) & (k < n)
        n, k = np.where(inside, n, 2.0), np.where(inside, k, 1.0)
        bits = k * log2s(n / k) - ((n - k) * log1ps(-k / n) + 0.5 * logs(8.0 * k * (n - k) / n)) / log(2.0)
        return np.where(inside, np.maximum(bits, 0.0), 0.0)

    def draw(self, rng: np.random.Generator) -> Array:
        """Random tensor with exactly r nonzeros."""
        drawn = np.zeros(self.words, bool)
        drawn[rng.choice(self.words, self.nonzeros, replace=False, shuffle=False)] = True
        return drawn.reshape(self.shape)


@attrs.frozen(kw_only=True)
class Uniform(DensityModel):
    """`ceil(density * words)` nonzeros, placed uniformly at random."""

    type_name: ClassVar[str] = "uniform"

    density: float = attrs.field(validator=share)
    """Share of nonzero words."""

    def occupancy(self, shape: tuple[int, ...]) -> UniformOccupancy:
        words = volume(shape)
        return UniformOccupancy(tuple(shape), words, min(math.ceil(self.density * words), words))
