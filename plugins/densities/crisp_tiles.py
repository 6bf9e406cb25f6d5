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
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from sparsemap import Occupancy
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .atoms import Atoms, added, merged, powers, repeated, times
from .footprints import Bands, Classes, Columns, Strips, bands
from .hypergeometric import table

POINTS = 2048
"""The most occupancies of one tile."""
UNSEEN = 1e-15
"""Probability below which an occupancy is left out."""
EXPONENT = 40.0
"""exp(-40) = 4e-18 bounds the probability beyond the window of a transform."""
KEPT = 4 << 20
"""float64 that are remembered per tensor, 32 MB."""

hypergeometric = lru_cache(1 << 12)(table)


@attrs.frozen
class Layout:
    """The lattice of occupancies on which tiles of one size are transformed: `origin` + i * `step`, i < `points`."""

    origin: int
    step: int
    points: int


@attrs.frozen(eq=False)
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
    _memory: OrderedDict[Any, tuple[Any, int]] = attrs.field(factory=OrderedDict, init=False, repr=False)
    _size: list[int] = attrs.field(factory=lambda: [0], init=False, repr=False)

    @property
    def density(self) -> float:  # type: ignore[override]
        columns, groups = self.columns, -(-self.columns.count // self.columns.m)
        held = np.minimum(columns.width(np.arange(groups)), columns.n).sum()
        return float(self.keep / self.blocks * held / columns.count)

    # -- tiles

    def _parts(self, tile: Sequence[int]) -> tuple[int, tuple[int, ...]]:
        """Rows, and columns per rank of `Columns`."""
        cut = [min(int(t), s) for t, s in zip(tile, self.shape, strict=True)]
        return cut[0], (*cut[2:], cut[1])

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """P(k), as the module says."""
        return self._remember(("distribution", self._parts(tile)), lambda: self._distribution(*self._parts(tile)))

    def _distribution(self, rows: int, columns: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        layout = self._layout(rows, columns)
        p = self._transformed(rows, columns, rows, columns, layout, False)
        k = layout.origin + layout.step * np.arange(layout.points)
        k = np.minimum(k, int(self.largest((rows, columns[-1], *columns[:-1]))))
        some = p > UNSEEN
        k, p = k[some], p[some]
        if len(k) > 1 and k[-1] == k[-2]:  # the last point was beyond the largest occupancy
            k, p = np.delete(k, -2), np.append(p[:-2], p[-2] + p[-1])
        return k, p / p.sum()

    def empty(self, tile: tuple[int, ...]) -> float:
        """Every band is empty: the mean over kept blocks of the product of their being empty."""
        rows, columns = self._parts(tile)

        def make() -> float:
            found = total = 0.0
            for band, strip in itertools.product(self._bands(rows, rows), self._strips(columns, columns)):
                chance = 1.0
                for height, _, count in band.touched:
                    chance *= self._none_of(strip.inside, height) ** count
                weight = band.weight * strip.weight
                found, total = found + weight * chance, total + weight
            return found / total

        return self._remember(("empty", rows, columns), make)

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """P(sub-tile empty and k in the tile) / P(k), of all sub-tiles."""
        k = np.asarray(k)
        (rows, columns), (sub_rows, sub_columns) = self._parts(tile), self._parts(sub_tile)
        sub_rows = min(sub_rows, rows)
        sub_columns = tuple(min(s, t) for s, t in zip(sub_columns, columns, strict=True))
        if (rows, columns) == (sub_rows, sub_columns):
            return (k == 0).astype(np.float64)
        largest = self.largest(tile)
        if k.size == 1 and k.ravel()[0] == largest:
            full = self._empty_in_fullest(rows, columns, sub_rows, sub_columns, largest)
            if full is not None:
                return np.full(k.shape, full)

        def make() -> Array:
            layout = self._layout(rows, columns)
            both = self._transformed(rows, columns, sub_rows, sub_columns, layout, True)
            one = self._transformed(rows, columns, sub_rows, sub_columns, layout, False)
            known = one > UNSEEN / 2
            known_until = int(np.flatnonzero(known)[-1])
            found = np.where(known, np.clip(both / np.where(known, one, 1.0), 0.0, 1.0), 0.0)
            return found[: known_until + 1]

        shares = self._remember(("within", rows, columns, sub_rows, sub_columns), make)
        layout = self._layout(rows, columns)
        at = np.rint((k - layout.origin) / layout.step).astype(np.int64)
        return shares[np.clip(at, 0, len(shares) - 1)]

    def largest(self, tile: tuple[int, ...]) -> float:
        """The heaviest blocks that a band may keep, in every band."""
        rows, columns = self._parts(tile)

        def make() -> float:
            return float(max(
                sum(height * count for height, _, count in band.touched) * self._heaviest(strip.whole)
                for band, strip in itertools.product(self._bands(rows, rows), self._strips(columns, columns))
            ))  # fmt: skip

        return self._remember(("largest", rows, columns), make)

    def largest_stored(self, tile: tuple[int, ...], granule: tuple[int, ...]) -> float:
        """All words of the blocks that may be kept, where granules lie within blocks; otherwise each nonzero's granule."""
        (rows, columns), (high, wide) = self._parts(tile), self._parts(granule)
        words, grain, block = rows * math.prod(columns), high * math.prod(wide), self.columns.block
        within = self.columns.ranks[-1] % block == block % wide[-1] == self.block_rows % high == 0
        if within and math.prod(wide[:-1]) == 1:
            touched = max(sum(count for _, count in strip.whole) for strip in self._strips(columns, columns))
            return float(min(words, rows * min(columns[-1], block) * min(touched, self.keep)))
        return float(min(words, grain * self.largest(tile)))

    def draw(self, rng: np.random.Generator) -> Array:
        """Exactly `keep` blocks of every block row, and n words of every group of a kept block."""
        rows, (count, m) = self.shape[0], (self.columns.count, self.columns.m)
        chosen = rng.random((-(-rows // self.block_rows), self.blocks)).argsort(axis=1).argsort(axis=1) < self.keep
        kept = chosen.repeat(self.block_rows, axis=0)[:rows].repeat(self.columns.block, axis=1)[:, :count]
        order = rng.random((rows, -(-count // m) * m))
        order[:, count:] = 1.0  # beyond the last group: never among the first
        words = order.reshape(rows, -1, m).argsort(axis=2).argsort(axis=2) < self.columns.n
        drawn = words.reshape(rows, -1)[:, :count] & kept
        return np.ascontiguousarray(np.moveaxis(drawn.reshape(rows, *self.columns.ranks), -1, 1))

    # -- bands

    def _bands(self, rows: int, sub: int) -> list[Bands]:
        key = "bands", rows, sub
        return self._remember(key, lambda: bands(self.shape[0], self.block_rows, rows, sub))

    def _strips(self, columns: tuple[int, ...], sub: tuple[int, ...]) -> list[Strips]:
        return self._remember(("strips", columns, sub), lambda: self.columns.strips(columns, sub))

    def _none_of(self, classes: Classes, height: int) -> float:
        """Probability that a band of so many rows is empty, given by footprints whose sub-tile is all of the tile."""
        x, p = self._band(classes, height, height)
        return float(p[x == 0].sum())

    def _heaviest(self, classes: Classes) -> int:
        """The most nonzeros per row of a band."""
        left, found = self.keep, 0
        for weight, count in sorted(((_most(f), c) for f, c in classes), reverse=True):
            found += weight * min(count, left)
            left -= min(count, left)
        return found

    def _band(self, classes: Classes, height: int, inner: int) -> Atoms:
        """Occupancies of a band of so many rows; in `inner` of them the sub-tile is empty, or the probability is lost.

        Footprints are drawn one after the other, each hypergeometric given the kept blocks that are left.
        """
        key: tuple[Any, ...]
        if not any(f.partial for f, _ in classes):
            plain = all(f.empty in (0.0, 1.0) for f, _ in classes)
            key = ("band", classes, 0 if plain else inner)
            x, p = self._remember(key, lambda: self._joined(classes, 1, inner))
            return x * height, p
        return self._remember(("band", classes, height, inner), lambda: self._joined(classes, height, inner))

    def _joined(self, classes: Classes, height: int, inner: int) -> Atoms:
        left, start = self.blocks, (np.zeros(1, np.int64), np.ones(1))
        states: dict[int, list[Atoms]] = {0: [start]}
        for place, (footprint, count) in enumerate(classes):
            last = place == len(classes) - 1
            after: dict[int, list[Atoms]] = {}
            for taken, parts in states.items():
                x, p = parts[0] if len(parts) == 1 else merged(*map(np.concatenate, zip(*parts, strict=True)))
                i, chance = hypergeometric(left, self.keep - taken, count)
                if footprint.empty == 0.0:
                    i, chance = i[i == 0], chance[i == 0]
                if not footprint.partial:
                    chance = chance * np.power(footprint.empty, inner * i)
                    if last:
                        x = np.add.outer(x, i * (footprint.fixed * height)).ravel()
                        after.setdefault(0, []).append((x, np.multiply.outer(p, chance).ravel()))
                        continue
                    one = [(j * (footprint.fixed * height), np.ones(1)) for j in i.tolist()]
                else:
                    one = powers(_block(footprint, height, inner), i.tolist())
                for j, c, (y, q) in zip(i.tolist(), chance.tolist(), one, strict=True):
                    after.setdefault(0 if last else taken + j, []).append(added((x, p * c), (np.atleast_1d(y), q)))
            states, left = after, left - count
        return merged(*map(np.concatenate, zip(*states.get(0, [(start[0], np.zeros(1))]), strict=True)))

    def _empty_in_fullest(
        self, rows: int, columns: tuple[int, ...], sub_rows: int, sub_columns: tuple[int, ...], largest: float
    ) -> float | None:
        """`empty_within` of tiles that hold all that they can; None where that is too improbable to tell."""
        found = total = 0.0
        for band, strip in itertools.product(self._bands(rows, sub_rows), self._strips(columns, sub_columns)):
            height = sum(h * c for h, c in band.heights) + sum(h * c for h, _, c in band.touched)
            if height * self._heaviest(strip.whole) < largest:
                continue
            most = self._heaviest(strip.whole)
            rest = math.prod(self._top(strip.whole, h, 0, most) ** count for h, count in band.heights)
            one = rest * math.prod(self._top(strip.whole, h, 0, most) ** count for h, _, count in band.touched)
            both = rest * math.prod(self._top(strip.inside, h, i, most) ** count for h, i, count in band.touched)
            found, total = found + band.weight * strip.weight * both, total + band.weight * strip.weight * one
        return found / total if total > 0.0 else None

    def _top(self, classes: Classes, height: int, inner: int, heaviest: int) -> float:
        """Probability that a band holds `heaviest` nonzeros per row."""
        x, p = self._band(classes, height, inner)
        return float(p[x == heaviest * height].sum())

    # -- transforms

    def _layout(self, rows: int, columns: tuple[int, ...]) -> Layout:
        return self._remember(("layout", rows, columns), lambda: self._lattice(rows, columns))

    def _lattice(self, rows: int, columns: tuple[int, ...]) -> Layout:
        """All occupancies within the reach of Bernstein's bound: exp(-t^2 / (2 (variance + t largest / 3))) = exp(-40)."""
        low, high, step = math.inf, -math.inf, 0
        for band, strip in itertools.product(self._bands(rows, rows), self._strips(columns, columns)):
            mean = variance = least = most = 0.0
            one = 0
            for height, _, count in band.touched:
                x, p = self._band(strip.whole, height, 0)
                middle = float(x @ p)
                mean, variance = mean + count * middle, variance + count * float((x - middle) ** 2 @ p)
                least, most = least + count * int(x[0]), most + count * int(x[-1])
                step = math.gcd(step, int(np.gcd.reduce(x)))
                one = max(one, height * max(_most(footprint) for footprint, _ in strip.whole))
            third = EXPONENT * one / 3
            reach = third + math.sqrt(third**2 + 2 * EXPONENT * variance)
            low, high = min(low, max(least, mean - reach)), max(high, min(most, mean + reach))
        step = max(step, 1)
        step *= max(1, -(-int(high - low) // (step * (POINTS - 2))))
        origin = int(low) // step * step
        return Layout(origin, step, -(-(math.ceil(high) - origin) // step) + 1)

    def _transformed(
        self, rows: int, columns: tuple[int, ...], sub_rows: int, sub_columns: tuple[int, ...], layout: Layout,
        inside: bool,
    ) -> Array:  # fmt: skip
        """(points,) P(k), or with `inside` P(k and sub-tile empty), the mean over all sub-tiles."""
        strips = self._strips(columns, sub_columns)
        weights = np.array([strip.weight for strip in strips], np.float64)[:, None]
        total: Any = 0.0
        for band in self._bands(rows, sub_rows):
            product: Any = band.weight
            for height, count in band.heights:
                product = product * self._spectra(columns, sub_columns, height, 0, False, layout, count)
            for height, inner, count in band.touched:
                product = product * self._spectra(columns, sub_columns, height, inner, inside, layout, count)
            total = total + (weights * product).sum(axis=0)
        number = weights.sum() * sum(band.weight for band in self._bands(rows, sub_rows))
        size = 2 * (len(total) - 1)
        found = np.fft.irfft(total, size) / number
        return np.take(found, (layout.origin // layout.step + np.arange(layout.points)) % size)

    def _spectra(
        self, columns: tuple[int, ...], sub: tuple[int, ...], height: int, inner: int, inside: bool, layout: Layout,
        count: int,
    ) -> Array:  # fmt: skip
        """(strips, frequencies): transforms of so many bands alike."""
        size = max(8, 1 << (layout.points - 1).bit_length())

        def make() -> Array:
            found = np.zeros((len(strips), size))
            for row, strip in zip(found, strips, strict=True):
                x, p = self._band(strip.inside if inside else strip.whole, height, inner if inside else 0)
                place, rest = np.divmod(x, layout.step)
                share = rest / layout.step
                row += np.bincount(place % size, p * (1.0 - share), size)
                if rest.any():
                    row += np.bincount((place + 1) % size, p * share, size)
            return np.fft.rfft(found, axis=1)

        strips = self._strips(columns, sub)
        key = "spectra", columns, sub, height, inner if inside else 0, inside, layout.step, size
        once = self._remember(key, make)
        return (
            once
            if count == 1
            else self._remember((*key, count), lambda: repeated(once, count, np.multiply, np.ones_like(once)))
        )

    def _remember(self, key: Any, make: Callable[[], Any]) -> Any:
        """The value made once for a key, until too much is remembered."""
        found = self._memory.get(key)
        if found is None:
            value = make()
            parts = value if isinstance(value, tuple) else (value,)
            found = value, 8 + sum(part.size for part in parts if isinstance(part, np.ndarray))
            self._memory[key] = found
            self._size[0] += found[1]
            while self._size[0] > KEPT:
                self._size[0] -= self._memory.popitem(last=False)[1][1]
        return found[0]


def _most(footprint: Any) -> int:
    """The most nonzeros of a footprint, per row."""
    return footprint.fixed + sum(len(p) - 1 for p in footprint.partial)


def _block(footprint: Any, height: int, inner: int) -> Atoms:
    """Occupancies of one kept block, as `CrispOccupancy._band` has them."""
    start: Atoms = (np.full(1, footprint.fixed * height), np.full(1, footprint.empty**inner))
    for groups, count in ((footprint.partial, height - inner), (footprint.partial_empty, inner)):
        if count:
            row: Atoms = (np.zeros(1, np.int64), np.ones(1))
            for p in groups:
                row = added(row, (np.arange(len(p)), np.array(p)))
            start = added(start, times(row, count))
    return start
