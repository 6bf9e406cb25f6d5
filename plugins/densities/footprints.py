"""Blocks and N:M groups touched by the aligned tiles of a matrix: the geometry of the density `crisp`.

A matrix is cut into blocks, and its rows into groups of `m` neighbouring columns. A tile covers the same columns in
each *band*, the part of a block row inside the tile. The part of one block inside a tile is a *footprint*. Tiles with
equal footprints have the same distribution of nonzeros, so a few tiles stand for all."""

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
    """One kept block inside a tile, per row, with the probability of an empty sub-tile; equal ones are one object."""

    fixed: int
    """Nonzeros of the groups entirely inside the tile."""
    partial: tuple[tuple[float, ...], ...] = ()
    """Per cut group, the probabilities of 0, 1, .. nonzeros."""
    empty: float = 1.0
    """For a row with a sub-tile: probability of no nonzero in the sub-tile's part of the whole groups."""
    partial_empty: tuple[tuple[float, ...], ...] = ()
    """`partial` jointly with the sub-tile's part being empty, in the same order."""

    @cached_property
    def most(self) -> int:
        """Largest number of nonzeros per row."""
        return self.fixed + sum(len(p) - 1 for p in self.partial)

    @cached_property
    def order(self) -> tuple[Any, ...]:
        """Sort key of footprints."""
        return self.fixed, self.partial, self.empty, self.partial_empty

    @cached_property
    def untouched(self) -> bool:
        """Whether the sub-tile lies entirely outside the footprint."""
        return self.empty == 1.0 and self.partial_empty == self.partial

    @cached_property
    def chance(self) -> float:
        """For a row with a sub-tile: probability of an empty sub-tile in a kept block."""
        return self.empty * math.prod(map(sum, self.partial_empty))

    def full(self, height: int, inner: int) -> float:
        """Probability of a full kept block of `height` rows, with the sub-tile empty in `inner` rows."""
        outside, inside = self.fullest
        rows: float = power(outside, height - inner)
        return rows * power(inside, inner) if inner else rows

    @cached_property
    def fullest(self) -> tuple[float, float]:
        """Probability of a row being as full as possible; for a row with a sub-tile, jointly with an empty sub-tile."""
        pairs = zip(self.partial, self.partial_empty, strict=True)
        return math.prod(p[-1] for p in self.partial), self.empty * math.prod(e[len(p) - 1] for p, e in pairs)

    @lru_cache(1 << 12)  # noqa: B019 (of few footprints)
    def powers(self, inner: int, count: int) -> Array:
        """(count + 1,) probability of an empty sub-tile in `inner` rows of 0, 1, .. kept blocks, without `partial`."""
        return powers(self.empty, inner * np.arange(count + 1))

    @lru_cache(1 << 12)  # noqa: B019 (of few footprints)
    def blocks(self, height: int, inner: int, count: int) -> list[Atoms]:
        """Occupancies of 0 .. `count` kept blocks of `height` rows; only with `inner` empty rows of the sub-tile."""
        x, p = added(_rows(self.partial, height - inner), _rows(self.partial_empty, inner))
        one = x + self.fixed * height, p * power(self.empty, inner)
        return list(accumulate([one] * count, added, initial=(np.zeros(1, np.int64), np.ones(1))))


