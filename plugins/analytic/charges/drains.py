"""`drains`: results are read where they leave; `sums`: what no product reaches is neither updated nor moved."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, PerLevel, PerTile

from ..actions import NONE
from ..computes import Computes
from ..nest import Nest
from ..removal import Removal
from ..stored import StoredTiles
from ..traffic import Traffic


@attrs.frozen(eq=False)
class OutputCounts:
    """Accesses of one instance to the output, (S, B)."""

    read: PerLevel
    """Those for the parent among them."""
    fill: PerLevel
    update: PerLevel
    leaving: PerLevel
    """Reads for the parent."""


class OutputVisits:
    """What the output's counts with `drains`, `sums` or both are made of; all (B,)."""

    def __init__(
        self, nest: Nest, traffic: Traffic, stored: StoredTiles, packed: PerTile, removal: Removal, computes: Computes,
        drains: bool, sums: bool,
    ) -> None:  # fmt: skip
        self.drains, self.sums = drains, sums
        self.nest, self.removal, self.computes = nest, removal, computes
        self.lay, self.t = nest.layout, nest.layout.output
        self.packed, self.occupied = packed[self.t], stored.occupied[self.t]
        self.density = self.lay.occupancies[self.t].density
        self.updates = traffic.updates[self.t]
        self.reads = traffic.reads[self.t] - (traffic.leaving if drains else 0.0)
        self.fills, self.drained = traffic.fills[self.t], traffic.leaving

    def counts(self, read: PerLevel, fill: PerLevel, update: PerLevel) -> OutputCounts:
        """From its reads, fills and updates (S, B) with neither charge."""
        lay, t = self.lay, self.t
        kept = self._kept()
        levels = [s for s in range(lay.S) if lay.stored[t, s]]
        read, fill, update, leaving = read.copy(), fill.copy(), update.copy(), self.drained.copy()
        for s, (above, here) in zip(levels, kept, strict=True):
            occupied = self.occupied[s]
            used = np.where(self.packed[s] & (occupied > 0.0), occupied, 1.0)
            if s:
                holders = self._holders(s, self.drained[s], s)
                leave, come = self._partial(s, self.drained[s], self.fills[s], holders, above)
                leaving[s] = self.drained[s] * leave / used
                fill[s] = self.fills[s] * come / used
            child = lay.child(t, s)
            if child is None:
                happens = np.minimum(self._happens(s), here) if self.sums else here
                words = self.updates[s] - self.reads[s]
                visits = np.where(words > 0.0, self.updates[s] / np.where(words > 0.0, words, 1.0), 0.0)
                touched = words * (1.0 - (1.0 - happens) ** visits)
                done = self.updates[s] * happens
                update[s], read[s] = done / used, (done - touched) / used
            else:
                holders = self._holders(s, self.updates[s], child)
                leave, come = self._partial(s, self.drained[child], self.fills[child], holders, here)
                update[s] = self.updates[s] * leave / used
                read[s] = self.reads[s] * come / used
            if self.drains:
                read[s] += leaving[s]
        return OutputCounts(np.maximum(read, 0.0), fill, update, leaving)

    def _kept(self) -> list[tuple[PerDesign, PerDesign]]:
        """Per level, the share of the accesses that filters further out leave, and that those up to here do."""
        removal, t, lay = self.removal, self.t, self.lay
        comes, goes = removal.along()
        found = []
        for s in np.flatnonzero(lay.stored[t]):
            acts = removal.kind[t, s] != NONE
            found.append((1.0 - comes[t, s], 1.0 - np.where(acts, removal.still[t, s], goes[t, s])))
        return found

    def _holders(self, s: int, words: PerDesign, child: int) -> PerDesign:
        """In how many places the products of a word are added, if so many `words` arrive from or leave an instance of s."""
        once = self.drained[child] - self.fills[child]
        visits = np.where(once > 0.0, self.drained[child] / np.where(once > 0.0, once, 1.0), 1.0)
        every = self.nest.tile_words[self.t, 0] * np.maximum(visits, 1.0)
        return np.maximum(1.0, words * self.nest.instances_used[s] / every)

    def _partial(
        self, s: int, words: PerDesign, back: PerDesign, holders: PerDesign, kept: PerDesign
    ) -> tuple[Array, Array]:
        """(B,) shares of the words of a tile that leave, and that come back, as level s counts them: those of visits that
        filters leave, `kept` (B,), and where it has metadata, whose sum is not zero by then. That a visit takes place and
        that it brings a product are no two chances."""
        found, stays = np.ones((2, len(words))), np.zeros(len(words))
        rows = np.flatnonzero(self.packed[s]) if self.sums else np.zeros(0, dtype=np.int64)
        if not rows.size:
            return kept, kept
        words, back, holders = (part[rows] for part in (words, back, holders))
        once = words - back
        visits = np.maximum(1.0, words / np.where(once > 0.0, once, np.inf))
        visits = np.where(once > 0.0, visits, 1.0)
        empty = (1.0 - min(1.0, self.density)) ** (1.0 / holders)
        d, none = 1.0 - empty, empty ** (1.0 / visits)
        gap = np.where(none < 1.0, 1.0 - none, 1.0)
        leaves = np.where(none < 1.0, 1.0 - none * d / (visits * gap), 0.0)
        more = np.where(visits > 1.0, visits - 1.0, 1.0)
        comes = np.where(visits > 1.0, (visits * leaves - d) / more, 0.0)
        found[:, rows], stays[rows] = np.clip([leaves, comes], 0.0, 1.0), none
        leaves, comes = found
        # of a visit that takes place, the chance that it brings a word no product, over that of any visit
        brings_none = np.maximum(0.0, 1.0 - (1.0 - stays) / np.where(kept > 0.0, kept, 1.0))
        ratio = np.where(stays > 0.0, brings_none / np.where(stays > 0.0, stays, 1.0), 1.0)
        return kept * (1.0 - ratio * (1.0 - leaves)), kept * comes

    def _happens(self, s: int) -> PerDesign:
        """The share of the updates of level s, next to the compute units, that any of the computes they add leaves."""
        nest = self.nest
        computes = nest.instances_used[self.lay.S] / nest.instances_used[s] * nest.steps[-1]
        if nest.remainders is not None:
            computes = nest.computes / nest.instances_used[s]
        updates = np.where(self.updates[s] > 0.0, self.updates[s], 1.0)
        together = np.maximum(1.0, computes / updates)
        carried = np.where(self.packed[s], self.computes.nonzero, self.computes.actual) / nest.computes
        return 1.0 - (1.0 - np.clip(carried, 0.0, 1.0)) ** together
