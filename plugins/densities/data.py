"""The nonzeros of an actual tensor (section 5.4): histograms over its aligned tiles."""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities
from sparsemap.spec.units import capacity_bits

from .tensor_files import Limits, read_nonzeros

KEPT = 64
"""Tilings that are remembered per tensor."""


@attrs.frozen(eq=False)
class Tiling:
    """The occupied tiles of one tiling, and its histogram."""

    owner: Array
    """Occupied tile of every nonzero, shape (nonzeros,)."""
    counts: Array
    """Nonzeros per occupied tile."""
    corners: Array
    """Tile index per rank and occupied tile."""
    k: Array
    tiles: Array
    """Tiles with k nonzeros; empty ones included."""


@attrs.frozen(eq=False)
class DataOccupancy(Occupancy):
    """Every tile counts as often as it occurs. Tiles are aligned; those cut off at an edge count as they are."""

    by_shape = True

    shape: tuple[int, ...]
    coordinates: Array
    """Nonzeros: (ranks, nonzeros) int64."""
    label: str = "the tensor"
    _tilings: OrderedDict[tuple[int, ...], Tiling] = attrs.field(factory=OrderedDict, init=False, repr=False)

    @property
    def density(self) -> float:  # type: ignore[override]
        return self.coordinates.shape[1] / math.prod(self.shape)

    def _tiling(self, tile: tuple[int, ...]) -> Tiling:
        tile = tuple(min(int(t), s) for t, s in zip(tile, self.shape, strict=True))
        tiling = self._tilings.get(tile)
        if tiling is None:
            corner = self.coordinates // np.array(tile)[:, None]
            grid = tuple(-(-s // t) for s, t in zip(self.shape, tile, strict=True))
            places, owner, counts = np.unique(
                np.ravel_multi_index(tuple(corner), grid), return_inverse=True, return_counts=True
            )
            k, tiles = np.unique(counts, return_counts=True)
            empty = math.prod(grid) - len(places)
            if empty:
                k, tiles = np.append(0, k), np.append(empty, tiles)
            corners = np.array(np.unravel_index(places, grid))
            tiling = self._tilings[tile] = Tiling(owner, counts, corners, k, tiles)
            if len(self._tilings) > KEPT:
                self._tilings.popitem(last=False)
        return tiling

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(k) = share of the aligned tiles that hold exactly k nonzeros."""
        tiling = self._tiling(tile)
        return tiling.k, tiling.tiles / tiling.tiles.sum()

    def empty(self, tile: tuple[int, ...]) -> float:
        tiling = self._tiling(tile)
        return float(tiling.tiles[0] / tiling.tiles.sum()) if tiling.k[0] == 0 else 0.0

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """Share of empty sub-tiles (aligned to their tile) in all tiles with exactly k nonzeros."""
        tiling = self._tiling(tile)
        k = np.asarray(k).astype(np.int64)
        at = np.searchsorted(tiling.k, k)
        at[at == len(tiling.k)] = 0
        if not np.array_equal(tiling.k[at], k):
            raise ValueError(f"no {_by(tile)} tile of {self.label} holds {k[tiling.k[at] != k][0]} nonzeros")
        words = np.array([min(int(t), s) for t, s in zip(tile, self.shape, strict=True)])[:, None]
        sub = np.minimum(np.array([int(t) for t in sub_tile])[:, None], words)
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
        """The tensor itself; nothing about it is random."""
        drawn = np.zeros(self.shape, bool)
        drawn[tuple(self.coordinates)] = True
        return drawn


def _capacity(_: object, __: object, value: str) -> None:
    capacity_bits(value, 8)


@attrs.frozen(kw_only=True)
class ActualData(DensityModel):
    """The nonzeros of a file: Matrix Market (.mtx), a SciPy sparse matrix (.npz) or a NumPy array (.npy)."""

    type_name: ClassVar[str] = "data"

    file: Path
    """Relative to the spec that names it, or else to the working directory."""
    max_size: str = attrs.field(default="512 MB", validator=_capacity)
    """The memory that reading the file may take; more is refused before it is allocated. Or "unlimited"."""

    def occupancy(self, shape: tuple[int, ...]) -> DataOccupancy:
        """A tensor that is up to a quarter longer than the data in a rank is padded: the rest is zeros."""

        wanted = f"and the workload's tensor is {_by(shape)}"

        def expect(found: tuple[int, ...]) -> None:
            if len(found) != len(shape):
                raise SpecError.at(self.file, "", f"holds {len(found)} ranks ({_by(found)}), {wanted}")
            if any(not f <= s <= f + max(1, f // 4) for f, s in zip(found, shape, strict=True)):
                raise SpecError.at(self.file, "", f"holds a tensor of {_by(found)}, {wanted}")

        coordinates = read_nonzeros(self.file, Limits(expect, self.max_size))
        return DataOccupancy(tuple(int(s) for s in shape), coordinates, str(self.file))


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
