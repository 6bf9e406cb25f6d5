"""What it costs at least to hand words from a level to the next inner one: a part of the lower bound (`bound`)."""

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
    """Of one tensor, (n,) each."""

    pj: Array
    """Where every word goes to one child."""
    read: Array
    """Words of time, out of the level .."""
    written: Array
    """.. and into it."""
    bits: Array
    """Bits that cross the tree."""
    child_pj: Array
    """pJ of what another child adds: writing an operand's words, adding sums."""


class LeastLinks:
    """Costs of the links between levels."""

    def __init__(self, words: LeastWords, accesses: LeastAccesses, inside: list[float], instances: list[float]) -> None:
        """`inside`: by tensor, the share of what tiles bring that moves at least; `instances` of every level, at most."""
        self.words, self.accesses, self.layout, self.chip = words, accesses, words.layout, words.chip
        self.inside, self.instances, self.touched = inside, instances, accesses.touched
        self.fewer_updates = words.known.options.sums
        self.units: LeastUnits | None = None
        """Accesses next to the compute units."""
        self.promise: tuple[Array, Array] | None = None
        """Of the level next to the outermost one, `InnerTiles.promise`."""

    def between(
        self, s: int, outer: OuterTiles, splits: Array | None, work: float, least: float, copies: list[float]
    ) -> tuple[Array, Array, Array]:
        """pJ and cycles (N,) by class of a level between the outermost and the innermost one: no fewer words leave it than
        have come, and than the tiles inside need. `splits`: ways (D, m) to share its fan-out; None: too many. Or (K, N), K
        pairs by how many children work: `work` cycles of computing for one, where all else takes `least` or more; and by how
        many share a word of the output: (K,) the place in `copies`, the most of them, the last one infinity."""
        own = self.handing(s, outer)
        energy, cycles = sum((part.pj for part in own), start=np.zeros(1)), self.busy(s, own)
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

    def handing(self, s: int, outer: OuterTiles) -> list[Handed]:
        """By tensor, what leaves a level for its children at least."""
        lay, ones, found = self.layout, np.ones(1), []
        for t in range(lay.T):
            inside = (outer.stays[t], outer.words[t]) if s == 1 else (ones, ones)
            found.append(self.handed(t, s, np.maximum(outer.moved[t], self.touched[t]), *inside))
        return found

    def handed(self, t: int, s: int, words: Array, stays: Array, held: Array, every: bool = False) -> Handed:
        """Handing over `words` (n,) to its children, out of tiles of `held` words or more, whose words serve `stays`
        computes; `every`: without filters."""
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
        adds = float(self.chip.add_pj["word"][s]) if self.words.network and lay.spatial[s] is not None else 0.0
        child_pj = count * (adds if t == lay.output or child is None else self.words.price(t, child, "fill", small))
        return Handed(pj, read, written, count * time * float(self.chip.word_bits[s]), child_pj)

    def busy(self, s: int, parts: list[Handed]) -> Array:
        """(n,) cycles of a level."""
        read, written = (sum(words, start=np.zeros(1)) for words in zip(*(part[1:3] for part in parts), strict=True))
        return self.transfer(s, read / self.instances[s], written / self.instances[s])

    def sums(self, t: int, s: int, child: int, moved: Array, told: Array, inside: Array) -> tuple[Array, ...]:
        """pJ, words read and written, and sums that come, of `moved` (N,) words of the output that come to a level of one
        instance, where nothing is filtered, and go back but for the first time: compressed, those whose sums are not zero by
        then, or all."""
        words, density, volume = self.words, min(1.0, self.accesses.densities[t]), self.words.once[t]
        visits = moved / volume
        some = -expm1s(log1p(-density) / visits) if density < 1.0 else np.ones_like(visits)
        nonzero = moved * (1.0 - (1.0 - some) * density / (visits * some)) if density > 0.0 else 0.0 * moved
        found = []
        for count, back, bits in ((nonzero, nonzero - volume * density, told), (moved, moved - volume, None)):
            count, back = (np.maximum(0.0, part * (1.0 - 2e-6) - 1e-12 * moved - 4.0) for part in (count, back))
            put, get = (words.each(s, action, bits) for action in ("update", "read"))
            leave = words.each(child, "read", None if bits is None else inside, wires=False) if words.drains else 0.0
            fill = words.each(child, "fill", None if bits is None else inside)
            size = 1.0 if bits is None else 1.0 + bits / float(self.chip.word_bits[s])
            found.append((count * (put + leave) + back * (get + fill), back * size, count * size, count))
        return tuple(np.minimum(*pair) for pair in zip(*found, strict=True))

    def leave(self, t: int, child: int | None, told: Array) -> Array | float:
        """pJ of reading a word of the output where it leaves for the parent."""
        return 0.0 if child is None or not self.words.drains else self.words.price(t, child, "read", told, wires=False)

    def transfer(self, level: int, read: Array, written: Array) -> Array:
        """(n,) cycles that the words take."""
        chip = self.chip
        cycles: Array = np.zeros(np.broadcast(read, written).shape)
        limits = chip.read_bandwidth[level], chip.write_bandwidth[level], chip.bandwidth[level]
        for words, bandwidth in zip((read, written, read + written), limits, strict=True):
            cycles = np.maximum(cycles, np.floor(words / bandwidth * (1.0 - 1e-6)))  # 0 where it is not limited
        return cycles
