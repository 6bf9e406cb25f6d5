"""`drains`: results are read where they leave, and what no product reaches is not updated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel, PerTensor

from ..actions import NONE
from ..computes import Computes
from ..nest import Nest
from ..removal import Removal
from ..stored import StoredTiles
from ..traffic import Traffic


@attrs.frozen(eq=False)
class OutputCounts:
    """Accesses of one instance to the output, (S, C)."""

    read: PerLevel
    """Those for the parent among them."""
    fill: PerLevel
    update: PerLevel
    leaving: PerLevel
    """Reads for the parent."""


def drained(
    nest: Nest, traffic: Traffic, stored: StoredTiles, packed: PerTensor, removal: Removal, computes: Computes,
    wide: Callable[[Array], Array], counts: Sequence[PerLevel],
) -> OutputCounts:  # fmt: skip
    """The output's counts where it drains; `counts` (S, C): its reads, fills and updates without, `wide`: C columns of B."""
    return _Output(nest, traffic, stored, packed, removal, computes, wide).counts(*counts)


class _Output:
    """What the output's counts are made of; all (B,)."""

    def __init__(
        self, nest: Nest, traffic: Traffic, stored: StoredTiles, packed: PerTensor, removal: Removal, computes: Computes,
        wide: Callable[[Array], Array],
    ) -> None:  # fmt: skip
        self.nest, self.removal, self.computes, self.wide = nest, removal, computes, wide
        self.lay, self.t = nest.layout, nest.layout.output
        self.packed, self.occupied = packed[self.t], stored.occupied[self.t]
        self.density = self.lay.occupancies[self.t].density
        self.updates = traffic.updates[self.t]
        self.reads = traffic.reads[self.t] - traffic.leaving
        self.fills, self.drained = traffic.fills[self.t], traffic.leaving

    def counts(self, read: PerLevel, fill: PerLevel, update: PerLevel) -> OutputCounts:
        lay, t, wide = self.lay, self.t, self.wide
        kept = self._kept()
        levels = [s for s in range(lay.S) if lay.stored[t, s]]
        read, fill, update = read.copy(), fill.copy(), update.copy()
        leaving = wide(self.drained)
        leaving = leaving.copy() if leaving is self.drained else leaving
        for s, (above, here) in zip(levels, kept, strict=True):
            occupied = self.occupied[s]
            used = np.where(occupied > 0.0, occupied, 1.0)
            if s:
                leaves, comes = self._partial(
                    self.drained[s], self.fills[s], used, self._holders(s, self.drained[s], s)
                )
                leaving[s] = wide(self.drained[s]) * above * wide(leaves)
                fill[s] = wide(self.fills[s]) * above * wide(comes)
            child = lay.child(t, s)
            if child is None:
                happens = np.minimum(self._happens(s), here)
                words = self.updates[s] - self.reads[s]
                visits = np.where(words > 0.0, self.updates[s] / np.where(words > 0.0, words, 1.0), 0.0)
                touched = wide(words) * (1.0 - (1.0 - happens) ** wide(visits))
                done, used = wide(self.updates[s]) * happens, wide(used)
                update[s], read[s] = done / used, (done - touched) / used
            else:
                holders = self._holders(s, self.updates[s], child)
                leaves, comes = self._partial(self.drained[child], self.fills[child], used, holders)
                update[s] = wide(self.updates[s]) * here * wide(leaves)
                read[s] = wide(self.reads[s]) * here * wide(comes)
            read[s] += leaving[s]
        return OutputCounts(np.maximum(read, 0.0), fill, update, leaving)

    def _kept(self) -> list[tuple[PerDesign, PerDesign]]:
        """Per level, the share of the accesses that filters further out leave, and that those up to here do."""
        removal, t, lay = self.removal, self.t, self.lay
        above, found = np.ones(removal.share.shape[-1]), []
        for s in range(lay.S):
            here = np.where(removal.kind[t, s] != NONE, 1.0 - removal.share[t, s], above)
            if lay.stored[t, s]:
                found.append((above, here))
            above = here
        return found

    def _holders(self, s: int, words: PerDesign, child: int) -> PerDesign:
        """In how many places the products of a word are added, if so many `words` arrive from or leave an instance of s."""
        once = self.drained[child] - self.fills[child]
        visits = np.where(once > 0.0, self.drained[child] / np.where(once > 0.0, once, 1.0), 1.0)
        every = self.nest.tile_words[self.t, 0] * np.maximum(visits, 1.0)
        return np.maximum(1.0, words * self.nest.instances_used[s] / every)

    def _partial(self, words: PerDesign, back: PerDesign, used: PerDesign, holders: PerDesign) -> tuple[Array, Array]:
        """Shares of the words of a tile that leave, and that come back, because their sum is not zero yet."""
        found, rows = np.ones((2, len(words))), np.flatnonzero(self.packed)
        if not rows.size:
            return found[0], found[1]
        words, back, used, holders = (part[rows] for part in (words, back, used, holders))
        once = words - back
        visits = np.maximum(1.0, words / np.where(once > 0.0, once, np.inf))
        visits = np.where(once > 0.0, visits, 1.0)
        empty = (1.0 - min(1.0, self.density)) ** (1.0 / holders)
        d, stays = 1.0 - empty, empty ** (1.0 / visits)
        gap = np.where(stays < 1.0, 1.0 - stays, 1.0)
        leaves = np.where(stays < 1.0, 1.0 - stays * d / (visits * gap), 0.0)
        more = np.where(visits > 1.0, visits - 1.0, 1.0)
        comes = np.where(visits > 1.0, (visits * leaves - d) / more, 0.0)
        found[:, rows] = np.clip([leaves, comes], 0.0, 1.0) / used
        return found[0], found[1]

    def _happens(self, s: int) -> PerDesign:
        """The share of the updates of level s, next to the compute units, that any of the computes they add leaves."""
        nest, wide = self.nest, self.wide
        lanes = nest.instances_used[self.lay.S] / nest.instances_used[s]
        updates = np.where(self.updates[s] > 0.0, self.updates[s], 1.0)
        together = np.maximum(1.0, lanes * nest.steps[-1] / updates)
        carried = np.where(wide(self.packed), self.computes.nonzero, self.computes.actual) / wide(nest.computes)
        return 1.0 - (1.0 - np.clip(carried, 0.0, 1.0)) ** wide(together)
