"""Structured density, N:M, and dense tensors (section 5.2)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .common import chosen
from .volumes import share, volume, volumes


@attrs.frozen
class StructuredOccupancy(Occupancy):
    """Every tile of n words has x = n*d nonzeros; a fractional x is split between its neighbours. Only volumes matter.

    d = numerator / denominator. With denominator 1, as for a `density` in the spec, x is computed as in Timeloop;
    n-of-m keeps both numbers, so an integer x is exact."""

    shape: tuple[int, ...] = attrs.field(eq=False)
    """Shape of drawn tensors; not compared, so tensors of equal density share their tables."""
    numerator: float
    denominator: int = 1
    group: int = 1
    """Words along the last rank over which a drawn tensor keeps the density."""

    @property
    def density(self) -> float:  # type: ignore[override]
        return self.numerator / self.denominator

    def _expected(self, tile: tuple[int, ...]) -> float:
        return volume(tile) * self.numerator / self.denominator

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(floor x) = 1 - (x - floor x), P(ceil x) = x - floor x."""
        x = self._expected(tile)
        low = math.floor(x)
        if x == low:
            return np.array([low]), np.ones(1)
        return np.array([low, low + 1]), np.array([1 - (x - low), x - low])

    def empty(self, tile: tuple[int, ...]) -> float:
        return max(1 - self._expected(tile), 0.0)

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """P(0) of x = n' * (k/n)."""
        return np.maximum(1 - volume(sub_tile) * (np.asarray(k) / volume(tile)), 0.0)

    def empty_within_many(self, sub_tiles: Array, tiles: Array, k: Nonzeros, counts: Array) -> Array:
        words = np.repeat(volumes(tiles).astype(np.float64), counts)
        return np.maximum(1 - np.repeat(volumes(sub_tiles).astype(np.float64), counts) * (k / words), 0.0)

    def timeloop_smallest(self, tile: tuple[int, ...]) -> float:
        """floor((floor(x)/n)*n), one too small for some n due to rounding (Q3)."""
        words = volume(tile)
        return float(math.floor(math.floor(self._expected(tile)) / words * words))

    def largest(self, tile: tuple[int, ...]) -> float:
        return float(math.ceil(self._expected(tile)))

    def largest_many(self, tiles) -> Array:
        """`largest` of many tiles (or volumes), float64."""
        return np.ceil(volumes(tiles) * float(self.numerator) / self.denominator)

    def draw(self, rng: np.random.Generator) -> Array:
        """Random tensor: every aligned group along the last rank has its share, at random positions."""
        length = self.shape[-1]
        rows = math.prod(self.shape[:-1])
        drawn = np.zeros((rows, length), bool)
        whole = length // self.group * self.group
        for words, start, stop in ((self.group, 0, whole), (length - whole, whole, length)):
            if start == stop:
                continue
            x = words * self.numerator / self.denominator
            many = (rows, (stop - start) // words)
            count = math.floor(x) + (rng.random(many) < x - math.floor(x))
            drawn[:, start:stop] = chosen(rng, (*many, words), count[..., None]).reshape(rows, stop - start)
        return drawn.reshape(self.shape)


@attrs.frozen(kw_only=True)
class Structured(DensityModel):
    """Every tile has the same density; 1.0 is dense."""

    type_name: ClassVar[str] = "structured"

    density: float = attrs.field(default=1.0, validator=share)
    """Share of nonzero words."""

    def occupancy(self, shape: tuple[int, ...]) -> StructuredOccupancy:
        group = Fraction(self.density).limit_denominator(256).denominator
        return StructuredOccupancy(tuple(shape), float(self.density), group=group)


@attrs.frozen(kw_only=True)
class NOfM(DensityModel):
    """`n` nonzeros in every aligned group of `m` words: structured density n/m."""

    type_name: ClassVar[str] = "n-of-m"

    n: int = attrs.field(validator=attrs.validators.ge(0))
    """Nonzeros in each group."""
    m: int = attrs.field(validator=attrs.validators.ge(1))
    """Words of a group."""

    def __attrs_post_init__(self) -> None:
        if self.n > self.m:
            raise ValueError(f"n-of-m: n = {self.n} is more than m = {self.m}")

    def occupancy(self, shape: tuple[int, ...]) -> StructuredOccupancy:
        return StructuredOccupancy(tuple(shape), self.n, self.m, group=self.m)
