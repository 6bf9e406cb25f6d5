"""What it costs at least to hand words from a level to the next inner one: a part of the lower bound (`bound`).

The children of a level hold a tile together: that of one of them times the way to share the fan-out. If it is not all of the
level's own tile, some loop inside that is the innermost around it. What this loop moves is delivered in each of its steps. Any
other tensor either stays, as no loop inside moves it, or comes again with every tile of the level. And a word that R children
use crosses the tree to all of them and is written R times: the R of tensors that share a fan-out cannot all be small. Without
the charge `network`, neither is counted: so searches under `timeloop` stay as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .bound_filters import LeastAccesses
from .bound_tiles import OuterTiles, TileGrid, delivered, possible
from .bound_words import LeastWords

SLOWER = 1.15, 1.6, 2.5, 5.0
"""Few children save energy and take longer: times, over those of the outermost level, that are told apart."""


Pays = tuple[int, float, float]
"""A tensor, pJ of wires for a bit of it, and how many children there are besides one."""


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

    def between(
        self, s: int, outer: OuterTiles, splits: Array | None, work: float, least: float
    ) -> tuple[Array, Array]:
        """pJ and cycles (N,) by class of a level between the outermost and the innermost one: no fewer words leave it than
        have come, and than the tiles inside need. `splits`: ways (D, m) to share its fan-out; None: too many. Or (K, N), K
        pairs by how many children work: `work` cycles of computing for one, where all else takes `least` or more."""
        lay, ones = self.layout, [np.ones(1)] * self.layout.T
        moved = [np.maximum(outer.moved[t], self.touched[t]) for t in range(lay.T)]
        own = [self.handed(t, s, moved[t], *((outer.stays[t], outer.words[t]) if s == 1 else (ones[t], ones[t])))
               for t in range(lay.T)]  # fmt: skip
        energy, cycles = sum((part.pj for part in own), start=np.zeros(1)), self.busy(s, own)
        if outer.grid is None or splits is None:
            return energy, cycles
        inside = self._inside(s, outer, outer.grid, splits, own, [work / (least * slower) for slower in SLOWER])
        if inside is None:
            return energy, cycles  # no design fits
        slowest = least * np.array([0.0, *SLOWER])[: len(inside[0]), None]
        return np.maximum(energy, inside[0]), np.maximum(np.maximum(cycles, inside[1]), slowest)

    def _inside(
        self, s: int, outer: OuterTiles, grid: TileGrid, splits: Array, own: list[Handed], few: list[float]
    ) -> tuple[Array, Array] | None:
        """pJ (K, N), by how many of `few`, descending, are no fewer than the children, and cycles (N,) that the tiles need which
        the children hold together; None: none fits."""
        lay, fits = self.layout, grid.fits(self.words, s + 1)
        tiles = np.flatnonzero(grid.spread(fits, splits))
        extents = grid.extents[:, tiles]
        words, loops = grid.words(extents), lay.sizes[:, None] / extents
        known = [t for t in range(lay.T) if not lay.holes[t] and lay.stored[t, s] and lay.child(t, s) == s + 1]
        sent = {t: delivered(lay, t, words[t] * self.inside[t], grid.widths(t, extents), extents, loops) for t in known}
        limit = float(splits.prod(axis=0).max())
        shares = [(np.ones(lay.D), np.ones(len(tiles), dtype=bool), limit)]
        if self.words.network:
            shares = list(grid.shares(fits, limit, tiles))
        few = few if self.words.network and s == lay.S - 2 == 1 else []
        tier = [sum(most <= count for count in few) for _, _, most in shares]
        ways: dict[Any, Array] = {}
        for k, (_, some, _), pays in zip(tier, shares, self._copied(s, known, shares), strict=True):
            ways[k, pays] = ways[k, pays] | some if (k, pays) in ways else some
        energy, busy = np.full((max(tier) + 1, lay.D, len(fits)), np.inf), np.full((lay.D, len(fits)), np.inf)
        still: Array = np.zeros((lay.D, lay.T))
        """pJ of tensors that a loop does not move, as `energy` has them."""
        for d, rows in possible(loops):
            if not rows.size:
                continue
            parts = []
            for t in range(lay.T):
                least = np.full(len(rows), self.touched[t])
                least = np.maximum(sent[t][d][rows], least) if t in sent else least
                stays = extents[~lay.relevant[t]][:, rows].prod(axis=0)
                parts.append(self.handed(t, s, least, stays, words[t][rows]))
                still[d, t] = parts[t].pj.max()
            alone, each = sum(part.pj for part in parts), np.full((len(energy), len(rows)), np.inf)
            for (k, pays), some in ways.items():
                more: Array = np.zeros(len(rows))
                for t, wires, others in pays:
                    more = more + parts[t].bits * wires + others * parts[t].child_pj
                np.minimum(each[k], more, out=each[k], where=some[rows])
            energy[:, d, tiles[rows]] = alone + each
            busy[d, tiles[rows]] = self.busy(s, parts)
        if np.isinf(energy).all():
            return None
        cycles = grid.least_inside(busy.min(axis=0))[outer.tile]
        if s > 1 or not self.words.network:
            return grid.least_inside(energy[0].min(axis=0))[None, outer.tile], cycles
        again, steps = {}, (lay.sizes[:, None] / grid.extents).prod(axis=0)
        for t in (t for t in known if not lay.windowed[t]):
            whole, stays = grid.words(grid.extents)[t], grid.extents[~lay.relevant[t]].prod(axis=0)
            come = np.maximum(steps * whole * self.inside[t], self.touched[t])
            again[t] = self.handed(t, s, come, stays, whole).pj[outer.tile]
        found = energy[:, outer.loop, outer.tile]
        for d in range(lay.D):
            stay = [t for t in again if not lay.relevant[t, d]]
            more = sum((np.maximum(0.0, again[t] - still[d, t]) for t in stay), start=np.zeros(1))
            for k, here in enumerate(energy[:, d]):
                found[k] = np.minimum(found[k], grid.least_inside(here, d)[outer.tile] + more)
                for t in stay:
                    least = grid.least_inside(here, d, ~lay.relevant[t])[outer.tile]
                    found[k] = np.minimum(found[k], least + np.maximum(0.0, own[t].pj - still[d, t]))
        return found, cycles

    def _copied(self, s: int, known: list[int], shares: list[tuple[Array, Array, float]]) -> list[tuple[Pays, ...]]:
        """What several children for each word cost, for each of the `shares` as of `TileGrid.shares`."""
        found: list[tuple[Pays, ...]] = [()] * len(shares)
        copies = np.array([along for along, _, _ in shares])
        for t in known:
            each = copies[:, ~self.layout.relevant[t]].prod(axis=1)
            wires = (self.words.wires_pj(s, each) - self.words.wires_pj(s, np.ones(1))) / float(self.chip.word_bits[s])
            for k, (one, pj) in enumerate(zip(each, np.broadcast_to(np.maximum(wires, 0.0), each.shape), strict=True)):
                if one > 1.0:
                    found[k] += ((t, float(pj), float(one) - 1.0),)
        return found

    def handed(self, t: int, s: int, words: Array, stays: Array, held: Array) -> Handed:
        """Handing over `words` (n,) to its children, out of tiles of `held` words or more, whose words serve `stays`
        computes."""
        lay, child, none = self.layout, self.layout.child(t, s), np.zeros(1)
        if not lay.stored[t, s] or (child is None and t == lay.output and self.fewer_updates):
            return Handed(none, none, none, np.zeros(len(words)), np.zeros(len(words)))
        told, small = self.words.told_bits(t, held), np.zeros(1)
        alone = all(group is None for group in lay.spatial[:s])
        count, time = self.accesses.needed(t, s, words, stays), self.words.time(t, s, told)
        read = written = none
        if t == lay.output and self.fewer_updates:
            once = np.full_like(words, self.touched[t])
            if child and alone and not self.accesses.filters(t, s):
                pj, read, written = self.sums(t, s, child, np.maximum(words, self.words.volumes[t]), told, small)
                count = self.accesses.needed(t, s, once, stays)
            else:
                # of visits that bring a nonzero sum, or that a filter leaves, the fewer ones take place
                count = np.maximum(self.accesses.needed(t, s, words, stays, once), count / 2 if alone else 0.0)
                pj, written = (
                    count * (self.words.price(t, s, "update", told) + self.leave(t, child, small)),
                    count * time,
                )
        elif t == lay.output:
            pj, written = count * (self.words.price(t, s, "update", told) + self.leave(t, child, small)), count * time
        else:
            fill = 0.0 if child is None else self.words.price(t, child, "fill", small)
            pj, read = count * (self.words.price(t, s, "read", told) + fill), count * time
        adds = float(self.chip.add_pj["word"][s]) if self.words.network and lay.spatial[s] is not None else 0.0
        child_pj = count * (adds if t == lay.output or child is None else self.words.price(t, child, "fill", small))
        return Handed(pj, read, written, count * self.words.time(t, s, told) * float(self.chip.word_bits[s]), child_pj)

    def busy(self, s: int, parts: list[Handed]) -> Array:
        """(n,) cycles of a level."""
        read, written = (sum(words, start=np.zeros(1)) for words in zip(*(part[1:3] for part in parts), strict=True))
        return self.transfer(s, read / self.instances[s], written / self.instances[s])

    def sums(self, t: int, s: int, child: int, moved: Array, told: Array, inside: Array) -> tuple[Array, Array, Array]:
        """pJ, and words read and written, of `moved` (N,) words of the output that come to a level of one instance, where
        nothing is filtered, and go back but for the first time: compressed, those whose sums are not zero by then, or all."""
        words, density, volume = self.words, min(1.0, self.accesses.densities[t]), self.words.volumes[t]
        visits = moved / volume
        some = -np.expm1(np.log1p(-density) / visits) if density < 1.0 else np.ones_like(visits)
        nonzero = moved * (1.0 - (1.0 - some) * density / (visits * some)) if density > 0.0 else 0.0 * moved
        found = []
        for count, back, bits in ((nonzero, nonzero - volume * density, told), (moved, moved - volume, None)):
            count, back = (np.maximum(0.0, part * (1.0 - 2e-6) - 1e-12 * moved - 4.0) for part in (count, back))
            put, get = (words.each(s, action, bits) for action in ("update", "read"))
            leave = words.each(child, "read", None if bits is None else inside, wires=False) if words.drains else 0.0
            fill = words.each(child, "fill", None if bits is None else inside)
            size = 1.0 if bits is None else 1.0 + bits / float(self.chip.word_bits[s])
            found.append((count * (put + leave) + back * (get + fill), back * size, count * size))
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
