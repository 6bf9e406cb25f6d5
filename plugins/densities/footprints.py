"""Which blocks and N:M groups the aligned tiles of a matrix touch: the geometry behind the density `crisp`.

A matrix is cut in blocks, its rows in groups of `m` neighbouring columns. A tile cuts out of each *band*, that is of each
block row it touches, the same columns. What it holds of one block is a *footprint*; tiles with the same footprints hold
the same distribution of nonzeros, so that few of them stand for all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from math import comb
from typing import NamedTuple

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array


class Footprint(NamedTuple):
    """What a tile holds of one kept block, per row, and how a sub-tile of it may be empty."""

    fixed: int
    """Nonzeros of the groups that lie in the tile whole."""
    partial: tuple[tuple[float, ...], ...] = ()
    """Of each other group, the probability of 0, 1, .. nonzeros."""
    empty: float = 1.0
    """Of a row with a sub-tile: probability that its part of the whole groups is empty .."""
    partial_empty: tuple[tuple[float, ...], ...] = ()
    """.. and `partial` with the sub-tile's part empty, in the same order."""


NEVER = Footprint(0, (), 0.0)
"""A kept block in which the sub-tile is never empty."""

Classes = tuple[tuple[Footprint, int], ...]
"""Footprints, and in how many blocks of a band each occurs."""


class Bands(NamedTuple):
    """The rows of a tile with a sub-tile in it."""

    weight: int
    """Sub-tiles that lie so, of all tiles."""
    heights: tuple[tuple[int, int], ...]
    """(rows, bands) where the sub-tile is not .."""
    touched: tuple[tuple[int, int, int], ...]
    """.. and (rows, rows of the sub-tile, bands) where it is."""


class Strips(NamedTuple):
    """The columns of a tile with a sub-tile in it."""

    weight: int
    whole: Classes
    """Footprints of the tile in a band without the sub-tile, .."""
    inside: Classes
    """.. and with it."""


