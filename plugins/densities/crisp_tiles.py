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
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import attrs
import numpy as np

from sparsemap import Occupancy
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .atoms import Atoms, repeated
from .band_sums import Full, Kept, Placed, Share, fullest, gathered, joined, placed
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
Asked = tuple[Places, Widths]
"""A sub-tile: how its tiles lie, and its columns."""
_Factor = tuple[Any, Array, int]
"""Other bands: the spectra of what one or all of them hold or their rows, which of these strips have, and in the latter case
how many bands there are."""
TOGETHER = 1 << 14
"""Places that are transformed at once: more leave the cache."""


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


class _Sum(NamedTuple):
    """Bands of tiles that lie in one way: of the tiles of one number, with a weight."""

    number: int
    weight: int
    mixed: slice
    """Rows with what a first band holds, a row per kind of tile, or one for all if there are no others .."""
    weights: Array | None
    """.. or else the weights of kinds or strips."""
    factors: list[_Factor]
    by_kind: bool

    def product(self, spectra: Array) -> Array:
        """(places,) the transform of the sum over all kinds or strips."""
        product: Any = spectra[self.mixed] if self.weights is None else self.weights
        for bands_of, at, count in self.factors:
            own = repeated(spectra[bands_of], count, np.multiply, 1.0) if count else bands_of
            product = product * (own if self.by_kind else own[at])
        found: Array = np.add.reduce(product)
        return found


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
        layout, (places, rows) = self._layout(cut), self._places(cut[0], cut[0], self._whole(cut[1]))
        p = self._of_tiles(layout.over(rows or 1), cut[1], places, cut[1])
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
        found = self.empty_within_many(np.array([sub_tile]), np.array([tile]), k.ravel(), np.array([k.size]))
        return found.reshape(k.shape)

    def empty_within_many(self, sub_tiles: Array, tiles: Array, k: Nonzeros, counts: Array) -> Array:
        """The same of n pairs; those of one tile are transformed together."""
        found, stop = np.empty(len(k)), 0
        asked = defaultdict[Any, dict[Asked, Any]](dict)
        looked_up = list[tuple[int, int, Lattice, Any, Asked]]()
        for sub_tile, tile, count in zip(sub_tiles.tolist(), map(tuple, tiles.tolist()), counts.tolist(), strict=True):
            start, stop = stop, stop + count
            cut, layout, largest, own = self._tile(tile)
            sub = self._cut(tuple(map(min, sub_tile, tile)))
            if cut == sub:
                found[start:stop] = k[start:stop] == 0
                continue
            if own and sub[0] * math.prod(sub[1]) == 1:  # a word: as many are empty as the tile has no nonzeros
                found[start:stop] = 1.0 - k[start:stop] / (cut[0] * math.prod(cut[1]))
                continue
            places, rows = self._places(cut[0], sub[0], self._whole(cut[1]))
            if count == 1 and k[start] == largest:
                full = (self._of_fullest if rows else self._empty_in_fullest)(places, cut[1], sub[1])
                if full is not None:
                    found[start] = full
                    continue
            about = layout.over(rows or 1), cut[1], own or places, cut[1] if own else sub[1]
            asked[about][places, sub[1]] = None
            looked_up.append((start, count, layout, about, (places, sub[1])))
        for about, ones in asked.items():
            ones.update(zip(ones, self._empty_shares(about, list(ones)), strict=True))
        for start, count, layout, about, one in looked_up:
            shares = asked[about][one]
            at = np.rint((k[start : start + count] - layout.origin) / layout.step).astype(np.int64)
            found[start : start + count] = shares[np.minimum(np.maximum(at, 0), len(shares) - 1)]
        return found

    @remembered
    def _tile(self, tile: tuple[int, ...]) -> tuple[Cut, Lattice, float, Places]:
        """Rows and columns of a tile, its layout, the most nonzeros, and how it lies; () where some are cut off at an edge: then
        not all have as many sub-tiles."""
        rows, columns = cut = self._cut(tile)
        sizes = (self.shape[0], *self.columns.ranks)
        even = not any(size % width for size, width in zip(sizes, (rows, *columns), strict=True))
        own = self._places(rows, rows, self._whole(columns))[0] if even else ()
        return cut, self._layout(cut), self.largest(tile), own

    @remembered
    def _places(self, rows: int, sub: int, whole: bool) -> tuple[Places, int]:
        """How rows of tiles lie to the blocks. Those in one band that hold equally many, where groups are whole: as if they were
        one row, and how many they are; else 0."""
        places = self._bands(rows, sub)
        (weight, apart, touched), *others = places
        height, inner, count = touched[0]
        if others or apart or len(touched) > 1 or count > 1 or not whole:
            return places, 0
        return (Bands(weight, (), ((1, inner, 1),)),), height

    def _empty_shares(self, about: tuple[Lattice, Widths, Places, Widths], asked: list[Asked]) -> list[Array]:
        """`empty_within` of the occupancies of the layout, up to the last one with a probability: that of tiles of so many
        columns that lie like these places, with parts of so many columns."""
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
        """Whether occupancies of the layout have a probability, up to the last one that has, and it, or else 1."""
        one = self._of_tiles(layout, columns, places, sub)
        known = one > UNSEEN / 2
        stop = int(known.nonzero()[0][-1]) + 1
        return known[:stop], np.where(known, one, 1.0)[:stop]

    def _empty_in_fullest(self, places: Places, columns: Widths, sub: Widths) -> float | None:
        """`empty_within` of tiles that hold all that they can, by logarithms: few do; None where numbers do not reach. To 14
        digits, which is what they carry: counts that are whole numbers are rounded up."""
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
        """(strips,) logarithm of the number of those whose tiles may hold most nonzeros."""
        weights, most, *_ = self._weights(columns, sub)
        with np.errstate(divide="ignore"):
            return np.log(np.where(most == most.max(), weight * weights, 0.0))

    @remembered
    def _whole(self, columns: Widths) -> bool:
        """Whether all groups lie in tiles whole: then the rows of a band all hold equally many, however high it is."""
        return not any(strip.whole.partial for strip in self._strips(columns, columns))

    @remembered
    def _weights(self, columns: Widths, sub: Widths) -> tuple[Array, Array, Array, Array, float]:
        """(strips,) their weights, the most nonzeros per row of a band, and the numbers of their tiles: alike ones have one;
        where these are in `_tile_kinds`, and the sum of the weights."""
        strips = self._strips(columns, sub)
        weights = np.array([strip.weight for strip in strips], np.float64)
        kinds = {whole: at for at, whole in enumerate(dict.fromkeys(strip.whole for strip in strips))}
        most = np.array([self._heaviest(whole) for whole in kinds])
        at = np.array([kinds[strip.whole] for strip in strips])
        every = self._tile_kinds(columns)
        return weights, most[at], at, np.array([every[whole] for whole in kinds]), float(weights.sum())

    @remembered
    def _tile_kinds(self, columns: Widths) -> dict[BandClasses, int]:
        """What tiles of so many columns have of a band, numbered."""
        return {whole: at for at, whole in enumerate(dict.fromkeys(s.whole for s in self._strips(columns, columns)))}

    @remembered
    def _full_strips(self, columns: Widths, sub: Widths, height: int, inner: int) -> Array:
        """(strips,) logarithm of the chance that a band holds all that it can; with `inner`, of the share with an empty
        sub-tile."""
        kinds, at = self._filled_strips(columns, sub, inner > 0)
        chances = [kind.chance(height, inner) if kind else 0.0 for kind in kinds]
        if inner and 0.0 not in chances:
            found = np.log(chances)
        else:
            with np.errstate(divide="ignore"):
                found = np.log(chances)
        return (
            found[at] - self._full_strips_finite(columns, sub, 1 if self._whole(columns) else height)
            if inner
            else found[at]
        )

    @remembered
    def _full_strips_finite(self, columns: Widths, sub: Widths, height: int) -> Array:
        """The same of whole bands, 0 where they never do."""
        whole = self._full_strips(columns, sub, height, 0)
        return np.where(np.isfinite(whole), whole, 0.0)

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

    @remembered
    def _moments(self, classes: BandClasses, height: int) -> tuple[int, int, int, float, float]:
        """Of what a `_band` holds: the least and the most, what divides all, mean and variance."""
        x, p = self._band(classes, height, 0)
        mean = float(x @ p)
        return int(x[0]), int(x[-1]), int(np.gcd.reduce(x)), mean, float((x - mean) ** 2 @ p)

    @remembered
    def _of_tiles(self, layout: Lattice, columns: Widths, places: Places, sub: Widths) -> Array:
        """(points,) P(k) of all tiles, each as often as it has sub-tiles."""
        found: Array = self._transformed(layout, columns, [(places, sub)], False)[0]
        return found

    def _transformed(self, layout: Lattice, columns: Widths, asked: list[Asked], inside: bool) -> Array:
        """(asked, points) P(k), or with `inside` P(k and sub-tile empty), the mean over all sub-tiles."""
        sums, held, rows = list[_Sum](), list[Placed](), 0
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
                        apart = self._spectra_apart(columns, height, count, layout.step, layout.size)
                        factors.append((apart[order], whole, 0))
                sums.append(_Sum(number, band.weight, mine, product, factors, touched < 2))
        summed = self._summed(sums, placed(held, rows, layout.size, layout.step))
        found = np.zeros((len(asked), layout.size))
        for one, values in zip(sums, summed, strict=True):
            found[one.number] += one.weight * values
        every = [self._weights(columns, sub)[4] * sum([band.weight for band in places]) for places, sub in asked]
        found /= np.array(every)[:, None]
        first = layout.origin // layout.step % layout.size
        return np.concatenate([found[:, first:], found[:, :first]], axis=1)[:, : layout.points]

    @staticmethod
    def _summed(sums: list[_Sum], held: Array) -> list[Array]:
        """What the bands of these tiles hold together, from what some hold, (rows, places)."""
        products = [at for at, one in enumerate(sums) if one.factors]
        found = [None if one.factors else held[one.mixed.start] for one in sums]
        if products:
            spectra = np.fft.rfft(held, axis=1) if len(held) else held
            totals = np.fft.irfft(np.array([sums[at].product(spectra) for at in products]), held.shape[1], axis=1)
            for at, total in zip(products, totals, strict=True):
                found[at] = total
        return found

    @remembered
    def _inside_kinds(self, columns: Widths, sub: Widths, inner: int) -> tuple[Array, list[BandClasses]]:
        """(strips,) what their bands with so many rows of a sub-tile are like, and what there is of that."""
        every = [strip.inside.given(inner) for strip in self._strips(columns, sub)]
        kinds = {classes: at for at, classes in enumerate(dict.fromkeys(every))}
        return np.array([kinds[classes] for classes in every]), list(kinds)

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
        return gathered(self._shares(columns, sub, inner), height, inner, self.memory.values, self._joined)

    @remembered
    def _mixed_row(self, columns: Widths, sub: Widths, inner: int) -> tuple[Any, ...]:
        """`_mixed` for a height of 1, and the arrays in it."""
        mixed = self._mixed(columns, sub, 1, inner)
        return mixed, *(part for atoms, *_ in mixed for part in atoms)

    @remembered
    def _shares(self, columns: Widths, sub: Widths, inner: int) -> list[Share]:
        """What the bands of `_mixed` are made of: the kind of tile, footprints, and the share of these."""
        weights, _, whole, *_ = self._weights(columns, sub)
        shares: dict[tuple[int, BandClasses], float] = {}
        for strip, weight, at in zip(self._strips(columns, sub), weights.tolist(), whole.tolist(), strict=True):
            classes, chance = strip.inside.given(inner) if inner else strip.whole, 0.0
            if inner and classes.apart is not None:
                classes, one = classes.apart
                chance = weight * one**inner
                shares[at, strip.whole] = shares.get((at, strip.whole), 0.0) + chance
            shares[at, classes] = shares.get((at, classes), 0.0) + weight - chance
        return [(at, one, share, one.partial, one.certain) for (at, one), share in shares.items()]
