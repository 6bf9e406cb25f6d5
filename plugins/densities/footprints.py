"""Which blocks and N:M groups the aligned tiles of a matrix touch: the geometry behind the density `crisp`.

A matrix is cut in blocks, its rows in groups of `m` neighbouring columns. A tile cuts out of each *band*, that is of each
block row it touches, the same columns. What it holds of one block is a *footprint*; tiles with the same footprints hold
the same distribution of nonzeros, so that few of them stand for all.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from math import comb
from typing import Any, NamedTuple

import attrs
import numpy as np

from sparsemap.inner.arrays import power, powers
from sparsemap.pieces.contracts.base import Array

from .atoms import Atoms, added
from .common import Memory, remembered


@attrs.frozen(eq=False, slots=False)
class Footprint:
    """What a tile holds of one kept block, per row, and how a sub-tile of it may be empty; alike ones are one object
    (`_interned`)."""

    fixed: int
    """Nonzeros of the groups that lie in the tile whole."""
    partial: tuple[tuple[float, ...], ...] = ()
    """Of each other group, the probability of 0, 1, .. nonzeros."""
    empty: float = 1.0
    """Of a row with a sub-tile: probability that its part of the whole groups is empty .."""
    partial_empty: tuple[tuple[float, ...], ...] = ()
    """.. and `partial` with the sub-tile's part empty, in the same order."""

    @cached_property
    def most(self) -> int:
        """The most nonzeros, per row."""
        return self.fixed + sum(len(p) - 1 for p in self.partial)

    @cached_property
    def order(self) -> tuple[Any, ...]:
        """What footprints are sorted by."""
        return self.fixed, self.partial, self.empty, self.partial_empty

    @cached_property
    def untouched(self) -> bool:
        """Whether the sub-tile has nothing of it."""
        return self.empty == 1.0 and self.partial_empty == self.partial

    @cached_property
    def chance(self) -> float:
        """Of a row with a sub-tile: probability that it is empty in a kept block."""
        return self.empty * math.prod(map(sum, self.partial_empty))

    def full(self, height: int, inner: int) -> float:
        """Probability that a kept block of so many rows holds all that it can, with the sub-tile empty in `inner` of them."""
        outside, inside = self.fullest
        rows: float = power(outside, height - inner)
        return rows * power(inside, inner) if inner else rows

    @cached_property
    def fullest(self) -> tuple[float, float]:
        """Probability that a row holds all that it can; of one with a sub-tile, with that empty."""
        pairs = zip(self.partial, self.partial_empty, strict=True)
        return math.prod(p[-1] for p in self.partial), self.empty * math.prod(e[len(p) - 1] for p, e in pairs)

    @lru_cache(1 << 12)  # noqa: B019 (of few footprints)
    def powers(self, inner: int, count: int) -> Array:
        """(count + 1,) probability that the sub-tile is empty in `inner` rows of 0, 1, .. kept blocks, without `partial`."""
        return powers(self.empty, inner * np.arange(count + 1))

    @lru_cache(1 << 12)  # noqa: B019 (of few footprints)
    def blocks(self, height: int, inner: int, count: int) -> list[Atoms]:
        """Occupancies of 0, 1, .. count kept blocks of so many rows; in `inner` of them the sub-tile is empty, or the
        probability is lost."""
        x, p = added(_rows(self.partial, height - inner), _rows(self.partial_empty, inner))
        one = x + self.fixed * height, p * power(self.empty, inner)
        return list(accumulate([one] * count, added, initial=(np.zeros(1, np.int64), np.ones(1))))


