"""Nonzeros of an actual tensor (section 5.4): histograms over aligned tiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar, NamedTuple

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities
from sparsemap.spec.units import capacity_bits

from .common import Memory, by, padded, positions, remembered
from .tensor_files import Limits, read_nonzeros

KEPT = 64
"""Room for cached tilings of a tensor, relative to the size of its coordinates."""


class Tiling(NamedTuple):
    """The occupied tiles of one tiling, and the histogram of all tiles."""

    owner: Array
    """(nonzeros,) occupied tile of every nonzero."""
    counts: Array
    """(occupied tiles,) nonzeros per tile."""
    corners: Array
    """(ranks, occupied tiles) index of each tile."""
    k: Array
    tiles: Array
    """Number of tiles with k nonzeros, including empty tiles."""


@attrs.frozen(eq=False)
class DataOccupancy(Occupancy):
    """Histograms of tiles. Tiles are aligned; tiles cut off at an edge count with their actual size."""

    by_shape = True

    shape: tuple[int, ...]
    coordinates: Array
    """(ranks, nonzeros) int64 coordinates of the nonzeros."""
    label: str = "the tensor"
    actual: bool = False
    memory: Memory = attrs.field(init=False, repr=False)

    @memory.default
    def _limited(self) -> Memory:
        return Memory(KEPT * self.coordinates.size)

    @property
    def density(self) -> float:  # type: ignore[override]
        return self.coordinates.shape[1] / math.prod(self.shape)

    @remembered
    def _tiling(self, tile: tuple[int, ...]) -> Tiling:
        corner = self.coordinates // np.minimum(tile, self.shape)[:, None]
        grid = tuple(-(-s // min(t, s)) for s, t in zip(self.shape, tile, strict=True))
        places, owner, counts = np.unique(
            np.ravel_multi_index(tuple(corner), grid), return_inverse=True, return_counts=True
        )
        k, tiles = np.unique(counts, return_counts=True)
        empty = math.prod(grid) - len(places)
        if empty:
            k, tiles = np.append(0, k), np.append(empty, tiles)
        return Tiling(owner, counts, np.array(np.unravel_index(places, grid)), k, tiles)

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(k) = share of the aligned tiles with exactly k nonzeros."""
        tiling = self._tiling(tile)
        return tiling.k, tiling.tiles / tiling.tiles.sum()

    def empty(self, tile: tuple[int, ...]) -> float:
        tiling = self._tiling(tile)
        return float(tiling.tiles[0] / tiling.tiles.sum()) if tiling.k[0] == 0 else 0.0

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """Share of empty sub-tiles (aligned to their tile) in all tiles with exactly k nonzeros."""
        tiling = self._tiling(tile)
        at = positions(k, tiling.k, tile, self.label)
        words = np.minimum(tile, self.shape)[:, None]
        sub = np.minimum(sub_tile, words.ravel())[:, None]
        grid = tuple(int(n) for n in -(-words // sub).ravel())
        within = np.ravel_multi_index(tuple(self.coordinates % words // sub), grid)
        numbers = np.sort(tiling.owner * math.prod(grid) + within)
        occupied = numbers[np.diff(numbers, prepend=-1) > 0] // math.prod(grid)  # the tile of each occupied sub-tile
        extent = np.minimum(words, np.array(self.shape)[:, None] - tiling.corners * words)
        group = np.searchsorted(tiling.k, tiling.counts)
        full = np.bincount(group[occupied], minlength=len(tiling.k))
        every = np.bincount(group, (-(-extent // sub)).prod(axis=0), len(tiling.k))
        share = np.where(every > 0, (every - full) / np.maximum(every, 1), 1.0)
        return share[at]

    def largest(self, tile: tuple[int, ...]) -> float:
        return float(self._tiling(tile).k[-1])

    def draw(self, rng: np.random.Generator) -> Array:
        """The tensor itself; not random."""
        drawn = np.zeros(self.shape, bool)
        drawn[tuple(self.coordinates)] = True
        return drawn


def _capacity(_: object, __: object, value: str) -> None:
    capacity_bits(value, 8)


@attrs.frozen(kw_only=True)
class ActualData(DensityModel):
    """The nonzeros of a file: Matrix Market (.mtx), a SciPy sparse matrix (.npz), a NumPy array (.npy), or a text with
    a digit 0 or 1 per word, the first rank running fastest (.txt)."""

    type_name: ClassVar[str] = "data"

    file: Path
    """Path relative to the spec with this key, or else to the working directory."""
    max_size: str = attrs.field(default="512 MB", validator=_capacity)
    """Limit of the memory for reading the file, checked before allocation; or "unlimited"."""

    def occupancy(self, shape: tuple[int, ...]) -> DataOccupancy:
        """Occupancy of a tensor of this shape; beyond the data, the tensor is zero (`padded`)."""

        wanted = f"and the workload's tensor is {by(shape)}"

        def expect(found: tuple[int, ...]) -> None:
            if len(found) != len(shape):
                raise SpecError.at(self.file, "", f"holds {len(found)} ranks ({by(found)}), {wanted}")
            if any(f > s for f, s in zip(found, shape, strict=True)) or not padded(found, shape, words=1):
                raise SpecError.at(self.file, "", f"holds a tensor of {by(found)}, {wanted}")

        coordinates = read_nonzeros(self.file, Limits(expect, self.max_size, tuple(map(int, shape))))
        return DataOccupancy(tuple(int(s) for s in shape), coordinates, str(self.file), True)
