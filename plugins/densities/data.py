"""Nonzeros of an actual tensor (section 5.4): histograms over aligned tiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

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
DENSE_WORDS, DENSE = 1 << 24, 256
"""Words of a tensor, in all and per nonzero, up to which sums over all boxes are tabulated."""


class Tiling(NamedTuple):
    """The occupied tiles of one tiling, and the histogram of all tiles."""

    grid: tuple[int, ...]
    """Number of tiles along each rank."""
    places: Array
    """(occupied tiles,) index in the grid, ascending."""
    group: Array
    """(occupied tiles,) index in `k`."""
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
    sums: Array | None = attrs.field(init=False, repr=False)
    """Nonzeros before every corner, by coordinate; None for tensors too large or too sparse."""

    @memory.default
    def _limited(self) -> Memory:
        return Memory(KEPT * self.coordinates.size)

    @sums.default
    def _summed(self) -> Array | None:
        if math.prod(self.shape) > min(DENSE_WORDS, DENSE * self.coordinates.shape[1]):
            return None
        found = np.zeros([size + 1 for size in self.shape], np.int32)
        found[tuple(self.coordinates + 1)] = 1
        for axis in range(found.ndim):
            np.cumsum(found, axis=axis, out=found)
        return found

    @property
    def density(self) -> float:  # type: ignore[override]
        return self.coordinates.shape[1] / math.prod(self.shape)

    @remembered
    def _tiling(self, tile: tuple[int, ...]) -> Tiling:
        grid = tuple(-(-s // min(t, s)) for s, t in zip(self.shape, tile, strict=True))
        if self.sums is not None:
            found = self._within(tile, tile).ravel()
            places = np.flatnonzero(found)
            counts = found[places]
        else:
            places, counts = np.unique(self._cells(tile, tile), return_counts=True)
        k, group, tiles = np.unique(counts, return_inverse=True, return_counts=True)
        empty = math.prod(grid) - len(places)
        if empty:
            k, group, tiles = np.append(0, k), group + 1, np.append(empty, tiles)
        return Tiling(grid, places, group, k, tiles)

    def _within(self, tile: tuple[int, ...], sub_tile: tuple[int, ...]) -> Array:
        """Nonzeros of sub-tiles, aligned to their tile: an axis of tiles and one of the tile's sub-tiles per rank."""
        assert self.sums is not None
        some, axes = self.sums, list[int]()
        for axis, (size, w, s) in enumerate(zip(self.shape, self._words(tile), sub_tile, strict=True)):
            tiles, inside = np.arange(0, size, w)[:, None], np.arange(0, w, s)
            edges = np.append(np.minimum(tiles + inside, size).ravel(), size)
            some = np.diff(some.take(edges, axis=axis), axis=axis)
            axes += [len(tiles), len(inside)]
        return some.reshape(axes)

    def _cells(self, tile: tuple[int, ...], sub_tile: tuple[int, ...]) -> Array:
        """(nonzeros,) sub-tile of every nonzero: the tile's index in the grid times the sub-tiles of a tile, plus the
        index in the tile."""
        tiles, inside = np.zeros((2, self.coordinates.shape[1]), np.int64)
        parts = 1
        for size, w, s, at in zip(self.shape, self._words(tile), sub_tile, self.coordinates, strict=True):
            along, part = np.arange(size), -(-w // min(s, w))
            tiles = tiles * -(-size // w) + (along // w)[at]
            inside = inside * part + (along % w // s)[at]
            parts *= part
        return tiles * parts + inside

    def _words(self, tile: tuple[int, ...]) -> list[int]:
        return [min(t, size) for t, size in zip(tile, self.shape, strict=True)]

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
        words = self._words(tile)
        if self.sums is not None:
            occupied = self._within(tile, sub_tile) > 0
            full = occupied.sum(axis=tuple(range(1, occupied.ndim, 2))).ravel()[tiling.places]
        else:
            parts = math.prod(-(-w // min(s, w)) for w, s in zip(words, sub_tile, strict=True))
            own = np.unique(self._cells(tile, sub_tile)) // parts
            full = np.bincount(np.searchsorted(tiling.places, own), minlength=len(tiling.places))
        sizes: Any = 1  # sub-tiles of each occupied tile, with those cut off at an edge
        for i, w, s, size in zip(
            np.unravel_index(tiling.places, tiling.grid), words, sub_tile, self.shape, strict=True
        ):
            along = np.minimum(w, size - np.arange(0, size, w))
            sizes = sizes * (-(-along // min(s, w)))[i]
        every = np.bincount(tiling.group, sizes, len(tiling.k))
        empty = np.bincount(tiling.group, sizes - full, len(tiling.k))
        share = np.where(every > 0, empty / np.maximum(every, 1), 1.0)
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
