"""Occupancies of tiles with N:M blocks (5.7): distributions of bands, convolved as products of Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from sparsemap.inner.arrays import power
from sparsemap.pieces.contracts.base import Array

from .atoms import repeated
from .band_sums import Placed, Share, gathered, placed
from .common import remembered
from .crisp_bands import Cut, Places, Widths
from .crisp_full import FullestTiles
from .footprints import BandClasses

POINTS = 2048
"""Largest number of occupancies of one tile."""
UNSEEN = 1e-15
"""Smallest probability of a listed occupancy."""
EXPONENT = 40.0
"""exp(-40) = 4e-18 bounds the probability beyond the window of a transform."""
Asked = tuple[Places, Widths]
"""A sub-tile: positions of its tiles, and its columns."""
_Factor = tuple[Any, Array, int]
"""Further bands: spectra of all, or rows of one band's spectrum; index per strip; number of bands in the second case."""
TOGETHER = 1 << 14
"""Limit of places transformed together, to stay in the cache."""


class Lattice(NamedTuple):
    """Lattice of occupancies for the transforms of tiles of one size: `origin` + i * `step`, i < `points`."""

    origin: int
    step: int
    points: int

    @property
    def size(self) -> int:
        """Length of the transform."""
        return max(8, 1 << (self.points - 1).bit_length())

    def over(self, rows: int) -> Lattice:
        """Lattice for a single row, where all rows of a tile hold equally many nonzeros."""
        return self if rows == 1 else Lattice(self.origin // rows, self.step // rows, self.points)


class _Sum(NamedTuple):
    """Bands of tiles in one position: for the query of one number, with a weight."""

    number: int
    weight: int
    mixed: slice
    """Rows with the occupancies of a first band: a row per kind of tile, or a single row if there are no other bands."""
    weights: Array | None
    """Weights of kinds or strips, without a first band."""
    factors: list[_Factor]
    by_kind: bool

    def product(self, spectra: Array) -> Array:
        """(places,) transform of the sum over all kinds or strips."""
        product: Any = spectra[self.mixed] if self.weights is None else self.weights
        for bands_of, at, count in self.factors:
            own = repeated(spectra[bands_of], count, np.multiply, 1.0) if count else bands_of
            product = product * (own if self.by_kind else own[at])
        found: Array = np.add.reduce(product)
        return found


class CrispSums(FullestTiles):
    """Occupancy distributions of tiles, and their joint distributions with an empty sub-tile."""

    __slots__ = ()

    @remembered
    def _layout(self, cut: Cut) -> Lattice:
        """Lattice of occupancies in Bernstein's bound: exp(-t^2 / (2 (variance + t largest / 3))) = exp(-40)."""
        low, high, step = math.inf, -math.inf, 0
        for band, strip in self._positions(cut, cut):
            mean = variance = least = most = 0.0
            one = 0
            for height, _, count in band.touched:
                first, last, grain, middle, spread = self._moments(strip.whole, height)
                mean, variance = mean + count * middle, variance + count * spread
                least, most, step = least + count * first, most + count * last, math.gcd(step, grain)
                one = max(one, height * strip.whole.most)
            third = EXPONENT * one / 3
            reach = third + math.sqrt(third**2 + 2 * EXPONENT * variance)
            low, high = min(low, max(least, mean - reach)), max(high, min(most, mean + reach))
        step = max(step, 1)
        step *= max(1, -(-int(high - low) // (step * (POINTS - 2))))
        origin = int(low) // step * step
        return Lattice(origin, step, -(-(math.ceil(high) - origin) // step) + 1)

    def _empty_shares(self, about: tuple[Lattice, Widths, Places, Widths], asked: list[Asked]) -> list[Array]:
        """`empty_within` at the lattice's occupancies with a probability; `about`: lattice, columns, positions, parts."""
        layout, columns, *_ = about
        found = {
            one: self.memory.find((about, one)) for one in asked if one[0][0].rows == 1
        }  # of rows: of many heights
        missing = [one for one in asked if found.get(one) is None]
        known, positive = self._known(*about)
        count = 1 + TOGETHER // (layout.size * len(self._tile_kinds(columns)))
        for some in (missing[at : at + count] for at in range(0, len(missing), count)):
            both = self._transformed(layout, columns, some, True)[:, : len(known)]
            within = np.minimum(np.maximum(both / positive, 0.0), 1.0)
            for one, shares in zip(some, np.where(known, within, 0.0), strict=True):
                if one in found:
                    self.memory.keep((about, one), shares.copy())
                found[one] = shares
        return [found[one] for one in asked]

    @remembered
    def _known(self, layout: Lattice, columns: Widths, places: Places, sub: Widths) -> tuple[Array, Array]:
        """Whether lattice occupancies have a probability, up to the last, and the probabilities, with 1 for none."""
        one = self._of_tiles(layout, columns, places, sub)
        known = one > UNSEEN / 2
        stop = int(known.nonzero()[0][-1]) + 1
        return known[:stop], np.where(known, one, 1.0)[:stop]

    @remembered
    def _of_tiles(self, layout: Lattice, columns: Widths, places: Places, sub: Widths) -> Array:
        """(points,) P(k) over all tiles, each weighted by the number of its sub-tiles."""
        found: Array = self._transformed(layout, columns, [(places, sub)], False)[0]
        return found

    def _transformed(self, layout: Lattice, columns: Widths, asked: list[Asked], inside: bool) -> Array:
        """(asked, points) P(k), or with `inside` P(k and sub-tile empty), averaged over all sub-tiles."""
        sums, held, rows, size, step = list[_Sum](), list[Placed](), 0, layout.size, layout.step
        for number, (places, sub) in enumerate(asked):
            weights, _, whole, order, _ = self._weights(columns, sub)
            for band in places:
                parts = [*band.heights, *(band.touched if inside else ((h, 0, n) for h, _, n in band.touched))]
                touched, first, product = sum([count for _, inner, count in parts if inner]), rows, None
                if touched == 1 or (
                    len(parts) == 1 and parts[0][2] == 1
                ):  # strips of one kind of tile are added up first
                    mixed = self._mixed(columns, sub, *parts.pop()[:2])
                    held += [(atoms, times, rows + at if parts else rows, share) for atoms, times, at, share in mixed]
                    rows += len(order) if parts else 1
                else:
                    product = (np.bincount(whole, weights) if touched < 2 else weights)[:, None]
                factors, mine = list[_Factor](), slice(first, rows)
                for height, inner, count in parts:
                    if inner:
                        at, kinds = self._inside_kinds(columns, sub, inner)
                        held += [(*self._rows(one, height, inner), rows + i, 1.0) for i, one in enumerate(kinds)]
                        factors.append((slice(rows, rows + len(kinds)), at, count))
                        rows += len(kinds)
                    else:
                        apart = self._spectra_apart(columns, height, count, step, size)
                        factors.append((apart[order], whole, 0) if touched < 2 else (apart, order[whole], 0))
                sums.append(_Sum(number, band.weight, mine, product, factors, touched < 2))
        summed = self._summed(sums, placed(held, rows, size, step))
        found = np.zeros((len(asked), size))
        for one, values in zip(sums, summed, strict=True):
            found[one.number] += one.weight * values
        every = [self._weights(columns, sub)[4] * sum([band.weight for band in places]) for places, sub in asked]
        found /= np.array(every)[:, None]
        first = layout.origin // step % size
        return np.concatenate([found[:, first:], found[:, :first]], axis=1)[:, : layout.points]

    @staticmethod
    def _summed(sums: list[_Sum], held: Array) -> list[Array]:
        """Occupancies of all bands together, from the single bands' occupancies (rows, places)."""
        products = [at for at, one in enumerate(sums) if one.factors]
        found: list[Any] = [None if one.factors else held[one.mixed.start] for one in sums]
        if products:
            spectra = np.fft.rfft(held, axis=1) if len(held) else held
            totals = np.fft.irfft(np.array([sums[at].product(spectra) for at in products]), held.shape[1], axis=1)
            for at, total in zip(products, totals, strict=True):
                found[at] = total
        return found

    @remembered
    def _inside_kinds(self, columns: Widths, sub: Widths, inner: int) -> tuple[Array, list[BandClasses]]:
        """(strips,) index of each strip's band with `inner` rows of a sub-tile, and the list of distinct bands."""
        every = [strip.inside.given(inner) for strip in self._strips(columns, sub)]
        kinds = {classes: at for at, classes in enumerate(dict.fromkeys(every))}
        return np.array([kinds[classes] for classes in every]), list(kinds)

    @remembered
    def _spectra_apart(self, columns: Widths, height: int, count: int, step: int, size: int) -> Array:
        """(kinds of tiles, places) spectra of bands without a sub-tile."""
        return self._powers(self._tile_kinds(columns), height, 0, count, step, size)

    def _powers(self, kinds: Iterable[BandClasses], height: int, inner: int, count: int, step: int, size: int) -> Array:
        held: list[Placed] = [(*self._rows(classes, height, inner), at, 1.0) for at, classes in enumerate(kinds)]
        return repeated(np.fft.rfft(placed(held, len(held), size, step), axis=1), count, np.multiply, 1.0)

    def _mixed(self, columns: Widths, sub: Widths, height: int, inner: int) -> list[Placed]:
        """Occupancies of a band by kind of tile, jointly with an empty sub-tile of `inner` rows (0: without one); the kind,
        and the weight of the strips."""
        if height > 1 and self._whole(columns):
            return [(atoms, height, at, share) for atoms, _, at, share in self._mixed_row(columns, sub, inner)[0]]
        return gathered(self._shares(columns, sub, inner), height, inner, self.memory.values, self._joined)

    @remembered
    def _mixed_row(self, columns: Widths, sub: Widths, inner: int) -> tuple[Any, ...]:
        """`_mixed` for a height of 1, and the arrays within."""
        mixed = self._mixed(columns, sub, 1, inner)
        return mixed, *(part for atoms, *_ in mixed for part in atoms)

    @remembered
    def _shares(self, columns: Widths, sub: Widths, inner: int) -> list[Share]:
        """Components of the bands of `_mixed`: kind of tile, footprints, and share."""
        weights, _, whole, *_ = self._weights(columns, sub)
        shares: dict[tuple[int, BandClasses], float] = {}
        for strip, weight, at in zip(self._strips(columns, sub), weights.tolist(), whole.tolist(), strict=True):
            classes, chance = strip.inside.given(inner) if inner else strip.whole, 0.0
            if inner and classes.apart is not None:
                classes, one = classes.apart
                chance = weight * power(one, inner)
                shares[at, strip.whole] = shares.get((at, strip.whole), 0.0) + chance
            shares[at, classes] = shares.get((at, classes), 0.0) + weight - chance
        return [(at, one, share, one.partial, one.certain) for (at, one), share in shares.items()]