def bands(rows: int, block: int, tile: int, sub: int) -> list[Bands]:
    """Distinct tiles of so many rows, with their sub-tiles."""

    def even(part: int) -> bool:
        return part % block == 0 or block % part == 0

    if rows % tile == tile % sub == rows % block == 0 and even(tile) and even(sub):
        height, count = min(tile, block), max(1, tile // block)
        inner = max(1, sub // block)
        rest = ((height, count - inner),) if count > inner else ()
        return [Bands(1, rest, ((height, min(sub, block), inner),))]
    period = math.lcm(tile, block)
    found: Counter[tuple] = Counter()
    for start in range(0, period if rows % period == 0 else rows, tile):
        stop = min(start + tile, rows)
        edges = range(start // block * block, stop, block)
        spans = [(max(start, edge), min(stop, edge + block)) for edge in edges]
        for low in range(start, stop, sub):
            high = min(low + sub, stop)
            pairs = Counter((b - a, max(0, min(b, high) - max(a, low))) for a, b in spans)
            out = tuple(sorted((h, count) for (h, inner), count in pairs.items() if not inner))
            found[out, tuple(sorted((h, inner, count) for (h, inner), count in pairs.items() if inner))] += 1
    return [Bands(weight, *key) for key, weight in found.items()]


_MIX = np.uint64(0x9E3779B97F4A7C15)


def _mixed(numbers: Array) -> Array:
    """(n,) uint64: numbers scattered so that sums of them tell multisets apart (splitmix64)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) + _MIX
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _runs(keys: Array) -> Array:
    """Where runs of equal neighbours start."""
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))


@attrs.frozen(eq=False, slots=False)
class Columns:
    """The columns of a matrix, a product of `ranks` (the last one fastest), in blocks and groups."""

    ranks: tuple[int, ...]
    block: int
    n: int
    m: int

    @cached_property
    def count(self) -> int:
        return math.prod(self.ranks)

    def width(self, group: Array) -> Array:
        """Columns of a group: the last one may be short."""
        return np.minimum(self.m, self.count - group * self.m)

    def strips(self, tile: Sequence[int], sub: Sequence[int]) -> list[Strips]:
        """Distinct tiles of so many columns per rank, with their sub-tiles."""
        column, owner, part = self._numbered(tile, sub)
        group, groups = column // self.m, -(-self.count // self.m)
        # groups of tiles, in order of tile and column, and the runs of them that are blocks of tiles
        keys, words = np.unique(owner * groups + group, return_counts=True)
        width, blocks = self.width(keys % groups), keys % groups * self.m // self.block
        kind = words * (self.m + 1) + width
        place = keys // groups * groups + blocks
        start = _runs(place)
        place, footprint = place[start], np.add.reduceat(_mixed(kind), start)
        first = _runs(place // groups)
        tiles = np.add.reduceat(_mixed(footprint), first)  # all of a tile's footprints
        # the same of sub-tiles: what they hold of the groups of their tile
        kept = part >= 0
        owner, group, part = owner[kept], group[kept], part[kept]
        order = np.lexsort((group, part))
        part, group, owner = part[order], group[order], owner[order]
        at = _runs(part * groups + group)
        taken = np.diff(at, append=len(part))
        part, group, owner = part[at], group[at], owner[at]
        mine = np.searchsorted(keys, owner * groups + group)
        inner_kind = _mixed(kind[mine] * (self.m + 1) + taken + (1 << 32))
        inner_place = part * groups + group * self.m // self.block
        inner_start = _runs(inner_place)
        inner_whole = np.searchsorted(place, owner[inner_start] * groups + group[inner_start] * self.m // self.block)
        inner = np.add.reduceat(inner_kind, inner_start) + _mixed(footprint[inner_whole])
        inner_first = _runs(part[inner_start])
        own_tile = owner[inner_start][inner_first]
        same = np.add.reduceat(_mixed(inner), inner_first) + _mixed(tiles[own_tile] + _MIX)
        _, one, weight = np.unique(same, return_index=True, return_counts=True)

        def types(block: int) -> Counter[tuple[int, int, int]]:
            last = start[block + 1] if block + 1 < len(start) else len(keys)
            some = slice(start[block], last)
            return Counter((int(b), int(w), 0) for b, w in zip(words[some], width[some], strict=True))

        found = []
        for representative, times in zip(one.tolist(), weight.tolist(), strict=True):
            owning = int(own_tile[representative])
            mine_last = first[owning + 1] if owning + 1 < len(first) else len(place)
            shapes, at_first, counts = np.unique(
                footprint[first[owning] : mine_last], return_index=True, return_counts=True
            )
            of = {int(h): self._footprint(types(int(first[owning] + i))) for h, i in zip(shapes, at_first, strict=True)}
            whole = Counter({int(h): int(c) for h, c in zip(shapes, counts, strict=True)})
            inside: Counter[Footprint] = Counter()
            after = inner_first[representative + 1] if representative + 1 < len(inner_first) else len(inner_start)
            for run in range(inner_first[representative], after):
                block = int(inner_whole[run])
                whole_types = types(block)
                stop = inner_start[run + 1] if run + 1 < len(inner_start) else len(group)
                for i in range(inner_start[run], stop):
                    b, w = int(words[mine[i]]), int(width[mine[i]])
                    whole_types[b, w, 0] -= 1
                    whole_types[b, w, int(taken[i])] += 1
                whole[int(footprint[block])] -= 1
                inside[self._footprint(whole_types)] += 1
            rest = _merged((of[h], c) for h, c in whole.items())
            all_of = _merged((of[h], int(c)) for h, c in zip(shapes.tolist(), counts, strict=True))
            found.append(Strips(times, all_of, _merged([*rest, *inside.items()])))
        return found

    def _numbered(self, tile: Sequence[int], sub: Sequence[int]) -> tuple[Array, Array, Array]:
        """Columns (n,), their tiles numbered from 0, and their sub-tiles, -1 where another one stands for theirs.

        Tiles that repeat those before them are left out: as far as blocks repeat, and sizes divide.
        """
        spans, inner_spans = list(self.ranks), list(self.ranks)
        last = len(spans) - 1
        if spans[last] % self.block == 0:  # no block reaches over a row of the last rank
            for rank, (size, t, s) in enumerate(zip(self.ranks, tile, sub, strict=True)):
                step = self.block if rank == last else 1
                if size % math.lcm(t, step) == 0:
                    spans[rank] = inner_spans[rank] = math.lcm(t, step)
                    if t % step == 0 and t % math.lcm(s, step) == 0:
                        inner_spans[rank] = math.lcm(s, step)
        column = owner = part = np.zeros(1, np.int64)
        seen = np.ones(1, bool)
        for size, span, inner, t, s in zip(self.ranks, spans, inner_spans, tile, sub, strict=True):
            i = np.arange(span)
            column = (column[:, None] * size + i).ravel()
            owner = (owner[:, None] * -(-span // t) + i // t).ravel()
            part = (part[:, None] * (-(-span // t) * -(-t // s)) + i // t * -(-t // s) + i % t // s).ravel()
            seen = (seen[:, None] & (i < inner)).ravel()
        return column, owner, np.where(seen, part, -1)

    def _footprint(self, groups: Counter[tuple[int, int, int]]) -> Footprint:
        """From the groups of a block: how many have so many columns in the tile, columns at all, and in the sub-tile."""
        fixed, empty = 0, 1.0
        partial, partial_empty = [], []
        for (inside, width, taken), count in sorted(groups.items()):
            if not count:
                continue
            nonzeros = min(self.n, width)
            ways = comb(width, nonzeros)
            if inside == width:
                fixed += count * nonzeros
                empty *= (comb(width - taken, nonzeros) / ways) ** count
                continue
            free = [comb(width - inside, nonzeros - x) / ways for x in range(min(inside, nonzeros) + 1)]
            partial += [tuple(f * comb(inside, x) for x, f in enumerate(free))] * count
            partial_empty += [tuple(f * comb(inside - taken, x) for x, f in enumerate(free))] * count
        if empty == 0.0 or any(sum(p) == 0.0 for p in partial_empty):
            return NEVER
        return Footprint(fixed, tuple(partial), empty, tuple(partial_empty))


def _merged(classes: object) -> Classes:
    """Equal footprints added up, the rarest first."""
    total: Counter[Footprint] = Counter()
    for footprint, count in classes:  # type: ignore[attr-defined]
        total[footprint] += count
    return tuple(sorted(((f, c) for f, c in total.items() if c), key=lambda item: (item[1], item[0])))
