"""Traffic between levels over all tiles: a part of the lower bound (`bound`).

A grid has all tiles of a level: extents dividing the sizes. Along every dimension, a tile of a level divides the tile
of the next outer level. So the minimum of an inner level inside a given outer tile is the minimum over the divisors of
the outer extents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
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
"""Limit of tiles, and of ways to share a fan-out; beyond, none is tried, to bound time and memory."""
MOST_MARKS = 1 << 22
"""Limit of pairs of a tile and a way to share a fan-out."""
AT_ONCE = 1 << 14
"""Tiles or classes examined at once, to bound memory."""
MOST_WAYS = 500
"""Limit of distinct ways to share a fan-out where copies of words are counted."""


@attrs.frozen(eq=False)
class TileGrid:
    """All n tiles, ordered by extents (C order)."""

    layout: Layout
    options: list[Array]
    """Per dimension, the divisors of the size, ascending."""
    extents: Array
    """(D, n) extents of each tile."""
    within: tuple[Array, Array, Array]
    """(D,) number of options, pairs (m, 2) of `_next_inside`, and the end of each dimension's pairs."""

    @classmethod
    def of(cls, lay: Layout) -> TileGrid | None:
        """Grid of a layout; None: too many tiles."""
        options = [np.array(divisors(int(size)), dtype=np.float64) for size in lay.sizes]
        if math.prod(len(option) for option in options) > MOST_TILES:
            return None
        pairs = [_next_inside(tuple(option.tolist())) for option in options]
        return cls.among(lay, options, pairs)

    @classmethod
    def among(cls, lay: Layout, options: list[Array], pairs: Sequence[list[tuple[int, int]]] = ()) -> TileGrid:
        """Grid of these extents. Without `pairs`, the places of `_next_inside`, the grid cannot search inside a tile."""
        grids = np.meshgrid(*options, indexing="ij")
        steps = np.array([pair for own in pairs for pair in own], dtype=np.int64).reshape(-1, 2)
        within = np.array([*map(len, options)]), steps, np.cumsum([*map(len, pairs)])
        return cls(lay, options, np.stack([grid.ravel() for grid in grids]).reshape(lay.D, -1), within)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(option) for option in self.options)

    def widths(self, t: int, extents: Array) -> list[Array]:
        """Widths (n,) per rank of a tensor."""
        return list(box(self.layout.ranks[t], extents))

    def words(self, extents: Array) -> list[Array]:
        """Words (n,) of the tiles, per tensor."""
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
        """(n,) minimum of `values` (n,) over all tiles with extents dividing the extents of a tile. Along dimension
        `smaller` only smaller extents count; with `along` (D,), extents of unflagged dimensions stay equal."""
        found = np.array(values, dtype=np.float64).ravel()
        taken = np.ones(len(self.options), dtype=np.uint8) if along is None else along.astype(np.uint8)
        functions.least_inside(found, *self.within, taken, -1 if smaller is None else smaller, np.empty_like(found))
        return found

    def shares(self, fits: Array, limit: float, tiles: int) -> FanoutShares:
        """Ways to share a fan-out of at most `limit` children, for the number of `tiles` held by all children together;
        a child's tile `fits` (N,)."""
        for wide in itertools.count(1):  # bits
            steps = [np.arange(int(log2(min(limit, size))) // wide + 1) for size in self.layout.sizes]
            ways = np.stack(np.meshgrid(*steps, indexing="ij")).reshape(len(steps), -1)
            ways = ways[:, wide * ways.sum(axis=0) <= log2(limit) + 1e-9]
            if (ways.shape[1] <= MOST_WAYS and ways.shape[1] * tiles <= MOST_MARKS) or ways.shape[1] == 1:
                break
        places, largest, first = list[list[Array]](), [], np.cumsum([0, *map(len, steps[:-1])])
        strides = np.cumprod([1, *self.shape[:0:-1]])[::-1]
        for step, option, way, stride in zip(steps, self.options, ways, strides, strict=True):
            ways_of = np.where(option[:, None] % option == 0.0, option, 1.0)
            most = [np.where(ways_of < math.ldexp(1.0, int(wide * (e + 1))), ways_of, 1.0).max(axis=1) for e in step]
            places.append([np.searchsorted(option, option / each) * stride for each in most])
            largest.append(np.array([each.max() for each in most])[way])
        count = np.array(largest)
        children = np.minimum(limit, count.prod(axis=0))
        return FanoutShares(wide * ways, count, children, (ways + first[:, None]).T.copy(), places, fits)

    def spread(self, fits: Array, splits: Array) -> Array:
        """(n,) bool: a superset of the tiles held by the children of a level together: a fitting tile times a way (D,
        m) to share the fan-out, or a divisor of this product."""
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
        """(m,) bool: a multiple of the way to share the fan-out is listed as well."""
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
    """Pairs of places among all divisors of a size, ascending: a divisor, and a divisor smaller by one prime factor."""
    primes = [set(prime_factors(int(size))) for size in option]
    return [(place, option.index(size // prime)) for place, size in enumerate(option) for prime in primes[place]]


@attrs.frozen(eq=False)
class FanoutShares:
    """W ways to share a fan-out, each covering a range of counts."""

    steps: Array
    """(D, W) log2 of the smallest number of children along every dimension."""
    most: Array
    """(D, W) largest number of children along every dimension."""
    children: Array
    """(W,) largest total number of children."""
    rows: Array
    """(W, D) rows of `places_of` of a way; their sum is the index of a child's part among all tiles."""
    places: list[list[Array]]
    """Per dimension, contributions of options to the index of a child's part."""
    fits: Array
    """(N,) bool: whether a tile fits."""

    @classmethod
    def unknown(cls, dims: int, limit: float) -> FanoutShares:
        """A single way with only the number of children known."""
        none, most, rows = np.zeros((dims, 1), np.int64), np.full((dims, 1), limit), np.zeros((1, dims), np.int64)
        return cls(none, most, np.full(1, limit), rows, [], np.ones(1, dtype=bool))

    def places_of(self, tiles: Rows) -> Array:
        """(E, n) contributions of the tiles (n,) held by the children together."""
        options = np.unravel_index(tiles, [len(own[0]) for own in self.places]) if self.places else ()
        found = [each[option] for own, option in zip(self.places, options, strict=True) for each in own]
        return np.array(found or [np.zeros_like(tiles)])


@attrs.frozen(eq=False)
class OuterTiles:
    """Tiles of the level next to the outermost, each with every possible innermost loop around it: N classes of
    designs. If unknown, a single class without information."""

    grid: TileGrid | None
    tile: Array
    """(N,) index into the grid."""
    loop: Array
    """(N,) dimension of the innermost loop around the tile."""
    moved: list[Array]
    """Per tensor, (N,) uncompressed words exchanged between the outermost level and the next; 0: unknown."""
    stays: list[Array]
    """Per tensor, (N,) computes of the tile served by one word; 1: unknown."""
    words: list[Array]
    """Per tensor, (N,) words of the tile; 1: unknown."""

    def by_class(self, costs: Callable[[OuterTiles], Sequence[Array]]) -> list[Array]:
        """(N,) of each cost, computed for a part of the classes after another: (n,), or (1,) for the same in all."""
        found = ([np.broadcast_to(cost, len(some.tile)) for cost in costs(some)] for some in self._runs())
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _runs(self) -> Iterator[OuterTiles]:
        for rows in (slice(start, start + AT_ONCE) for start in range(0, len(self.tile), AT_ONCE)):
            parts = (
                [one if len(one) == 1 else one[rows] for one in part] for part in (self.moved, self.stays, self.words)
            )
            yield OuterTiles(self.grid, self.tile[rows], self.loop[rows], *parts)

    def forget(self) -> None:
        """Drop what only costs need: these are the largest arrays of a bound."""
        for part in (self.moved, self.stays, self.words):
            part.clear()

    @classmethod
    def nothing(cls, lay: Layout) -> OuterTiles:
        """A single class without information."""
        none = [np.zeros(1) for _ in range(lay.T)]
        ones = [np.ones(1) for _ in range(lay.T)]
        return cls(None, np.zeros(1, np.int64), np.zeros(1, np.int64), none, ones, ones)

    @classmethod
    def of(cls, lay: Layout, least: LeastWords, inside: Sequence[float], grid: TileGrid | None = None) -> OuterTiles:
        """Classes of a layout. `inside`: per tensor, the minimum share of a tile's words moved. `grid`: tiles not
        necessarily dividing the sizes; loops around them have fractional counts."""
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
    """(D, n) bool: whether a loop of `loops` (D, n) may be the innermost around a tile. Around a tile without loops,
    any may."""
    busy = loops > 1.0
    return np.asarray(busy | ~busy.any(axis=0))


def delivered(
    lay: Layout, t: int, words: Array, widths: list[Array], extents: Array, loops: Array, single: bool = False
) -> Array:
    """(D, n) minimum words delivered (4.1), by dimension of the innermost loop around a tile of `words` (n,).

    If the loop moves the tensor, each step delivers the uncovered words. The other loop along the same rank of a window
    may do so too, if its step is equal; all further loops deliver the tile anew. If the loop does not move the tensor,
    the moving loops deliver all words, except for one of two loops along a rank, as its step may be none. `single`:
    every dimension has at most one loop around the tile, so steps are the tile's extents; the words moved by the inner
    loop come back before the other loop moves."""
    ranks = np.array([[*rank[0], *(rank[1] if len(rank) > 1 else (-1, 0))] for rank in lay.ranks[t]], np.int64).reshape(
        -1, 4
    )
    found = np.empty(extents.shape)
    moves, wide = lay.relevant[t].astype(np.uint8), np.array(widths).reshape(len(ranks), len(words))
    functions.least_delivered(words, wide, extents, loops, lay.turns(extents), ranks, moves, single, found)
    return found