@lru_cache(1 << 12)
def _rows(groups: tuple[tuple[float, ...], ...], count: int) -> Atoms:
    """Occupancies of `count` rows with these groups."""
    if count > 1:
        return added(_rows(groups, count // 2), _rows(groups, count - count // 2))
    row: Atoms = (np.zeros(1, np.int64), np.ones(1))
    for p in groups if count else ():
        row = added(row, (np.arange(len(p)), np.array(p)))
    return row


NEVER = Footprint(0, (), 0.0)
"""A kept block with a never-empty sub-tile."""


class BandClasses(tuple[tuple[Footprint, int], ...]):
    """Footprints, and the number of blocks of a band with each; equal lists are the same object (`interned`)."""

    __eq__, __hash__ = object.__eq__, object.__hash__

    @cached_property
    def partial(self) -> bool:
        """Whether some footprint has groups cut by the tile."""
        return any(footprint.partial for footprint, _ in self)

    @cached_property
    def most(self) -> int:
        """Largest number of nonzeros of a block, per row."""
        return max(footprint.most for footprint, _ in self)

    @cached_property
    def certain(self) -> bool:
        """Whether the sub-tile is never empty in a kept block it touches, for any number of rows."""
        return all(footprint is NEVER or footprint.untouched for footprint, _ in self)

    @cached_property
    def apart(self) -> tuple[BandClasses, float] | None:
        """For a sub-tile in whole groups of one block: the band without it, and P(empty sub-tile row) if kept.

        The band's other contents are independent of this event."""
        some = [(footprint, count) for footprint, count in self if not footprint.untouched]
        (footprint, count), *others = some or [(NEVER, 0)]
        if others or count != 1 or footprint is NEVER or footprint.partial_empty != footprint.partial:
            return None
        classes = Counter({one: n for one, n in self if one is not footprint}) + Counter([NEVER])
        return _rarest_first(classes), footprint.empty

    @cached_property
    def rarest(self) -> float:
        """Smallest probability of an empty sub-tile row in a kept block, among blocks possibly empty there."""
        return min((footprint.chance for footprint, _ in self if footprint is not NEVER), default=1.0)

    def given(self, inner: int) -> BandClasses:
        """The classes for `inner` rows with a sub-tile; a probability below 1e-18 of an empty sub-tile counts as never."""
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
    """The rows of a tile containing a sub-tile."""

    weight: int
    """Number of sub-tiles in this position, over all tiles."""
    heights: tuple[tuple[int, int, int], ...]
    """(rows, 0, bands) outside the sub-tile."""
    touched: tuple[tuple[int, int, int], ...]
    """(rows, rows of the sub-tile, bands) with the sub-tile."""

    @property
    def rows(self) -> int:
        return sum([height * count for height, _, count in (*self.heights, *self.touched)])


class Strips(NamedTuple):
    """The columns of a tile containing a sub-tile."""

    weight: int
    whole: BandClasses
    """Footprints of the tile in a band without the sub-tile."""
    inside: BandClasses
    """Footprints of the tile in a band with the sub-tile."""


def bands(rows: int, block: int, tile: int, sub: int) -> tuple[Bands, ...]:
    """Distinct positions of tiles of `tile` rows with sub-tiles of `sub` rows."""

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
    """(n,) uint64: numbers scattered so that their sums distinguish multisets (splitmix64)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) + _MIX
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _edges(keys: Array) -> Array:
    """Starts of runs of equal neighbours, and the end of the last run."""
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]]))


def _ranges(starts: Array, sizes: Array) -> Array:
    """Concatenated ranges start, start + 1, .. of the given sizes."""
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
    """Cached results of `strips`."""
    wholes: dict[int, BandClasses] = attrs.field(factory=dict, init=False, repr=False, eq=False)
    """Footprints of tiles without sub-tiles, by the number of their contents."""
    memory: Memory = attrs.field(factory=lambda: Memory(1 << 18), init=False, repr=False, eq=False)
    """Recent results of `_tiles`."""

    @cached_property
    def count(self) -> int:
        return math.prod(self.ranks)

    def width(self, group: Array) -> Array:
        """Columns of a group; the last group may be short."""
        return np.minimum(self.m, self.count - group * self.m)

    def strips(self, tile: Sequence[int], sub: Sequence[int]) -> list[Strips]:
        """Distinct positions of tiles of `tile` columns per rank with sub-tiles of `sub` columns; cached."""
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
        """A number for the block of a group, within a tile or sub-tile."""
        return number * -(-self.count // self.m) + group * self.m // self.block

    @remembered
    def _tiles(self, tile: Sequence[int]) -> tuple[Array, ...]:
        """Groups, blocks and tiles of the columns.

        Per column: tile, numbered from 0, and group. Per group of a tile: key, columns, group; starts and ends of tiles;
        a number for the contents. Per block of a tile: key and number. Per tile: number."""
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
        """Sub-tile of each column; -1 where another sub-tile stands for the column's."""
        part, seen = np.zeros(1, np.int64), np.ones(1, bool)
        for span, inner, t, s in zip(*self._spans(tile, sub), tile, sub, strict=True):
            i = np.arange(span)
            part = (part[:, None] * (-(-span // t) * -(-t // s)) + i // t * -(-t // s) + i % t // s).ravel()
            seen = (seen[:, None] & (i < inner)).ravel()
        return np.where(seen, part, -1)

    def _spans(self, tile: Sequence[int], sub: Sequence[int]) -> tuple[list[int], list[int]]:
        """Columns per rank after which tiles, and sub-tiles, repeat relative to blocks, if sizes divide."""
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
        """Owners of groups, ascending, with footprints: `inside` columns in the tile, `taken` in the sub-tile."""
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
    """Footprint of a block from its groups: columns in the tile, all columns, and columns in the sub-tile, ascending."""
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
