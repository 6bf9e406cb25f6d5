"""Genomes as points for gradient descent, and the nearest genomes of moved points."""

from __future__ import annotations

from itertools import combinations
from math import comb, prod

import numpy as np

from sparsemap import Space
from sparsemap.errors import SpecError
from sparsemap.inner.arrays import exp2s, log2s, product
from sparsemap.pieces.contracts import Array, Genomes
from sparsemap.primes import prime_factors
from sparsemap.problem.designs import Designs

from ..baselines.gamma_mapping import Operators

MOST = 200_000
"""Largest number of splits of a dimension over the mapping levels compared with a point."""


class FeaturePoints:
    """The points of one space: log2 of all loop bounds (L, D), positions of all loops (L, D), other genes as 0..1.

    A loop's position is the number of loops with a bound above one from the innermost, including itself, over D; 0 for
    a loop with bound one. GAMMA's view of a space identifies the mapping genes and draws legal mappings."""

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self.space, self.operators = space, Operators(space, rng)
        if not self.operators.tiling:
            file = space.problem.files.get("space", "space")
            raise SpecError.at(file, "segments", "no segment has genes for loop bounds, which a surrogate learns from")
        self.shape = len(space.problem.mapping_levels), len(space.problem.sizes)
        self.rest = self.operators.rest
        self.range = np.maximum(space.high[self.rest] - space.low[self.rest], 1)
        self.splits = [self._splits(dim, size) for dim, size in space.problem.sizes.items()]

    def _splits(self, dim: str, size: int) -> Array:
        """(K, L) log2 of all bounds of a dimension multiplying to its size, each within its fan-out."""
        levels = self.space.problem.mapping_levels
        limits = [level.limit if level.spatial else size for level in levels]
        found = np.ones((1, len(levels)), dtype=np.int64)
        primes = prime_factors(size)
        for prime in sorted(set(primes)):
            places = primes.count(prime) + len(levels) - 1
            if len(found) * comb(places, len(levels) - 1) > MOST:
                text = f"dimension {dim} of size {size:,} has more than {MOST:,} splits over {len(levels)} levels"
                raise SpecError.at(self.space.problem.files.get("workload", "workload"), dim, text)
            bars = np.array(list(combinations(range(places), len(levels) - 1)), dtype=np.int64)
            powers = np.diff(bars, axis=1, prepend=-1, append=places) - 1
            found = (found[:, None, :] * prime ** powers[None, :, :]).reshape(-1, len(levels))
            found = found[(found <= limits).all(axis=1)]
        return log2s(found)

    def of(self, genomes: Genomes) -> Array:
        """Points of genomes: (n, G) -> (n, F) float64."""
        columns = self.space.decode(genomes).columns
        bounds, order = columns["bounds"], columns["order"].astype(np.int64)
        active = np.take_along_axis(bounds, order, axis=1) > 1.0
        place = np.where(active, active[:, ::-1].cumsum(axis=1)[:, ::-1], 0) / self.shape[1]
        position = np.take_along_axis(place, order.argsort(axis=1), axis=1)
        size = prod(self.shape)
        rest = (genomes[:, self.rest] - self.space.low[self.rest]) / self.range
        return np.concatenate([log2s(bounds).reshape(size, -1).T, position.reshape(size, -1).T, rest], axis=1)

    def inputs(self, points: Array) -> Array:
        """Inputs of the network, (n, F + L * D + D): points, log2 of the tiles at and below each level, and log2 of the
        sizes."""
        bounds = points[:, : prod(self.shape)].reshape(-1, *self.shape)
        tiles = bounds[:, ::-1].cumsum(axis=1)[:, ::-1].reshape(len(points), -1)
        sizes = log2s(np.array(list(self.space.problem.sizes.values())))
        return np.concatenate([points, tiles, np.tile(sizes, (len(points), 1))], axis=1)

    def pulled(self, gradient: Array) -> Array:
        """Gradient for points (n, F) from a gradient for inputs, by the chain rule through `inputs`."""
        size = prod(self.shape)
        found = gradient[:, : 2 * size + len(self.rest)].copy()
        tiles = gradient[:, found.shape[1] : found.shape[1] + size].reshape(-1, *self.shape)
        found[:, :size] += tiles.cumsum(axis=1).reshape(len(found), -1)
        return found

    def nearest(self, points: Array) -> Genomes:
        """(n, F) -> (n, G): per dimension the nearest split, loops sorted by position, other genes rounded. The design
        may be too large for a memory."""
        count, size = len(points), prod(self.shape)
        wanted = points[:, :size].reshape(-1, *self.shape)
        bounds = np.empty((*self.shape, count))
        for d, splits in enumerate(self.splits):
            closeness = product(wanted[:, :, d], splits.T) - 0.5 * (splits**2).sum(axis=1)
            bounds[:, d] = np.rint(exp2s(splits[closeness.argmax(axis=1)])).T
        position = points[:, size : 2 * size].reshape(-1, *self.shape)
        order = (-position).argsort(axis=2, kind="stable").transpose(1, 2, 0).astype(np.int8)
        genomes = np.repeat(self.space.low[None, :], count, axis=0)
        share = np.clip(points[:, 2 * size :], 0.0, 1.0)
        genomes[:, self.rest] += np.rint(share * self.range).astype(np.int64)
        designs = Designs({"bounds": bounds, "order": np.ascontiguousarray(order)})
        for name in {self.operators.orders, self.operators.tiling} - {""}:
            genomes[:, self.space.slices[name]] = self.space.segments[name].encode(designs, self.space.problem).T
        return genomes

    def legal(self, count: int) -> Genomes:
        """Random fitting mappings (count, G); a few may be invalid where other genes are hard to set correctly."""
        return self.operators.legal(self.operators.random(count))
