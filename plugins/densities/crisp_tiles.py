"""The tiles of tensors whose blocks keep N:M words (5.7), exact.

In one block row (a *band*) the number of kept blocks among those that a tile touches is hypergeometric, and a kept block
adds what its groups hold: all of it known for whole groups, hypergeometric per row and group for others. Bands are
independent, so that their distributions are convolved, as products of Fourier transforms. Tiles of the same size that lie
differently to the blocks are averaged. All of this is exact up to 1e-15 in absolute probability, but for tiles with more
than `POINTS` possible occupancies within reach: there, occupancies are split between the nearest two of so many.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import attrs
import numpy as np

from sparsemap import Occupancy
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .atoms import Atoms, repeated
from .band_sums import Kept, Placed, joined, placed
from .common import Memory, chosen, expanded, remembered
from .footprints import NEVER, BandClasses, Bands, Columns, Strips, bands
from .full_bands import Filled, filled, heaviest

POINTS = 2048
"""The most occupancies of one tile."""
UNSEEN = 1e-15
"""Probability below which an occupancy is left out."""
EXPONENT = 40.0
"""exp(-40) = 4e-18 bounds the probability beyond the window of a transform."""

Cut = tuple[int, tuple[int, ...]]
"""Rows of a tile, and its columns per rank of `Columns`."""
Widths = tuple[int, ...]
"""These columns."""
Places = tuple[Bands, ...]
"""How the rows of tiles with a sub-tile lie to the blocks."""


class Lattice(NamedTuple):
    """The lattice of occupancies on which tiles of one size are transformed: `origin` + i * `step`, i < `points`."""

    origin: int
    step: int
    points: int

    @property
    def size(self) -> int:
        """Points of the transform."""
        return max(8, 1 << (self.points - 1).bit_length())

    def over(self, rows: int) -> Lattice:
        """That of one row of tiles whose rows all hold equally many."""
        return self if rows == 1 else Lattice(self.origin // rows, self.step // rows, self.points)


@attrs.frozen
class CrispOccupancy(Occupancy):
    """Tiles of a tensor of `crisp.Crisp`. Tiles are aligned; those cut off at an edge count as they are."""

    by_shape = True

    shape: tuple[int, ...]
    columns: Columns
    block_rows: int
    """Rows of a block."""
    blocks: int
    """C, blocks in a block row."""
    keep: int
    """Kept blocks of each."""
    memory: Memory = attrs.field(factory=Memory, init=False, repr=False, eq=False)

    @property
    def density(self) -> float:  # type: ignore[override]
        columns, groups = self.columns, -(-self.columns.count // self.columns.m)
        held = np.minimum(columns.width(np.arange(groups)), columns.n).sum()
        return float(self.keep / self.blocks * held / columns.count)

    # -- tiles

    @remembered
    def _cut(self, tile: tuple[int, ...]) -> Cut:
        rows, first, *others = (min(int(t), s) for t, s in zip(tile, self.shape, strict=True))
        return rows, (*others, first)

    @remembered
    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(k), as the module says."""
        cut = self._cut(tile)
        layout, (places, rows) = self._layout(cut), self._in_rows(self._bands(cut[0], cut[0]), cut[1])
        p = self._of_tiles(layout.over(rows or 1), places, cut[1], cut[1])
        k = np.minimum(layout.origin + layout.step * np.arange(layout.points), int(self.largest(tile)))
        some = p > UNSEEN
        k, p = k[some], p[some]
        if len(k) > 1 and k[-1] == k[-2]:  # the last point was beyond the largest occupancy
            k, p = np.delete(k, -2), np.append(p[:-2], p[-2] + p[-1])
        return k, p / p.sum()

    @remembered
    def empty(self, tile: tuple[int, ...]) -> float:
        """Every band is empty: the mean over kept blocks of the product of their being empty."""
        cut = self._cut(tile)
        found = total = 0.0
        for band, strip in self._positions(cut, cut):
            chance = 1.0
            for height, inner, count in band.touched:
                chance *= self._chance(strip.inside, height, inner, 0) ** count
            weight = band.weight * strip.weight
            found, total = found + weight * chance, total + weight
        return found / total

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """P(sub-tile empty and k in the tile) / P(k), of all sub-tiles."""
        k = np.asarray(k)
        cut, sub = self._cut(tile), self._cut(tuple(map(min, sub_tile, tile)))
        if cut == sub:
            return (k == 0).astype(np.float64)
        if sub[0] * math.prod(sub[1]) == 1 and self._even(cut):  # a word: as many are empty as the tile has no nonzeros
            return 1.0 - k / (cut[0] * math.prod(cut[1]))
        largest = self.largest(tile)
        layout, columns = self._layout(cut), cut[1]
        places, rows = self._in_rows(self._bands(cut[0], sub[0]), columns)
        if k.size == 1 and k.item() == largest:
            full = (self._of_fullest if rows else self._empty_in_fullest)(places, columns, sub[1])
            if full is not None:
                return np.full(k.shape, full)
        even = self._even(cut)
        own = self._in_rows(self._bands(cut[0], cut[0]), columns)[0] if even else places
        ask, scale = (self._shares_of_rows, rows) if rows else (self._empty_shares, 1)
        shares = ask(layout.over(scale), places, columns, sub[1], own, columns if even else sub[1])
        at = np.rint((k - layout.origin) / layout.step).astype(np.int64)
        return shares[np.minimum(np.maximum(at, 0), len(shares) - 1)]

    def _in_rows(self, places: Places, columns: Widths) -> tuple[Places, int]:
        """Of tiles in one band whose rows all hold equally many: as if they had one row, and how many they have; else 0."""
        (weight, apart, touched), *others = places
        height, inner, count = touched[0]
        if others or apart or len(touched) > 1 or count > 1 or not self._whole(columns):
            return places, 0
        return (Bands(weight, (), ((1, inner, 1),)),), height

    def _even(self, cut: Cut) -> bool:
        """Whether no tile is cut off at an edge: all have as many sub-tiles."""
        sizes = (self.shape[0], *self.columns.ranks)
        return not any(size % width for size, width in zip(sizes, (cut[0], *cut[1]), strict=True))

    def _empty_shares(
        self, layout: Lattice, places: Places, columns: Widths, sub: Widths, own: Places, part: Widths
    ) -> Array:
        """`empty_within` of the occupancies of the layout, up to the last one with a probability: that of tiles that lie like
        `own`, with parts of so many columns."""
        known, positive = self._known(layout, own, columns, part)
        both = self._transformed(layout, places, columns, sub, True)[: len(known)]
        return np.where(known, (both / positive).clip(0.0, 1.0), 0.0)

    _shares_of_rows = remembered(_empty_shares)

    @remembered
    def _known(self, layout: Lattice, places: Places, columns: Widths, sub: Widths) -> tuple[Array, Array]:
        """Whether occupancies of the layout have a probability, up to the last one that has, and it, or else 1."""
        one = self._of_tiles(layout, places, columns, sub)
        known = one > UNSEEN / 2
        stop = int(np.flatnonzero(known)[-1]) + 1
        return known[:stop], np.where(known, one, 1.0)[:stop]

    def _empty_in_fullest(self, places: Places, columns: Widths, sub: Widths) -> float | None:
        """`empty_within` of tiles that hold all that they can, by logarithms: few do; None where numbers do not reach. To 14
        digits, which is what they carry: counts that are whole numbers are rounded up."""
        rows, whole, found = max([band.rows for band in places]), self._whole(columns), list[tuple[Array, Array]]()
        for band in places:
            one = self._heaviest_strips(columns, sub, band.weight if band.rows == rows else 0)
            for height, *_, count in (*band.heights, *band.touched):
                one = one + count * self._full_strips(columns, sub, 1 if whole else height, 0)
            both = one
            for height, inner, count in band.touched:
                both = both + count * self._full_strips(columns, sub, inner if whole else height, inner)
            found.append((one, both))
        one, both = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
        top = one.max()
        return None if top == -np.inf else float(f"{np.exp(both - top).sum() / np.exp(one - top).sum():.14g}")

    _of_fullest = remembered(_empty_in_fullest)

    @remembered
    def _heaviest_strips(self, columns: Widths, sub: Widths, weight: int) -> Array:
        """(strips,) logarithm of the number of those whose tiles may hold most nonzeros."""
        weights, most, *_ = self._weights(columns, sub)
        with np.errstate(divide="ignore"):
            return np.log(np.where(most == most.max(), weight * weights, 0.0))

    @remembered
    def _whole(self, columns: Widths) -> bool:
        """Whether all groups lie in tiles whole: then the rows of a band all hold equally many, however high it is."""
        return not any(strip.whole.partial for strip in self._strips(columns, columns))

    @remembered
    def _weights(self, columns: Widths, sub: Widths) -> tuple[Array, Array, Array, Array]:
        """(strips,) their weights, the most nonzeros per row of a band, and the numbers of their tiles: alike ones have one;
        and where these are in `_tile_kinds`."""
        strips = self._strips(columns, sub)
        weights = np.array([strip.weight for strip in strips], np.float64)
        kinds = {whole: at for at, whole in enumerate(dict.fromkeys(strip.whole for strip in strips))}
        most = np.array([self._heaviest(whole) for whole in kinds])
        at = np.array([kinds[strip.whole] for strip in strips])
        every = self._tile_kinds(columns)
        return weights, most[at], at, np.array([every[whole] for whole in kinds])

    @remembered
    def _tile_kinds(self, columns: Widths) -> dict[BandClasses, int]:
        """What tiles of so many columns have of a band, numbered."""
        return {whole: at for at, whole in enumerate(dict.fromkeys(s.whole for s in self._strips(columns, columns)))}

    @remembered
    def _full_strips(self, columns: Widths, sub: Widths, height: int, inner: int) -> Array:
        """(strips,) logarithm of the chance that a band holds all that it can; with `inner`, of the share with an empty
        sub-tile."""
        kinds, at = self._filled_strips(columns, sub, inner > 0)
        with np.errstate(divide="ignore"):
            found = np.log([kind.chance(height, inner) if kind else 0.0 for kind in kinds])[at]
        whole = self._full_strips(columns, sub, 1 if self._whole(columns) else height, 0) if inner else np.zeros(1)
        return found - np.where(np.isfinite(whole), whole, 0.0)

    @remembered
    def _filled_strips(self, columns: Widths, sub: Widths, inside: bool) -> tuple[list[Filled | None], Array]:
        """Of the strips, with the sub-tile in them or without: what is distinct of `_filled`, and (strips,) which each has."""
        pairs = zip(self._strips(columns, sub), self._weights(columns, sub)[1].tolist(), strict=True)
        every = [(strip.inside if inside else strip.whole, most) for strip, most in pairs]
        kinds = {one: at for at, one in enumerate(dict.fromkeys(every))}
        return [self._filled(*one) for one in kinds], np.array([kinds[one] for one in every])

    @remembered
    def largest(self, tile: tuple[int, ...]) -> float:
        """The heaviest blocks that a band may keep, in every band."""
        rows, columns = self._cut(tile)
        most = int(self._weights(columns, columns)[1].max())
        return float(max(band.rows for band in self._bands(rows, rows)) * most)

    def largest_stored(self, tile: tuple[int, ...], granule: tuple[int, ...]) -> float:
        """All words of the blocks that may be kept, where granules lie within blocks; otherwise each nonzero's granule."""
        (rows, columns), (high, wide) = self._cut(tile), self._cut(granule)
        words, grain, block = rows * math.prod(columns), high * math.prod(wide), self.columns.block
        within = self.columns.ranks[-1] % block == block % wide[-1] == self.block_rows % high == 0
        if within and math.prod(wide[:-1]) == 1:
            touched = max(sum(count for _, count in strip.whole) for strip in self._strips(columns, columns))
            return float(min(words, rows * min(columns[-1], block) * min(touched, self.keep)))
        return float(min(words, grain * self.largest(tile)))

    @property
    def alike(self) -> tuple[int, ...]:
        """Rows of one block row keep the same blocks, and in each equally many words of a group."""
        return self.block_rows, self.columns.block, *(1,) * (len(self.shape) - 2)

    def draw(self, rng: np.random.Generator) -> Array:
        """Exactly `keep` blocks of every block row, and n words of every group of a kept block."""
        rows, (count, m) = self.shape[0], (self.columns.count, self.columns.m)
        blocks = chosen(rng, (-(-rows // self.block_rows), self.blocks), self.keep)
        order = rng.random((rows, -(-count // m) * m))
        order[:, count:] = 1.0  # beyond the last group: never among the first
        words = order.reshape(rows, -1, m).argsort(axis=2).argsort(axis=2) < self.columns.n
        kept = expanded(blocks, (self.block_rows, self.columns.block), (rows, count))
        drawn = words.reshape(rows, -1)[:, :count] & kept
        return np.ascontiguousarray(np.moveaxis(drawn.reshape(rows, *self.columns.ranks), -1, 1))

    # -- bands

    @remembered
    def _bands(self, rows: int, sub: int) -> Places:
        return bands(self.shape[0], self.block_rows, rows, sub)

    def _strips(self, columns: Widths, sub: Widths) -> list[Strips]:
        return self.columns.strips(columns, sub)

    def _positions(self, cut: Cut, sub: Cut) -> Iterator[tuple[Bands, Strips]]:
        """How tiles with a sub-tile in them lie to the blocks."""
        return itertools.product(self._bands(cut[0], sub[0]), self._strips(cut[1], sub[1]))

    @remembered
    def _heaviest(self, classes: BandClasses) -> int:
        """The most nonzeros per row of a band."""
        return heaviest(classes, self.keep)

    @remembered
    def _filled(self, classes: BandClasses, most: int) -> Filled | None:
        return filled(classes, most, self.blocks, self.keep)

    def _chance(self, classes: BandClasses, height: int, inner: int, held: int) -> float:
        """Probability that a `_band` holds so many nonzeros."""
        x, p = self._band(classes, height, inner)
        return float(p[x == held].sum())

    def _band(self, classes: BandClasses, height: int, inner: int) -> Atoms:
        """Occupancies of a band of so many rows; in `inner` of them the sub-tile is empty, or the probability is lost."""
        (x, p), times = self._rows(classes, height, inner)
        return x * times, p

    def _rows(self, classes: BandClasses, height: int, inner: int) -> tuple[Atoms, int]:
        """`_band` of as few rows as say all, and what its occupancies are to be multiplied by."""
        inner = 0 if classes.certain else inner
        if classes.partial:
            return self._joined(classes, height, inner), 1
        return self._joined(classes, 1, inner), height

    @remembered
    def _joined(self, classes: BandClasses, height: int, inner: int) -> Atoms:
        """`_band`, by `joined`."""
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

    # -- transforms

    @remembered
    def _layout(self, cut: Cut) -> Lattice:
        """All occupancies within the reach of Bernstein's bound: exp(-t^2 / (2 (variance + t largest / 3))) = exp(-40)."""
        low, high, step = math.inf, -math.inf, 0
        for band, strip in self._positions(cut, cut):
            mean = variance = least = most = 0.0
            one = 0
            for height, _, count in band.touched:
                x, p = self._band(strip.whole, height, 0)
                middle = float(x @ p)
                mean, variance = mean + count * middle, variance + count * float((x - middle) ** 2 @ p)
                least, most = least + count * int(x[0]), most + count * int(x[-1])
                step = math.gcd(step, int(np.gcd.reduce(x)))
                one = max(one, height * max(footprint.most for footprint, _ in strip.whole))
            third = EXPONENT * one / 3
            reach = third + math.sqrt(third**2 + 2 * EXPONENT * variance)
            low, high = min(low, max(least, mean - reach)), max(high, min(most, mean + reach))
        step = max(step, 1)
        step *= max(1, -(-int(high - low) // (step * (POINTS - 2))))
        origin = int(low) // step * step
        return Lattice(origin, step, -(-(math.ceil(high) - origin) // step) + 1)

    @remembered
    def _of_tiles(self, layout: Lattice, places: Places, columns: Widths, sub: Widths) -> Array:
        """(points,) P(k) of all tiles, each as often as it has sub-tiles."""
        return self._transformed(layout, places, columns, sub, False)

    def _transformed(self, layout: Lattice, places: Places, columns: Widths, sub: Widths, inside: bool) -> Array:
        """(points,) P(k), or with `inside` P(k and sub-tile empty), the mean over all sub-tiles."""
        weights, _, whole, order = self._weights(columns, sub)
        found, kinds = np.zeros(layout.size), len(order)
        for band in places:
            parts = [*band.heights, *(band.touched if inside else ((h, 0, n) for h, _, n in band.touched))]
            touched = sum([count for _, inner, count in parts if inner])
            if touched == 1 or (len(parts) == 1 and parts[0][2] == 1):  # strips of one kind of tile are added up first
                held = self._mixed(columns, sub, *parts.pop()[:2])
                if not parts:
                    held = [(atoms, times, 0, share) for atoms, times, _, share in held]
                    found += band.weight * placed(held, 1, layout.size, layout.step)[0]
                    continue
                product: Any = np.fft.rfft(placed(held, kinds, layout.size, layout.step), axis=1)
            else:
                product = (np.bincount(whole, weights) if touched < 2 else weights)[:, None]
            for height, inner, count in parts:
                if inner:
                    at, spectra = self._spectra(columns, sub, height, inner, count, layout.step, layout.size)
                else:
                    at, spectra = whole, self._spectra_apart(columns, height, count, layout.step, layout.size)[order]
                product = product * (spectra if touched < 2 else spectra[at])
            found += band.weight * np.fft.irfft(product.sum(axis=0), layout.size)
        found /= weights.sum() * sum(band.weight for band in places)
        first = layout.origin // layout.step % layout.size
        return np.concatenate([found[first:], found[:first]])[: layout.points]

    def _spectra(
        self, columns: Widths, sub: Widths, height: int, inner: int, count: int, step: int, size: int
    ) -> tuple[Array, Array]:
        """(strips,) their kinds, and the transforms (kinds, places) of what so many bands with a sub-tile hold."""
        every = [strip.inside.given(inner) for strip in self._strips(columns, sub)]
        kinds = {classes: at for at, classes in enumerate(dict.fromkeys(every))}
        return np.array([kinds[classes] for classes in every]), self._powers(kinds, height, inner, count, step, size)

    @remembered
    def _spectra_apart(self, columns: Widths, height: int, count: int, step: int, size: int) -> Array:
        """(kinds of tiles, places) the same of bands without one."""
        return self._powers(self._tile_kinds(columns), height, 0, count, step, size)

    def _powers(self, kinds: Iterable[BandClasses], height: int, inner: int, count: int, step: int, size: int) -> Array:
        held: list[Placed] = [(*self._rows(classes, height, inner), at, 1.0) for at, classes in enumerate(kinds)]
        return repeated(np.fft.rfft(placed(held, len(held), size, step), axis=1), count, np.multiply, 1.0)

    def _mixed(self, columns: Widths, sub: Widths, height: int, inner: int) -> list[Placed]:
        """Of all kinds of tiles, what a band with a sub-tile may hold, the probability of that and an empty sub-tile, the kind,
        and the weight of the strips. `inner` is 0 where sub-tiles are not asked for."""
        if height > 1 and self._whole(columns):
            return [(atoms, height, at, share) for atoms, _, at, share in self._mixed_row(columns, sub, inner)[0]]
        return [
            (*self._rows(classes, height, inner), at, share) for at, classes, share in self._shares(columns, sub, inner)
        ]

    @remembered
    def _mixed_row(self, columns: Widths, sub: Widths, inner: int) -> tuple[Any, ...]:
        """`_mixed` for a height of 1, and the arrays in it."""
        mixed = self._mixed(columns, sub, 1, inner)
        return mixed, *(part for atoms, *_ in mixed for part in atoms)

    @remembered
    def _shares(self, columns: Widths, sub: Widths, inner: int) -> list[tuple[int, BandClasses, float]]:
        """What the bands of `_mixed` are made of: the kind of tile, footprints, and the share of these."""
        weights, _, whole, _ = self._weights(columns, sub)
        shares: dict[tuple[int, BandClasses], float] = {}
        for strip, weight, at in zip(self._strips(columns, sub), weights.tolist(), whole.tolist(), strict=True):
            classes, chance = strip.inside.given(inner) if inner else strip.whole, 0.0
            if inner and classes.apart is not None:
                classes, one = classes.apart
                chance = weight * one**inner
                shares[at, strip.whole] = shares.get((at, strip.whole), 0.0) + chance
            shares[at, classes] = shares.get((at, classes), 0.0) + weight - chance
        return [(at, classes, share) for (at, classes), share in shares.items()]
