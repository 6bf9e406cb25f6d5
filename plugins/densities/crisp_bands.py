"""Occupancies of the bands of tiles with N:M blocks (5.7): a band is the part of a block row inside a tile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import attrs
import numpy as np

from sparsemap import Occupancy
from sparsemap.inner.arrays import dot
from sparsemap.pieces.contracts.base import Array

from .atoms import Atoms
from .band_sums import Kept, joined
from .common import Memory, remembered
from .footprints import NEVER, BandClasses, Bands, Columns, Strips, bands
from .full_bands import heaviest

Cut = tuple[int, tuple[int, ...]]
"""Rows of a tile, and columns per rank of `Columns`."""
Widths = tuple[int, ...]
Places = tuple[Bands, ...]
"""Positions, relative to the blocks, of the rows of tiles with a sub-tile."""


@attrs.frozen
class CrispBands(Occupancy):
    """The bands of a tensor with density `crisp.Crisp`."""

    shape: tuple[int, ...]
    columns: Columns
    block_rows: int
    blocks: int
    """C, number of blocks in a block row."""
    keep: int
    """Kept blocks per block row."""
    memory: Memory = attrs.field(factory=Memory, init=False, repr=False, eq=False)

    @remembered
    def _bands(self, rows: int, sub: int) -> Places:
        return bands(self.shape[0], self.block_rows, rows, sub)

    def _strips(self, columns: Widths, sub: Widths) -> list[Strips]:
        return self.columns.strips(columns, sub)

    def _positions(self, cut: Cut, sub: Cut) -> Iterator[tuple[Bands, Strips]]:
        """Positions, relative to the blocks, of tiles with a sub-tile."""
        return itertools.product(self._bands(cut[0], sub[0]), self._strips(cut[1], sub[1]))

    @remembered
    def _heaviest(self, classes: BandClasses) -> int:
        """Largest number of nonzeros per row of a band."""
        return heaviest(classes, self.keep)

    @remembered
    def _whole(self, columns: Widths) -> bool:
        """Whether all groups lie whole in tiles; then all rows of a band hold equally many nonzeros."""
        return not any(strip.whole.partial for strip in self._strips(columns, columns))

    @remembered
    def _weights(self, columns: Widths, sub: Widths) -> tuple[Array, Array, Array, Array, float]:
        """(strips,) weights, most nonzeros per row, tile kinds; indices in `_tile_kinds`; sum of weights."""
        strips = self._strips(columns, sub)
        weights = np.array([strip.weight for strip in strips], np.float64)
        kinds = {whole: at for at, whole in enumerate(dict.fromkeys(strip.whole for strip in strips))}
        most = np.array([self._heaviest(whole) for whole in kinds])
        at = np.array([kinds[strip.whole] for strip in strips])
        every = self._tile_kinds(columns)
        return weights, most[at], at, np.array([every[whole] for whole in kinds]), float(weights.sum())

    @remembered
    def _tile_kinds(self, columns: Widths) -> dict[BandClasses, int]:
        """Distinct band contents of tiles of these columns, numbered."""
        return {whole: at for at, whole in enumerate(dict.fromkeys(s.whole for s in self._strips(columns, columns)))}

    def _chance(self, classes: BandClasses, height: int, inner: int, held: int) -> float:
        """Probability of `held` nonzeros in a `_band`."""
        x, p = self._band(classes, height, inner)
        return float(p[x == held].sum())

    def _band(self, classes: BandClasses, height: int, inner: int) -> Atoms:
        """Occupancies of a band of `height` rows; only with the sub-tile empty in `inner` rows."""
        (x, p), times = self._rows(classes, height, inner)
        return x * times, p

    def _rows(self, classes: BandClasses, height: int, inner: int) -> tuple[Atoms, int]:
        """`_band` over the fewest sufficient rows, and the factor for its occupancies."""
        inner = 0 if classes.certain else inner
        if classes.partial:
            return self._joined(classes, height, inner), 1
        return self._joined(classes, 1, inner), height

    @remembered
    def _joined(self, classes: BandClasses, height: int, inner: int) -> Atoms:
        """`_band`, computed by `joined`."""
        left = self.blocks - sum(count for footprint, count in classes if footprint is NEVER)
        none = math.comb(left, self.keep) / math.comb(self.blocks, self.keep)  # of those that would never be empty
        some = [one for one in classes if one[0] is not NEVER] if none else []
        held: list[Kept] = [
            (count, footprint.fixed * height, None, footprint.blocks(height, inner, count))
            if footprint.partial
            else (count, footprint.fixed * height, footprint.powers(inner, min(count, self.keep)), None)
            for footprint, count in some
        ]
        return joined(held, left, self.keep, none)

    @remembered
    def _moments(self, classes: BandClasses, height: int) -> tuple[int, int, int, float, float]:
        """Smallest and largest occupancy of a `_band`, greatest common divisor, mean and variance."""
        x, p = self._band(classes, height, 0)
        mean = dot(x, p)
        return int(x[0]), int(x[-1]), int(np.gcd.reduce(x)), mean, dot((x - mean) ** 2, p)

    @remembered
    def _places(self, rows: int, sub: int, whole: bool) -> tuple[Places, int]:
        """Positions of tile rows in the blocks, and 0; or of one row, and their number, if all rows are alike."""
        places = self._bands(rows, sub)
        (weight, apart, touched), *others = places
        height, inner, count = touched[0]
        if others or apart or len(touched) > 1 or count > 1 or not whole:
            return places, 0
        return (Bands(weight, (), ((1, inner, 1),)),), height
