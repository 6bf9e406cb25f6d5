"""Nonzeros in dense blocks placed uniformly at random, the result of block pruning.

The uniform model (section 5.1), applied to blocks instead of words. Assumptions:

* the tensor is cut into aligned blocks; `ceil(density * blocks)` blocks are full of nonzeros, the others are empty;
* tiles are aligned. In a rank with a tile as long as a block or a multiple, the tile holds whole blocks; a shorter tile
  lies within one block. A tile touches prod ceil(tile/block) blocks, all alike;
* where neither length divides the other, as at a cut-off edge, the touched blocks share the tile's words equally, and
  occupancies are rounded to whole words."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.inner.arrays import dot, powers
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .common import expanded, refused
from .hypergeometric import none_many, none_real
from .uniform import Uniform, UniformOccupancy
from .volumes import share, volume


@attrs.frozen
class BlockOccupancy(Occupancy):
    """The number j of nonzero blocks in a tile is hypergeometric; every block contributes equally many words."""

    by_shape = True

    shape: tuple[int, ...]
    block: tuple[int, ...]
    """Words of a block per rank."""
    blocks: UniformOccupancy
    """Uniform occupancy over blocks instead of words."""

    @property
    def density(self) -> float:  # type: ignore[override]
        return self.blocks.density

    def _touched(self, tile: tuple[int, ...]) -> int:
        """Number of blocks touched by a tile."""
        return min(math.prod(-(-int(t) // b) for t, b in zip(tile, self.block, strict=True)), self.blocks.words)

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(k) = P(j = k / words per block), j hypergeometric for the blocks touched."""
        touched = self._touched(tile)
        j, p = self.blocks.distribution((touched,))
        return self._words(j, touched, tile), p

    def _words(self, j, touched: int, tile: tuple[int, ...]):
        words = volume(tile)
        if words % touched == 0:
            return j * (words // touched)
        return np.rint(j * (words / touched)).astype(np.int64)

    def empty(self, tile: tuple[int, ...]) -> float:
        return self.blocks.empty((self._touched(tile),))

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """Probability of an empty sub-tile; j = k / words per block of the tile's blocks are nonzero."""
        touched, inner = self._touched(tile), self._touched(sub_tile)
        j = np.rint(np.asarray(k) * (touched / volume(tile))).astype(np.int64)
        return none_many(touched, min(inner, touched), j)

    def grain(self, tile: tuple[int, ...]) -> int:
        """Words per block; 0 where occupancies are rounded."""
        words, touched = volume(tile), self._touched(tile)
        return 0 if words % touched else words // touched

    def empty_within_real(self, sub_tiles: Array, tiles: Array, k: Array) -> Array:
        touched, inner = (
            np.minimum((-(-x // np.array(self.block))).prod(axis=1), self.blocks.words).astype(np.float64)
            for x in (tiles, sub_tiles)
        )
        return none_real(touched, np.minimum(inner, touched), k * (touched / tiles.prod(axis=1)))

    def largest(self, tile: tuple[int, ...]) -> float:
        touched = self._touched(tile)
        return float(self._words(min(touched, self.blocks.nonzeros), touched, tile))

    def largest_stored(self, tile: tuple[int, ...], granule: tuple[int, ...]) -> float:
        """Words of the granules touched by the nonzero blocks of the fullest tile; see the tables of the cost model."""
        blocks = min(self._touched(tile), self.blocks.nonzeros)
        per_block = math.prod(-(-min(b, t) // g) for b, t, g in zip(self.block, tile, granule, strict=True))
        return float(min(volume(tile), blocks * per_block * volume(granule)))

    def longest(self, fiber: tuple[int, ...], position: tuple[int, ...], fibers: float) -> float:
        """Expected non-empty positions of the fullest fiber; fibers in the same blocks are equally full."""
        touched, inner = self._touched(fiber), self._touched(position)
        alike = math.prod(max(1, b // f) for b, f in zip(self.block, fiber, strict=True))
        j, p = self.blocks.distribution((touched,))
        chance = np.diff(powers(np.minimum(np.cumsum(p), 1.0), max(1.0, fibers / alike)), prepend=0.0)
        filled = 1.0 - none_many(touched, min(inner, touched), j)
        return dot(chance, filled) * volume(fiber) / volume(position)

    @property
    def alike(self) -> tuple[int, ...]:
        """Tiles within the same block are equally full."""
        return self.block

    def draw(self, rng: np.random.Generator) -> Array:
        """Random tensor with exactly `blocks.nonzeros` nonzero blocks; blocks at an edge are cut off."""
        return expanded(self.blocks.draw(rng), self.block, self.shape)


@attrs.frozen(kw_only=True)
class Block(DensityModel):
    """`ceil(density * blocks)` nonzero blocks of shape `block`, placed uniformly at random."""

    type_name: ClassVar[str] = "block"

    density: float = attrs.field(validator=share)
    """Share of nonzero blocks."""
    block: tuple[int, ...] = attrs.field(
        validator=[attrs.validators.min_len(1), attrs.validators.deep_iterable(attrs.validators.ge(1))]
    )
    """Words per rank of a nonzero block, such as [4, 4]. With fewer numbers than ranks, the numbers apply to the
    innermost ranks."""

    def occupancy(self, shape: tuple[int, ...]) -> BlockOccupancy:
        missing = len(shape) - len(self.block)
        if missing < 0:
            raise refused(
                self, f"block {list(self.block)} has {len(self.block)} ranks, and this tensor has {len(shape)}"
            )
        block = tuple(min(b, int(s)) for b, s in zip((1,) * missing + self.block, shape, strict=True))
        blocks = Uniform(density=self.density).occupancy(tuple(-(-s // b) for s, b in zip(shape, block, strict=True)))
        return BlockOccupancy(tuple(int(s) for s in shape), block, blocks)