@lru_cache(1 << 12)
def _rows(groups: tuple[tuple[float, ...], ...], count: int) -> Atoms:
    """Occupancies of so many rows with these groups."""
    if count > 1:
        return added(_rows(groups, count // 2), _rows(groups, count - count // 2))
    row: Atoms = (np.zeros(1, np.int64), np.ones(1))
    for p in groups if count else ():
        row = added(row, (np.arange(len(p)), np.array(p)))
    return row


NEVER = Footprint(0, (), 0.0)
"""A kept block in which the sub-tile is never empty."""


class BandClasses(tuple[tuple[Footprint, int], ...]):
    """Footprints, and in how many blocks of a band each occurs; those that are alike are one object (`interned`)."""

    __eq__, __hash__ = object.__eq__, object.__hash__

    @cached_property
    def partial(self) -> bool:
        """Whether some of a footprint's groups are not in the tile whole."""
        return any(footprint.partial for footprint, _ in self)

    @cached_property
    def most(self) -> int:
        """The most nonzeros of a block, per row."""
        return max(footprint.most for footprint, _ in self)

    @cached_property
    def certain(self) -> bool:
        """Whether the sub-tile is empty in no kept block that it touches, in however many rows."""
        return all(footprint is NEVER or footprint.untouched for footprint, _ in self)

    @cached_property
    def apart(self) -> tuple[BandClasses, float] | None:
        """If the sub-tile lies in whole groups of one block: the band with this block never kept, and the chance that a row of
        the sub-tile is empty where it is; what else the band holds does not depend on that."""
        some = [(footprint, count) for footprint, count in self if not footprint.untouched]
        (footprint, count), *others = some or [(NEVER, 0)]
        if others or count != 1 or footprint is NEVER or footprint.partial_empty != footprint.partial:
            return None
        classes = Counter({one: n for one, n in self if one is not footprint}) + Counter([NEVER])
        return _rarest_first(classes), footprint.empty

    @cached_property
    def rarest(self) -> float:
        """The least chance that a row with a sub-tile is empty in a kept block, of blocks that may be empty."""
        return min((footprint.chance for footprint, _ in self if footprint is not NEVER), default=1.0)

    def given(self, inner: int) -> BandClasses:
        """The same for `inner` rows with a sub-tile: where it is empty once in 1e18 times, it never is."""
        if power(self.rarest, inner) > 1e-18:
            return self
        some = Counter[Footprint]()
        for footprint, count in self:
            some[footprint if power(footprint.chance, inner) > 1e-18 else NEVER] += count
        return _rarest_first(some)


interned = lru_cache(1 << 14)(BandClasses)


def _rarest_first(counts: Counter[Footprint]) -> BandClasses:
    return interned(tuple(sorted(counts.items(), key=lambda item: (item[1], item[0].order))))


class Bands(NamedTuple):
    """The rows of a tile with a sub-tile in it."""

    weight: int
    """Sub-tiles that lie so, of all tiles."""
    heights: tuple[tuple[int, int, int], ...]
    """(rows, 0, bands) where the sub-tile is not .."""
    touched: tuple[tuple[int, int, int], ...]
    """.. and (rows, rows of the sub-tile, bands) where it is."""

    @property
    def rows(self) -> int:
        return sum([height * count for height, _, count in (*self.heights, *self.touched)])


class Strips(NamedTuple):
    """The columns of a tile with a sub-tile in it."""

    weight: int
    whole: BandClasses
    """Footprints of the tile in a band without the sub-tile, .."""
    inside: BandClasses
    """.. and with it."""


def bands(rows: int, block: int, tile: int, sub: int) -> tuple[Bands, ...]:
    """Distinct tiles of so many rows, with their sub-tiles."""

    def even(part: int) -> bool:
        return part % block == 0 or block % part == 0

    if rows % tile == tile % sub == rows % block == 0 and even(tile) and even(sub):
        height, count = min(tile, block), max(1, tile // block)
        inner = max(1, sub // block)
        rest = ((height, 0, count - inner),) if count > inner else ()
        return (Bands(1, rest, ((height, min(sub, block), inner),)),)
    period = math.lcm(tile, block)
    found: Counter[tuple] = Counter()
    starts = np.arange(0, period if rows % period == 0 else rows, tile)
    lying = Counter(zip((starts % block).tolist(), np.minimum(tile, rows - starts).tolist(), strict=True))
    for (start, length), tiles in lying.items():  # tiles that cut blocks alike
        stop = start + length
        edges = range(start // block * block, stop, block)
        heights = Counter(min(stop, edge + block) - max(start, edge) for edge in edges)
        lows = np.arange(start, stop, sub)
        highs = np.minimum(lows + sub, stop)
        cut = np.maximum(start - lows // block * block, 0), np.maximum(-(-highs // block) * block - stop, 0)
        alike = ((lows % block * (sub + 1) + highs - lows) * block + cut[0]) * block + cut[1]
        _, first, times = np.unique(alike, return_index=True, return_counts=True)
        for low, many in zip(lows[first].tolist(), times.tolist(), strict=True):  # sub-tiles that cut blocks alike
            high, pairs, out = min(low + sub, stop), Counter[tuple[int, int]](), Counter(heights)
            for edge in range(low // block * block, high, block):
                a, b = max(start, edge), min(stop, edge + block)
                pairs[b - a, min(b, high) - max(a, low)] += 1
                out[b - a] -= 1
            apart = tuple(sorted((h, 0, count) for h, count in out.items() if count))
            found[apart, tuple(sorted((h, inner, count) for (h, inner), count in pairs.items()))] += many * tiles
    return tuple(Bands(weight, *key) for key, weight in found.items())


_MIX = np.uint64(0x9E3779B97F4A7C15)


def _mixed(numbers: Array) -> Array:
    """(n,) uint64: numbers scattered so that sums of them tell multisets apart (splitmix64)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) + _MIX
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _edges(keys: Array) -> Array:
    """Where runs of equal neighbours start, and the end of the last one."""
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]]))


def _ranges(starts: Array, sizes: Array) -> Array:
    """start, start + 1, .. of each, so many."""
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def _sums(scattered: Array, edges: Array) -> Array:
    """A number for the multiset of each run."""
    return np.add.reduceat(_mixed(scattered), edges[:-1])


@attrs.frozen(slots=False)
class Columns:
    """The columns of a matrix, a product of `ranks` (the last one fastest), in blocks and groups."""

    ranks: tuple[int, ...]
    block: int
    n: int
    m: int
    known: dict[tuple[Sequence[int], Sequence[int]], list[Strips]] = attrs.field(
        factory=dict, init=False, repr=False, eq=False
    )
    """What `strips` has found."""
    wholes: dict[int, BandClasses] = attrs.field(factory=dict, init=False, repr=False, eq=False)
    """Of tiles without sub-tiles, by the number of what they have of blocks."""
    memory: Memory = attrs.field(factory=lambda: Memory(1 << 18), init=False, repr=False, eq=False)
    """What `_tiles` has found last."""

    @cached_property
    def count(self) -> int:
        return math.prod(self.ranks)

    def width(self, group: Array) -> Array:
        """Columns of a group: the last one may be short."""
        return np.minimum(self.m, self.count - group * self.m)

    def strips(self, tile: Sequence[int], sub: Sequence[int]) -> list[Strips]:
        """Distinct tiles of so many columns per rank, with their sub-tiles; remembered."""
        if (tile, sub) not in self.known:
            self.known[tile, sub] = self._strips(tile, sub)
        return self.known[tile, sub]

    def _strips(self, tile: Sequence[int], sub: Sequence[int]) -> list[Strips]:
        groups = -(-self.count // self.m)
        owner, group, keys, words, of_group, edges, kind, place, footprint, tiles = self._tiles(tile)
        part = self._parts(tile, sub)
        # groups of sub-tiles, which are alike if they and their tiles are
        kept = part >= 0
        pairs, at, taken = np.unique((part * groups + group)[kept], return_index=True, return_counts=True)
        tile_of, (part_of, group_of) = owner[kept][at], np.divmod(pairs, groups)
        mine = np.searchsorted(keys, tile_of * groups + group_of)
        blocks_of = _edges(self._block(part_of, group_of))
        first = blocks_of[:-1]
        whole = np.searchsorted(place, self._block(tile_of, group_of)[first])
        inner = _sums(kind[mine] * (self.m + 1) + taken + (1 << 32), blocks_of) + _mixed(footprint[whole])
        parts = _edges(part_of[first])
        first = first[parts[:-1]]
        alike = _sums(inner, parts) + _mixed(tiles[tile_of[first]] + _MIX)
        _, one, weight = np.unique(alike, return_index=True, return_counts=True)
        # one tile of each kind, with all its groups
        first, stop = first[one], np.append(first[1:], len(pairs))[one]
        of = tile_of[first]
        low, sizes = edges[of], np.diff(edges)[of]
        row, strip, some = _ranges(low, sizes), np.repeat(np.arange(len(one)), sizes), _ranges(first, stop - first)
        inside = np.zeros(len(row), np.int64)
        inside[np.repeat(np.cumsum(sizes) - sizes - low, stop - first) + mine[some]] = taken[some]
        kinds, known = tiles[of].tolist(), self.wholes
        new = np.isin(strip, list({number: at for at, number in enumerate(kinds) if number not in known}.values()))
        for i, classes in self._classes(strip[new], of_group[row[new]], words[row[new]], np.zeros_like(inside[new])):
            known[kinds[i]] = classes
        every = self._classes(strip, of_group[row], words[row], inside)
        return [Strips(int(weight[i]), known[kinds[i]], classes) for i, classes in every]

    def _block(self, number: Array, group: Array) -> Array:
        """A number for the block of a group, in this tile or sub-tile."""
        return number * -(-self.count // self.m) + group * self.m // self.block

    @remembered
    def _tiles(self, tile: Sequence[int]) -> tuple[Array, ...]:
        """Of columns, their tile, numbered from 0, and group; of the groups of tiles, their keys, columns and group, where tiles
        begin and end, and a number for what is in the tile; of the blocks of tiles, their key and such a number; of tiles, the
        same."""
        spans, _ = self._spans(tile, tile)
        column = owner = np.zeros(1, np.int64)
        for size, span, t in zip(self.ranks, spans, tile, strict=True):
            i = np.arange(span)
            column = (column[:, None] * size + i).ravel()
            owner = (owner[:, None] * -(-span // t) + i // t).ravel()
        group, groups = column // self.m, -(-self.count // self.m)
        keys, words = np.unique(owner * groups + group, return_counts=True)
        of_tile, of_group = np.divmod(keys, groups)
        kind = words * (self.m + 1) + self.width(of_group)
        place = self._block(of_tile, of_group)
        blocks = _edges(place)
        footprint = _sums(kind, blocks)
        tiles = _sums(footprint, _edges(of_tile[blocks[:-1]]))
        return owner, group, keys, words, of_group, _edges(of_tile), kind, place[blocks[:-1]], footprint, tiles

    def _parts(self, tile: Sequence[int], sub: Sequence[int]) -> Array:
        """Of columns, their sub-tile, -1 where another one stands for theirs."""
        part, seen = np.zeros(1, np.int64), np.ones(1, bool)
        for span, inner, t, s in zip(*self._spans(tile, sub), tile, sub, strict=True):
            i = np.arange(span)
            part = (part[:, None] * (-(-span // t) * -(-t // s)) + i // t * -(-t // s) + i % t // s).ravel()
            seen = (seen[:, None] & (i < inner)).ravel()
        return np.where(seen, part, -1)

    def _spans(self, tile: Sequence[int], sub: Sequence[int]) -> tuple[list[int], list[int]]:
        """Columns per rank after which tiles repeat, as far as blocks do, and sizes divide; and sub-tiles."""
        spans, inner_spans = list(self.ranks), list(self.ranks)
        last = len(spans) - 1
        if spans[last] % self.block == 0:  # no block reaches over a row of the last rank
            for rank, (size, t, s) in enumerate(zip(self.ranks, tile, sub, strict=True)):
                step = self.block if rank == last else 1
                if size % math.lcm(t, step) == 0:
                    spans[rank] = inner_spans[rank] = math.lcm(t, step)
                    if t % step == 0 and t % math.lcm(s, step) == 0:
                        inner_spans[rank] = math.lcm(s, step)
        return spans, inner_spans

    def _classes(self, owner: Array, group: Array, inside: Array, taken: Array) -> list[tuple[int, BandClasses]]:
        """Owners of groups, ascending, and their footprints: `inside` columns of a group are in the tile, `taken` of these in
        the sub-tile."""
        if not len(owner):
            return []
        kinds = np.stack([inside, self.width(group), taken], axis=1)
        edges = _edges(owner * self.count + group * self.m // self.block)
        sums = _sums(kinds @ [(self.m + 1) ** 2, self.m + 1, 1], edges)
        _, one, kind = np.unique(sums, return_index=True, return_inverse=True)
        blocks = [sorted(map(tuple, kinds[edges[i] : edges[i + 1]].tolist())) for i in one.tolist()]
        footprints = [_footprint(tuple(block), self.n) for block in blocks]
        pairs, counts = np.unique(owner[edges[:-1]] * len(one) + kind, return_counts=True)
        total = defaultdict[int, Counter[Footprint]](Counter)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            total[pair // len(one)][footprints[pair % len(one)]] += count
        return [(at, _rarest_first(counts)) for at, counts in total.items()]


_interned = lru_cache(1 << 14)(Footprint)


@lru_cache(1 << 12)
def _footprint(groups: tuple[tuple[int, ...], ...], n: int) -> Footprint:
    """From the groups of a block: columns in the tile, columns at all, and columns in the sub-tile, ascending."""
    fixed, empty = 0, 1.0
    partial, partial_empty = [], []
    for (inside, width, taken), count in Counter(groups).items():
        nonzeros = min(n, width)
        ways = comb(width, nonzeros)
        if inside == width:
            fixed += count * nonzeros
            empty *= power(comb(width - taken, nonzeros) / ways, count)
            continue
        free = [comb(width - inside, nonzeros - x) / ways for x in range(min(inside, nonzeros) + 1)]
        partial += [tuple(f * comb(inside, x) for x, f in enumerate(free))] * count
        partial_empty += [tuple(f * comb(inside - taken, x) for x, f in enumerate(free))] * count
    if empty == 0.0 or any(sum(p) == 0.0 for p in partial_empty):
        return NEVER
    return _interned(fixed, tuple(partial), empty, tuple(partial_empty))
