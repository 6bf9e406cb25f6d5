"""Nonzeros in a band around the diagonal of a square matrix (section 5.3).

The contents of a tile depend only on the distance from the diagonal, delta = first column - first row, because aligned
tiles lie inside the matrix. Tiles are counted per delta in closed form: the cost grows with the width of the band, not
with the number of tiles."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .common import Memory, by, positions, refused, remembered


def ramp(m: Array, width: int) -> Array:
    """sum over y <= m of clip(y, 0, width)."""
    inside = np.clip(m, 0, width)
    return inside * (inside + 1) // 2 + np.maximum(m - width, 0) * width


def band_cells(delta: Array, height: int, width: int, half_width: int) -> Array:
    """Number of cells with |row - column| <= half_width in a rectangle with delta = first column - first row."""

    def up_to(x: Array) -> Array:  # cells of the rectangle with column - row <= x, rows and columns counted inside it
        return ramp(x + height, width) - ramp(x, width)

    return up_to(half_width - delta) - up_to(-half_width - 1 - delta)


@attrs.frozen
class Grid:
    """Rectangles (height x width) side by side: `rows` x `columns`, starting at delta = 0."""

    height: int
    width: int
    rows: int
    columns: int

    def at(self, delta: Array) -> tuple[Array, Array, Array]:
        """Number of rectangles at delta, and row and column of the first.

        Solves column * width - row * height = delta: column = c0 + a t, row = g0 + b t, a and b without common factor."""
        common = math.gcd(self.height, self.width)
        a, b = self.height // common, self.width // common
        reduced = delta // common
        column = reduced % a * pow(b, -1, a) % a if a > 1 else np.zeros_like(reduced)
        row = (column * b - reduced) // a
        first = np.maximum(0, -(row // b))
        last = np.minimum((self.columns - 1 - column) // a, (self.rows - 1 - row) // b)
        count = np.where(reduced * common == delta, np.maximum(last - first + 1, 0), 0)
        return count, row + b * first, column + a * first

    def deltas(self, least: int, most: int) -> Array:
        """Possible values of delta of rectangles, from least to most."""
        common = math.gcd(self.height, self.width)
        least = max(least, -(self.rows - 1) * self.height)
        most = min(most, (self.columns - 1) * self.width)
        return np.arange(-(-least // common), most // common + 1) * common


class BandTable(NamedTuple):
    """Tiles by occupancy k, ascending."""

    k: Array
    weight: Array
    """Share of the tiles."""
    row: Array
    """Row of the first tile with k nonzeros."""
    column: Array


@attrs.frozen
class BandedOccupancy(Occupancy):
    """Tiles with known contents; a tile's probability is its share of the aligned tiles."""

    by_shape = True

    side: int
    half_width: int
    every_tile: bool = False
    memory: Memory = attrs.field(factory=Memory, init=False, repr=False, eq=False)

    @property
    def density(self) -> float:  # type: ignore[override]
        h = min(self.half_width, self.side - 1)
        return (self.side + h * (2 * self.side - h - 1)) / self.side**2

    def _box(self, tile: tuple[int, ...]) -> tuple[int, int]:
        return min(int(tile[0]), self.side), min(int(tile[1]), self.side)

    def _table(self, tile: tuple[int, ...]) -> BandTable:
        return self._count(*self._box(tile))

    @remembered
    def _count(self, a: int, b: int) -> BandTable:
        rows, columns, h = self.side // a, self.side // b, self.half_width
        # The tile rows that are looked at: `border` ones, with a weight, and then one for all in the middle.
        border, weight, middle = rows, 1, 0
        if not self.every_tile and 2 * -(-h // a) <= rows:
            border, weight = -(-h // a), 2
            middle = max(rows - 2 * border, 0)
        outer = Grid(a, b, border, columns)
        seen = Grid(a, b, min(border + 1, rows), columns)
        delta = seen.deltas(-(h + b - 1), h + a - 1)
        held = band_cells(delta, a, b, h)
        count, row, column = seen.at(delta)
        first_rows = outer.at(delta)[0] if border else np.zeros_like(count)
        total = first_rows * weight + (count - first_rows) * middle
        present = count > 0
        held, total, row, column = held[present], total[present], row[present], column[present]
        k, index = np.unique(held, return_inverse=True)
        weights = np.bincount(index, total, len(k))
        order = np.lexsort((column, row, held))  # the first tile in reading order, for every k
        at = order[np.searchsorted(held[order], k)]
        rows_k, columns_k = row[at] * a, column[at] * b
        tiles = rows * columns
        seen_tiles = (border * weight + (seen.rows - border) * middle) * columns
        empty = self._first_empty(a, b, seen.rows, columns)
        if empty is not None:
            k, rows_k, columns_k = np.append(0, k), np.append(empty[0], rows_k), np.append(empty[1], columns_k)
            weights = np.append(seen_tiles - weights.sum(), weights)
        return BandTable(k, weights / tiles, rows_k, columns_k)

    def _first_empty(self, a: int, b: int, rows: int, columns: int) -> tuple[int, int] | None:
        """Row and column of the first empty tile: right of the band in the first row, or left of the band further down."""
        right = (a - 1 + self.half_width) // b + 1
        if right < columns:
            return 0, right * b
        down = (b - 1 + self.half_width) // a + 1
        return (down * a, 0) if down < rows else None

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(k) = share of the aligned tiles with exactly k nonzeros.

        Only the first w+1 tile rows are examined, w = ceil(h/a): w rows also stand for the last w, the other row for
        all between. Exact if the width of a tile divides its height. All tile rows count, exactly, with `every_tile`
        and where 2w exceeds the number of tile rows."""
        table = self._table(tile)
        kept = table.weight > 0
        return table.k[kept], table.weight[kept]

    def empty(self, tile: tuple[int, ...]) -> float:
        table = self._table(tile)
        return float(table.weight[0]) if table.k[0] == 0 else 0.0

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """Share of empty sub-tiles in the first tile with k nonzeros (`every_tile`: in all tiles with k nonzeros)."""
        return self._empty_within(sub_tile, tile, k, False)

    def timeloop_empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """As `empty_within`, with the tile's offset added twice to the first row and column of a sub-tile (Q4)."""
        return self._empty_within(sub_tile, tile, k, True)

    def _empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros, twice: bool) -> Array:
        (a, b), (sub_a, sub_b) = self._box(tile), self._box(tuple(map(min, sub_tile, tile)))
        table = self._count(a, b)
        at = positions(k, table.k, (a, b), f"the {self.side} x {self.side} band matrix")
        if self.every_tile:
            return self._empty_in_all(sub_a, sub_b, a, b, table.k)[at]
        row, column = table.row[at], table.column[at]
        if not twice:
            return self._empty_share(sub_a, sub_b, a, b, column - row, sub_a, sub_b)
        height, width = sub_a - row, sub_b - column
        share = self._empty_share(sub_a, sub_b, a, b, 2 * (column - row), height, width)
        return np.where((height > 0) & (width > 0), share, 1.0)

    def _empty_share(self, sub_a: int, sub_b: int, a: int, b: int, delta: Array, height, width) -> Array:
        """Share of empty rectangles (height x width) at the corners of the sub-tiles, for tiles at delta."""
        prefix, common = self._prefix(sub_a, sub_b, a, b), math.gcd(sub_a, sub_b)
        least = -(a // common)

        def before(x: Array) -> Array:
            return np.clip(-(-x // common) - least, 0, len(prefix) - 1)

        above, below = before(self.half_width + height - delta), before(1 - self.half_width - width - delta)
        return (prefix[-1] - prefix[np.maximum(above, below)] + prefix[below]) / prefix[-1]

    @remembered
    def _prefix(self, sub_a: int, sub_b: int, a: int, b: int) -> Array:
        """Cumulative sub-tiles of a tile by relative delta: below multiples of the common divisor, -a to b; and in all."""
        deltas = Grid(sub_a, sub_b, a // sub_a, b // sub_b).deltas(-a, b)
        common = math.gcd(sub_a, sub_b)
        number = np.zeros(b // common + a // common + 1, np.int64)
        number[deltas // common + a // common] = Grid(sub_a, sub_b, a // sub_a, b // sub_b).at(deltas)[0]
        return np.concatenate([[0], np.cumsum(number)])

    def _empty_in_all(self, sub_a: int, sub_b: int, a: int, b: int, k: Array) -> Array:
        """Share of empty sub-tiles over all tiles with k nonzeros, for every k of the table."""
        h, grid = self.half_width, Grid(a, b, self.side // a, self.side // b)
        delta = grid.deltas(-(h + b - 1), h + a - 1)
        count = grid.at(delta)[0]
        at = np.searchsorted(k, band_cells(delta, a, b, h)[count > 0])
        delta, count = delta[count > 0], count[count > 0]
        share = self._empty_share(sub_a, sub_b, a, b, delta, sub_a, sub_b)
        tiles = np.bincount(at, count, len(k))
        return np.where(tiles > 0, np.bincount(at, count * share, len(k)) / np.maximum(tiles, 1), 1.0)

    def timeloop_smallest(self, tile: tuple[int, ...]) -> float:
        """0, even where no tile is empty (Q3)."""
        return 0.0

    def largest(self, tile: tuple[int, ...]) -> float:
        return float(self._table(tile).k[-1])

    def draw(self, rng: np.random.Generator) -> Array:
        """The band; not random."""
        index = np.arange(self.side)
        return np.abs(index[:, None] - index) <= self.half_width


@attrs.frozen(kw_only=True)
class Banded(DensityModel):
    """A square matrix with nonzeros where |row - column| <= half_width."""

    type_name: ClassVar[str] = "banded"

    half_width: int = attrs.field(validator=attrs.validators.ge(0))
    """Nonzero words on either side of the diagonal."""
    every_tile: bool = False
    """Count all tiles, instead of only the first rows of tiles like the Sparseloop model."""

    def occupancy(self, shape: tuple[int, ...]) -> BandedOccupancy:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise refused(self, f"type 'banded' is for square matrices, and this tensor is {by(shape)}")
        return BandedOccupancy(int(shape[0]), self.half_width, self.every_tile)
