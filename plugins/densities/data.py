"""The nonzeros of an actual tensor (section 5.4 of the Sparseloop model): histograms over its aligned tiles."""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

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
    def density(self) -> float:
        return self.coordinates.shape[1] / math.prod(self.shape)

    def _tiling(self, tile: tuple[int, ...]) -> Tiling:
        tile = tuple(min(int(t), s) for t, s in zip(tile, self.shape, strict=True))
        if tile not in self._tilings:
            corner = self.coordinates // np.array(tile)[:, None]
            grid = tuple(-(-s // t) for s, t in zip(self.shape, tile, strict=True))
            places, owner, counts = np.unique(_number(corner, grid), return_inverse=True, return_counts=True)
            k, tiles = np.unique(counts, return_counts=True)
            empty = math.prod(grid) - len(places)
            if empty:
                k, tiles = np.append(0, k), np.append(empty, tiles)
            corners = np.array(np.unravel_index(places, grid))
            self._tilings[tile] = Tiling(owner, counts, corners, k, tiles)
            if len(self._tilings) > KEPT:
                self._tilings.popitem(last=False)
        return self._tilings[tile]

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
        within = _number(self.coordinates % words // sub, grid)
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


def _number(index: Array, grid: tuple[int, ...]) -> Array:
    """Row-major numbers of index vectors (ranks, n); like `np.ravel_multi_index`, which cannot take no vectors."""
    number = np.zeros(index.shape[1], np.int64)
    for rank, size in enumerate(grid):
        number = number * size + index[rank]
    return number


@attrs.frozen(kw_only=True)
class ActualData(DensityModel):
    """The nonzeros of a file: Matrix Market (.mtx), a SciPy sparse matrix (.npz) or a NumPy array (.npy)."""

    type_name: ClassVar[str] = "data"

    file: Path
    """Relative to the spec that names it, or else to the working directory."""

    def occupancy(self, shape: tuple[int, ...]) -> DataOccupancy:
        """A tensor that is up to a quarter longer than the data in a rank is padded: the rest is zeros."""
        found, coordinates = read_nonzeros(self.file)
        if len(found) != len(shape):
            raise self._error(f"holds {len(found)} ranks ({_by(found)}), and the workload's tensor is {_by(shape)}")
        if any(not f <= s <= f + max(1, f // 4) for f, s in zip(found, shape, strict=True)):
            raise self._error(f"holds a tensor of {_by(found)}, and the workload's tensor is {_by(shape)}")
        return DataOccupancy(tuple(int(s) for s in shape), coordinates, str(self.file))

    def _error(self, message: str) -> SpecError:
        return SpecError.at(self.file, "", message)


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def read_nonzeros(path: Path) -> tuple[tuple[int, ...], Array]:
    """Shape and nonzero coordinates (ranks, nonzeros) of the tensor in a file; SpecError if it is not usable."""

    def wrong(message: str) -> SpecError:
        return SpecError.at(path, "", message)

    readers = {".mtx": _read_mtx, ".npz": _read_npz, ".npy": _read_npy}
    if path.suffix.lower() not in readers:
        raise wrong(f"expected a file that ends in {', '.join(readers)}")
    if not path.is_file():
        raise wrong("is a folder, expected a file" if path.is_dir() else "no such file")
    try:
        tensor = readers[path.suffix.lower()](path)
    except ImportError:
        message = 'reading .mtx and sparse .npz needs SciPy: pip install "sparsemap[data]"'
        raise wrong(message) from None
    except (OSError, ValueError, TypeError, KeyError, EOFError, OverflowError, MemoryError) as error:
        raise wrong(f"cannot be read: {error}") from None
    except Exception as error:  # zip and decompression errors have no common family
        raise wrong(f"cannot be read: {type(error).__name__}: {error}") from None
    shape = tuple(int(s) for s in tensor.shape)
    if not math.prod(shape) or not shape:
        raise wrong(f"is empty: its shape is {shape}")
    dense = isinstance(tensor, np.ndarray)
    values = tensor if dense else tensor.data
    if values.dtype.kind not in "biufc":
        raise wrong(f"holds values of type {values.dtype}, expected numbers")
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        raise wrong("holds NaN or infinite values")
    if dense:
        return shape, np.array(np.nonzero(tensor), np.int64)
    kept = values != 0
    return shape, np.array([index[kept] for index in (tensor.row, tensor.col)], np.int64)


def _read_mtx(path: Path) -> Any:
    import scipy.io

    return _coordinates(scipy.io.mmread(path))


def _read_npz(path: Path) -> Any:
    import scipy.sparse

    with path.open("rb") as stream:
        return _coordinates(scipy.sparse.load_npz(stream))


def _coordinates(matrix: Any) -> Any:
    """A COO matrix without double entries; dense Matrix Market files come as arrays."""
    if isinstance(matrix, np.ndarray):
        return matrix
    matrix = matrix.tocsr().tocoo()
    if len(matrix.shape) != 2:
        raise ValueError(f"holds {len(matrix.shape)} ranks, expected a matrix")
    return matrix


def _read_npy(path: Path) -> Any:
    return np.load(path, allow_pickle=False)
