"""Minimum costs of delivering words from a level to the next inner level: a part of the lower bound (`bound`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemap.inner.arrays import expm1s, log1p
from sparsemap.pieces.contracts.base import Array

from .bound_filters import LeastAccesses
from .bound_inner import SLOWER, InnerTiles
from .bound_tiles import OuterTiles
from .bound_units import LeastUnits
from .bound_words import LeastWords


class Handed(NamedTuple):
    """Costs of one tensor, (n,) each."""

    pj: Array
    """pJ with every word going to a single child."""
    read: Array
    """Words leaving the level, in time."""
    written: Array
    """Words entering the level, in time."""
    bits: Array
    """Bits crossing the tree."""
    child_pj: Array
    """pJ per additional child: writing an operand's words, or adding sums."""


class LeastLinks:
    """Costs of the links between levels."""

    def __init__(self, words: LeastWords, accesses: LeastAccesses, inside: list[float], instances: list[float]) -> None:
        """`inside`: per tensor, the minimum share of words moved of each tile; `instances`: largest number of instances
        of every level."""
        self.words, self.accesses, self.layout, self.chip = words, accesses, words.layout, words.chip
        self.inside, self.instances, self.touched = inside, instances, accesses.touched
        self.fewer_updates = words.known.options.sums
        self.units: LeastUnits | None = None
        """Costs of accesses next to the compute units."""
        self.promise: tuple[Array, Array] | None = None
        """`InnerTiles.promise` for the level next to the outermost."""

    def between(
        self, s: int, outer: OuterTiles, splits: Array | None, work: float, least: float, copies: list[float]
    ) -> tuple[Array, Array, Array]:
        """pJ and cycles (N,) by class of a level between the outermost and the innermost. At least as many words leave
        the level as have arrived, and as inner tiles need. `splits`: ways (D, m) to share the level's fan-out; None:
        too many.

        Alternatively (K, N), by the number of working children (`work`: compute cycles with one child, `least`: cycles
        of everything else) and by the number sharing a word of the output: (K,) place in `copies`, the largest such
        number, the last infinity."""
        own, cycles = self._by_class(s, outer)
        energy = sum(own, start=np.zeros(1))
        if s == self.layout.S - 2:
            outer.forget()
        if outer.grid is None or splits is None:
            return energy, cycles, np.full(1, len(copies) - 1)
        inner = InnerTiles(self, s, outer, outer.grid, splits)
        inside = inner.costs(own, work, least, copies)
        self.promise = inner.promise if s == 1 else self.promise
        if inside is None:
            return energy, cycles, np.full(1, len(copies) - 1)  # no design fits
        slowest = least * np.array([0.0, *SLOWER])[inside[2] // len(copies), None]
        return (
            np.maximum(energy, inside[0]),
            np.maximum(np.maximum(cycles, inside[1]), slowest),
            inside[2] % len(copies),
        )

    def _by_class(self, s: int, outer: OuterTiles) -> tuple[list[Array], Array]:
        """pJ of the words leaving a level, per tensor, and its cycles."""

        def costs(some: OuterTiles) -> list[Array]:
            parts = self.handing(s, some)
            return [*(part.pj for part in parts), self.busy(s, parts)]

        *own, cycles = outer.by_class(costs)
        return own, cycles

    def handing(self, s: int, outer: OuterTiles) -> list[Handed]:
        """Per tensor, the minimum costs of words leaving a level for the children."""
        lay, ones, found = self.layout, np.ones(1), []
        for t in range(lay.T):
            inside = (outer.stays[t], outer.words[t]) if s == 1 else (ones, ones)
            found.append(self.handed(t, s, np.maximum(outer.moved[t], self.touched[t]), *inside))
        return found

    def handed(self, t: int, s: int, words: Array, stays: Array, held: Array, every: bool = False) -> Handed:
        """Costs of delivering `words` (n,) to the children, from tiles of at least `held` words, with `stays` computes
        served per word; `every`: without filters."""
        lay, child, none = self.layout, self.layout.child(t, s), np.zeros(1)
        if not lay.stored[t, s] or (child is None and t == lay.output and self.fewer_updates):
            return Handed(none, none, none, *np.zeros((2, *words.shape)))
        told, small = self.words.told_bits(t, held), np.zeros(1)
        alone = all(group is None for group in lay.spatial[:s])
        count, time = self.accesses.needed(t, s, words, stays, every=every), self.words.time(t, s, told)
        read, written, put = none, none, self.words.price(t, s, "update", told) + self.leave(t, child, small)
        if t == lay.output and self.fewer_updates:
            once = np.full_like(words, self.touched[t])
            if child and alone and (every or not self.accesses.filters(t, s)):
                come = np.maximum(words, self.words.once[t])
                pj, read, written, count = self.sums(t, s, child, come, told, small)
            else:
                # of visits that bring a nonzero sum, or that a filter leaves, the fewer ones take place
                count = np.maximum(self.accesses.needed(t, s, words, stays, once), count / 2 if alone else 0.0)
                pj, written = count * put, count * time
        elif t == lay.output:
            pj, written = count * put, count * time
        else:
            fill = 0.0 if child is None else self.words.price(t, child, "fill", small)
            pj, read = count * (self.words.price(t, s, "read", told) + fill), count * time
        width = float(self.words.width[t, s])
        adds = float(self.chip.add_pj[s]) * width if self.words.network and lay.spatial[s] is not None else 0.0
        child_pj = count * (adds if t == lay.output or child is None else self.words.price(t, child, "fill", small))
        return Handed(pj, read, written, count * time * float(self.chip.word_bits[s]), child_pj)

    def busy(self, s: int, parts: list[Handed]) -> Array:
        """(n,) cycles of a level."""
        read, written = (sum(words, start=np.zeros(1)) for words in zip(*(part[1:3] for part in parts), strict=True))
        return self.transfer(s, read / self.instances[s], written / self.instances[s])

    def sums(self, t: int, s: int, child: int, moved: Array, told: Array, inside: Array) -> tuple[Array, ...]:
        """pJ, words read and written, and number of arriving sums, for `moved` (N,) words of the output arriving at an
        unfiltered level of one instance, and returning except the first time. The minimum of moving nonzero sums
        compressed and moving all sums."""
        words, density, volume = self.words, min(1.0, self.accesses.densities[t]), self.words.once[t]
        visits = moved / volume
        some = -expm1s(log1p(-density) / visits) if density < 1.0 else np.ones_like(visits)
        nonzero = moved * (1.0 - (1.0 - some) * density / (visits * some)) if density > 0.0 else 0.0 * moved
        found = []
        for count, back, bits in ((nonzero, nonzero - volume * density, told), (moved, moved - volume, None)):
            count, back = (np.maximum(0.0, part * (1.0 - 2e-6) - 1e-12 * moved - 4.0) for part in (count, back))
            put, get = (words.each(t, s, action, bits) for action in ("update", "read"))
            leave = words.each(t, child, "read", None if bits is None else inside, wires=False) if words.drains else 0.0
            fill = words.each(t, child, "fill", None if bits is None else inside)
            size = words.width[t, s] + (0.0 if bits is None else bits / float(self.chip.word_bits[s]))
            found.append((count * (put + leave) + back * (get + fill), back * size, count * size, count))
        return tuple(np.minimum(*pair) for pair in zip(*found, strict=True))

    def leave(self, t: int, child: int | None, told: Array) -> Array | float:
        """pJ of reading a word of the output as it leaves for the parent."""
        return 0.0 if child is None or not self.words.drains else self.words.price(t, child, "read", told, wires=False)

    def transfer(self, level: int, read: Array, written: Array) -> Array:
        """(n,) cycles for transferring the words."""
        chip = self.chip
        cycles: Array = np.zeros(np.broadcast(read, written).shape)
        limits = chip.read_bandwidth[level], chip.write_bandwidth[level], chip.bandwidth[level]
        for words, bandwidth in zip((read, written, read + written), limits, strict=True):
            cycles = np.maximum(cycles, np.floor(words / bandwidth * (1.0 - 1e-6)))  # 0 where it is not limited
        return cycles
