"""Bounds for larger, padded sizes of dimensions: the bound (`bound`) of outer tiles alone.

A padded size keeps its words and computes (`remainders`), but has other tiles: extents dividing the larger size. So all
tiles of many sizes form one grid, each size has a part of this grid, and usable fan-outs are counted size by size.
Inner tiles and hierarchies of ranks are ignored: the result takes tens of milliseconds, much less than the bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sparsemap.pieces.contracts.base import Array
from sparsemap.primes import divisors

from .bound import LowerBound, front
from .bound_links import LeastLinks
from .bound_tiles import OuterTiles, TileGrid
from .occupancy.lookup import distinct

MOST_TILES = 1 << 16
"""Limit of tiles over all compared sizes, to bound the time."""
PRICED = 128
"""Classes examined per size: the classes with the fewest nonzeros moved by the outermost level."""


class OtherSizes(LowerBound):
    """Bounds of a problem with the largest of the compared sizes."""

    def prove(self) -> None:
        """Do nothing: each query has its own classes."""

    def _taken(self, t: int, splits: Array | None) -> Array:
        """Share of words per compute: the units of other sizes do not divide the tensor's dimensions."""
        return super()._taken(t, None)

    def least(self) -> tuple[Array, Array]:
        """Pairs (n,) with every word moved once and all fan-outs full."""
        limits = [(m.storage, float(m.limit)) for m in self.layout.problem.mapping_levels if m.spatial]
        every = [math.prod(limit for storage, limit in limits if storage < s) for s in range(self.layout.S + 1)]
        *self.instances, self.units = every
        self.outer = OuterTiles.nothing(self.layout)
        return self._pairs(*self._traffic())

    def of(self, layouts: Sequence[Mapping[str, int]]) -> list[tuple[Array, Array]] | None:
        """Per layout of the dimensions, pairs of pJ and cycles (n,) near the minimum of its designs; None: unknown."""
        some = self._classes(layouts)
        if some is None:
            return None
        traffic, found = self._traffic(), []
        for mine, sizes in zip(some, layouts, strict=True):
            self.count_units(sizes)
            found.append(self._pairs(*(part if len(part) == 1 else part[mine] for part in traffic)))
        return found

    def _traffic(self) -> tuple[Array, Array, Array]:
        """By class: pJ, cycles, and cycles during which inner levels wait."""
        self.links = LeastLinks(self.words, self.accesses, self.inside, self.instances)
        energy, cycles, waiting = self.leaving()
        for s in range(1, self.layout.S - 1):
            own = self.links.handing(s, self.outer)
            energy = energy + sum(part.pj for part in own)
            cycles = np.maximum(cycles, self.links.busy(s, own))
        energy, cycles = np.broadcast_arrays(energy, cycles)
        return energy, cycles, waiting

    def _pairs(self, energy: Array, cycles: Array, waiting: Array) -> tuple[Array, Array]:
        energy, cycles = front(energy, cycles)
        inside = self.innermost(float(energy[0]), near=False)[-1][1]
        pj, steps = self.joined(energy, cycles, cycles if waiting.any() else np.zeros(1), *inside)
        return pj.ravel(), steps.ravel()

    def _classes(self, layouts: Sequence[Mapping[str, int]]) -> list[Array] | None:
        """Set `outer` to the examined classes, and return the classes (n,) bool of each layout."""
        lay = self.layout
        within = [[divisors(sizes[dim]) for sizes in layouts] for dim in lay.dims]
        options = [distinct(np.concatenate(some)).astype(np.float64) for some in within]
        if math.prod(map(len, options)) > MOST_TILES:
            return None
        every = OuterTiles.of(lay, self.words, self.inside, TileGrid.among(lay, options))
        if every.grid is None:
            return None
        nonzeros = sum(np.maximum(every.moved[t], self.touched[t]) * self.densities[t] for t in range(lay.T))
        places = np.unravel_index(every.tile, every.grid.shape)
        found, looked = [], np.zeros(len(every.tile), dtype=bool)
        for i in range(len(layouts)):
            mine = np.ones(len(every.tile), dtype=bool)
            for option, own, place in zip(options, within, places, strict=True):
                if len(own[i]) < len(option):
                    mine &= np.isin(option, own[i])[place]
            if not mine.any():
                return None
            last = min(PRICED, int(mine.sum())) - 1
            mine &= nonzeros <= np.partition(nonzeros[mine], last)[last]
            looked |= mine
            found.append(mine)
        parts = every.moved, every.stays, every.words
        moved, stays, words = ([one if len(one) == 1 else one[looked] for one in part] for part in parts)
        self.outer = OuterTiles(every.grid, every.tile[looked], every.loop[looked], moved, stays, words)
        return [mine[looked] for mine in found]
