"""What levels exchange whatever the tiles: a part of the lower bound (`bound`).

A grid has all tiles of a level: extents that divide the sizes. Along every dimension a tile of a level is a divisor of that
of the next outer one, so the least of an inner level inside a given outer tile is the least over the divisors of its extents.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from sparsemap.inner.arrays import log2
from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array, Rows
from sparsemap.primes import divisors, prime_factors

from .bound_words import LeastWords
from .inner import functions
from .layout import Layout

MOST_TILES = 1 << 18
"""Where a problem has more tiles, or ways to share a fan-out, none is tried: this bounds time and memory."""
MOST_MARKS = 1 << 22
"""Pairs of a tile and a way to share a fan-out that are tried; where there are more, tiles of fewer words are."""

MOST_WAYS = 500
"""Ways to share a fan-out that are told apart where copies of words are counted."""


@attrs.frozen(eq=False)
class TileGrid:
    """All n tiles, in the order of their extents (C order)."""

    layout: Layout
    options: list[Array]
    """Per dimension, the divisors of its size, ascending."""
    extents: Array
    """(D, n)"""
    within: tuple[Array, Array, Array]
    """(D,) how many options, the pairs (m, 2) of `_next_inside`, and where those of each dimension end."""

    @classmethod
    def of(cls, lay: Layout) -> TileGrid | None:
        """None: there are too many."""
        options = [np.array(divisors(int(size)), dtype=np.float64) for size in lay.sizes]
        if math.prod(len(option) for option in options) > MOST_TILES:
            return None
        pairs = [_next_inside(tuple(option.tolist())) for option in options]
        return cls.among(lay, options, pairs)

    @classmethod
    def among(cls, lay: Layout, options: list[Array], pairs: Sequence[list[tuple[int, int]]] = ()) -> TileGrid:
        """Tiles of these extents; without `pairs`, the places of `_next_inside`, for what asks of no tile which are inside."""
        grids = np.meshgrid(*options, indexing="ij")
        steps = np.array([pair for own in pairs for pair in own], dtype=np.int64).reshape(-1, 2)
        within = np.array([*map(len, options)]), steps, np.cumsum([*map(len, pairs)])
        return cls(lay, options, np.stack([grid.ravel() for grid in grids]).reshape(lay.D, -1), within)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(option) for option in self.options)

    def widths(self, t: int, extents: Array) -> list[Array]:
        """Per rank of a tensor, (n,)."""
        return list(box(self.layout.ranks[t], extents))

    def words(self, extents: Array) -> list[Array]:
        """Per tensor, (n,) words of the tiles."""
        ones = np.ones(extents.shape[1])
        return [np.prod([ones, *self.widths(t, extents)], axis=0) for t in range(self.layout.T)]

    def fits(self, least: LeastWords, level: int) -> Array:
        """(n,) bool: whether a level may have room for the tile."""
        chip = self.layout.problem.chip
        if not np.isfinite(chip.capacity_bits[level]):
            return np.ones(self.extents.shape[1], dtype=bool)
        room = np.broadcast_to(least.room(level, self.words(self.extents)), self.extents.shape[1])  # of no tensor: one
        return room <= chip.capacity_bits[level] / chip.word_bits[level]

    def least_inside(self, values: Array, smaller: int | None = None, along: Array | None = None) -> Array:
        """(n,) the least of `values` (n,) over all tiles whose extents divide those of a tile: along one dimension, `smaller`,
        those that are smaller there, and where `along` (D,) says so, but equal in the others."""
        found = np.array(values, dtype=np.float64).ravel()
        taken = np.ones(len(self.options), dtype=np.uint8) if along is None else along.astype(np.uint8)
        functions.least_inside(found, *self.within, taken, -1 if smaller is None else smaller, np.empty_like(found))
        return found

    def shares(self, fits: Array, limit: float, tiles: Rows) -> FanoutShares:
        """Ways to share a fan-out of at most `limit` children, for the `tiles` (n,) that they might hold together: where one of
        them `fits` (N,)."""
        for wide in itertools.count(1):  # bits
            steps = [np.arange(int(log2(min(limit, size))) // wide + 1) for size in self.layout.sizes]
            ways = np.stack(np.meshgrid(*steps, indexing="ij")).reshape(len(steps), -1)
            ways = ways[:, wide * ways.sum(axis=0) <= log2(limit) + 1e-9]
            if (ways.shape[1] <= MOST_WAYS and ways.shape[1] * len(tiles) <= MOST_MARKS) or ways.shape[1] == 1:
                break
        places, largest, first = [], [], np.cumsum([0, *map(len, steps[:-1])])
        strides = np.cumprod([1, *self.shape[:0:-1]])[::-1]
        for step, option, tile, way, stride in zip(
            steps, self.options, np.unravel_index(tiles, self.shape), ways, strides, strict=True
        ):
            ways_of = np.where(option[:, None] % option == 0.0, option, 1.0)
            most = [np.where(ways_of < math.ldexp(1.0, int(wide * (e + 1))), ways_of, 1.0).max(axis=1) for e in step]
            places += [(np.searchsorted(option, option / each) * stride)[tile] for each in most]
            largest.append(np.array([each.max() for each in most])[way])
        count = np.array(largest)
        children = np.minimum(limit, count.prod(axis=0))
        return FanoutShares(wide * ways, count, children, (ways + first[:, None]).T.copy(), np.array(places), fits)

    def spread(self, fits: Array, splits: Array) -> Array:
        """(n,) bool: a superset of the tiles that the children of a level hold together: one that `fits` times one of the
        ways (D, m) to share the fan-out, or a divisor of that."""
        lay, tiles = self.layout, self.extents[:, fits & ~self._grows(fits)]
        splits = splits[:, ~self._wider(splits)]
        if tiles.shape[1] * splits.shape[1] > MOST_MARKS:
            return np.ones(len(fits), dtype=bool)
        marks = np.zeros(len(fits), dtype=np.float64)
        place = np.zeros((tiles.shape[1], splits.shape[1]), dtype=np.int64)
        for d, option in enumerate(self.options):
            ways, way = np.unique(splits[d], return_inverse=True)
            whole = np.gcd(np.multiply.outer(option, ways).astype(np.int64), int(lay.sizes[d]))
            wide = np.searchsorted(option, whole)[:, way]
            place = place * len(option) + wide[np.searchsorted(option, tiles[d])]
        marks[place.ravel()] = 1.0
        found = marks.reshape(self.shape)
        for axis, option in enumerate(self.options):
            parts = [found.take(np.flatnonzero(option % size == 0), axis).max(axis) for size in option]
            found = np.stack(parts, axis)
        return found.reshape(-1) > 0.0

    def _wider(self, splits: Array) -> Array:
        """(m,) bool: a multiple of the way to share the fan-out is among them as well."""
        found, ways = np.zeros(splits.shape[1], dtype=bool), splits.astype(np.int64)
        bases = [int(size) + 1 for size in self.layout.sizes]
        if math.prod(bases) >= 2**63:
            return found
        steps = [math.prod(bases[:d]) for d in range(len(bases))]
        every = np.array(steps) @ ways
        known = np.sort(every)
        for size, step, way in zip(self.layout.sizes, steps, ways, strict=True):
            for prime in set(prime_factors(int(size))):
                larger = every + step * way * (prime - 1)
                same = known[np.minimum(np.searchsorted(known, larger), len(known) - 1)] == larger
                found |= (way * prime <= size) & same
        return found

    def _grows(self, fits: Array) -> Array:
        """(n,) bool: a tile larger by one prime factor along one dimension fits as well."""
        found, shaped = np.zeros(self.shape, dtype=bool), fits.reshape(self.shape)
        for axis, option in enumerate(self.options):
            for prime in set(prime_factors(int(option[-1]))):
                larger = np.searchsorted(option, option * prime)
                some = np.flatnonzero((larger < len(option)) & (option[-1] % (option * prime) == 0))
                at: list[Any] = [slice(None)] * len(self.shape)
                at[axis] = some
                found[tuple(at)] |= shaped.take(larger[some], axis)
        return found.reshape(-1)


@lru_cache(maxsize=256)
def _next_inside(option: tuple[float, ...]) -> list[tuple[int, int]]:
    """Places in all divisors of a size, ascending: of each, and of those that are smaller by one prime factor."""
    primes = [set(prime_factors(int(size))) for size in option]
    return [(place, option.index(size // prime)) for place, size in enumerate(option) for prime in primes[place]]


@attrs.frozen(eq=False)
class FanoutShares:
    """W ways to share a fan-out, each many at a time, and n tiles that its children might hold together."""

    steps: Array
    """(D, W) log2 of the number of children along every dimension, at least .."""
    most: Array
    """.. and (D, W) how many these are at most .."""
    children: Array
    """.. and (W,) in all."""
    rows: Array
    """(W, D) those of `places` that belong to a way: their sum is where the part of a child is among all tiles."""
    places: Array
    """(E, n)"""
    fits: Array
    """(N,) bool by tile: whether it can be held."""

    @classmethod
    def unknown(cls, dims: int, limit: float, tiles: int) -> FanoutShares:
        """One, of which nothing is known but the number of children."""
        none, most, rows = np.zeros((dims, 1), np.int64), np.full((dims, 1), limit), np.zeros((1, dims), np.int64)
        return cls(none, most, np.full(1, limit), rows, np.zeros((1, tiles), np.int64), np.ones(1, dtype=bool))


@attrs.frozen(eq=False)
class OuterTiles:
    """Tiles of the level next to the outermost one, each with every loop that may be innermost around it: N classes of
    designs. Where they are not known there is one, of which nothing is."""

    grid: TileGrid | None
    tile: Array
    """(N,) index into the grid."""
    loop: Array
    """(N,) dimension of the innermost loop around it."""
    moved: list[Array]
    """Per tensor, words that the outermost level exchanges with the next one, without compression (N,); 0: not known."""
    stays: list[Array]
    """Per tensor, computes of the tile that one word serves (N,); 1 where it is not known."""
    words: list[Array]
    """Per tensor, words of the tile (N,); 1 where it is not known."""

    @classmethod
    def nothing(cls, lay: Layout) -> OuterTiles:
        """One class, of which nothing is known."""
        none = [np.zeros(1) for _ in range(lay.T)]
        ones = [np.ones(1) for _ in range(lay.T)]
        return cls(None, np.zeros(1, np.int64), np.zeros(1, np.int64), none, ones, ones)

    @classmethod
    def of(cls, lay: Layout, least: LeastWords, inside: Sequence[float], grid: TileGrid | None = None) -> OuterTiles:
        """`inside`: by tensor, the share of what tiles have that moves at least. `grid`: tiles that need not divide the sizes;
        loops around them count the sizes by them."""
        if lay.S == 1 or lay.spatial[0] is not None:
            return cls.nothing(lay)
        grid = grid or TileGrid.of(lay)
        if grid is None:
            return cls.nothing(lay)
        tiles = np.flatnonzero(grid.fits(least, 1))
        if not tiles.size:
            return cls.nothing(lay)  # nor does any design
        extents = grid.extents.take(tiles, axis=1)
        words, loops = grid.words(extents), lay.sizes[:, None] / extents
        there = possible(loops)
        stays, held = ([np.ones(1) for _ in range(lay.T)] for _ in range(2))
        loop, joined = np.ascontiguousarray(np.nonzero(there))
        moved = [np.zeros(len(joined)) for _ in range(lay.T)]
        for t in range(lay.T):
            held[t] = words[t][joined]
            if lay.holes[t] or not lay.stored[t, 0] or lay.child(t, 0) != 1:
                held[t] = np.ones(1)
                continue
            sent = delivered(lay, t, words[t] * inside[t], grid.widths(t, extents), extents, loops, single=True)
            moved[t] = sent[there]
            stays[t] = extents[~lay.relevant[t]].prod(axis=0)[joined]
        return cls(grid, tiles[joined], loop, moved, stays, held)


def possible(loops: Array) -> Array:
    """(D, n) bool: whether a loop may be the innermost around a tile, of (D, n) `loops`. Around a tile without any, each may."""
    busy = loops > 1.0
    return np.asarray(busy | ~busy.any(axis=0))


def delivered(
    lay: Layout, t: int, words: Array, widths: list[Array], extents: Array, loops: Array, single: bool = False
) -> Array:
    """(D, n) by dimension whose loop is the innermost around a tile of `words` (n,): the least that is delivered (4.1).

    If the loop moves the tensor, each of its steps brings what it uncovers. So may the other loop along the same
    rank of a window, where its step is the same; all further loops deliver the tile anew. If the loop does not move
    it, the loops that do deliver all words, but for one of two along a rank: its step may be none. `single`: no dimension has
    more than one loop around the tile, so that the steps are those of the tile; what the inner loop has moved comes back
    before the other one moves.
    """
    ranks = np.array([[*rank[0], *(rank[1] if len(rank) > 1 else (-1, 0))] for rank in lay.ranks[t]], np.int64).reshape(
        -1, 4
    )
    found = np.empty(extents.shape)
    moves, wide = lay.relevant[t].astype(np.uint8), np.array(widths).reshape(len(ranks), len(words))
    functions.least_delivered(words, wide, extents, loops, lay.turns(extents), ranks, moves, single, found)
    return found
