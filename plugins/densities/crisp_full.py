"""Tiles with N:M blocks and as many nonzeros as possible (5.7), computed with logarithms."""

from __future__ import annotations

import numpy as np

from sparsemap.inner.arrays import logs
from sparsemap.pieces.contracts.base import Array

from .band_sums import Full, fullest
from .common import remembered
from .crisp_bands import CrispBands, Places, Widths
from .footprints import BandClasses
from .full_bands import Filled, filled


class FullestTiles(CrispBands):
    """Share of empty sub-tiles in the fullest tiles."""

    __slots__ = ()

    def _empty_in_fullest(self, places: Places, columns: Widths, sub: Widths) -> float | None:
        """`empty_within` of the fullest tiles by logarithms, to 14 digits, since few are as full; None on underflow."""
        rows, whole, found = max([band.rows for band in places]), self._whole(columns), list[Full]()
        for band in places:
            one = self._heaviest_strips(columns, sub, band.weight if band.rows == rows else 0)
            every = [
                (count, self._full_strips(columns, sub, 1 if whole else height, 0))
                for height, *_, count in (*band.heights, *band.touched)
            ]
            inside = [
                (count, self._full_strips(columns, sub, inner if whole else height, inner))
                for height, inner, count in band.touched
            ]
            found.append((one, every, inside))
        share = fullest(found)
        return None if share is None else float(f"{share:.14g}")

    _of_fullest = remembered(_empty_in_fullest)

    @remembered
    def _heaviest_strips(self, columns: Widths, sub: Widths, weight: int) -> Array:
        """(strips,) logarithm of the number of strips with the largest possible occupancy."""
        weights, most, *_ = self._weights(columns, sub)
        with np.errstate(divide="ignore"):
            return logs(np.where(most == most.max(), weight * weights, 0.0))

    @remembered
    def _full_strips(self, columns: Widths, sub: Widths, height: int, inner: int) -> Array:
        """(strips,) log probability of a full band; with `inner`, log share with an empty sub-tile."""
        kinds, at = self._filled_strips(columns, sub, inner > 0)
        chances = [kind.chance(height, inner) if kind else 0.0 for kind in kinds]
        with np.errstate(divide="ignore"):
            found: Array = logs(np.array(chances))[at]
        return found - self._full_strips_finite(columns, sub, 1 if self._whole(columns) else height) if inner else found

    @remembered
    def _full_strips_finite(self, columns: Widths, sub: Widths, height: int) -> Array:
        """`_full_strips` of whole bands, 0 where a band is never full."""
        whole = self._full_strips(columns, sub, height, 0)
        return np.where(np.isfinite(whole), whole, 0.0)

    @remembered
    def _filled_strips(self, columns: Widths, sub: Widths, inside: bool) -> tuple[list[Filled | None], Array]:
        """Distinct results of `_filled`, with or without the sub-tile, and (strips,) the index of each strip."""
        pairs = zip(self._strips(columns, sub), self._weights(columns, sub)[1].tolist(), strict=True)
        every = [(strip.inside if inside else strip.whole, most) for strip, most in pairs]
        kinds = {one: at for at, one in enumerate(dict.fromkeys(every))}
        return [self._filled(*one) for one in kinds], np.array([kinds[one] for one in every])

    @remembered
    def _filled(self, classes: BandClasses, most: int) -> Filled | None:
        return filled(classes, most, self.blocks, self.keep)
