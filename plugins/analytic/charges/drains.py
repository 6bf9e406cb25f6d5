"""`drains`: results are read where they leave, and what no product reaches is not updated."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Charge
from sparsemap.pieces.contracts.base import Array, PerDesign

from ..actions import NONE
from ..run import Run, View


@attrs.frozen(kw_only=True)
class Drains(Charge):
    """The output leaves every level for its parent; an update happens where a compute does."""

    type_name: ClassVar[str] = "drains"
    fewer_updates: ClassVar[bool] = True

    def stored(self, run: Run) -> None:
        t = run.layout.output
        reads = run.traffic.reads.copy()
        reads[t] += run.traffic.leaving
        run.traffic = attrs.evolve(run.traffic, reads=reads)

    def moved(self, run: Run) -> None:
        assert run.view is not None
        _Output(run, run.view).count()


class _Output:
    """The output's counts in one view; all (B,)."""

    def __init__(self, run: Run, view: View) -> None:
        self.run, self.view, self.t = run, view, run.layout.output
        self.packed = run.packed[self.t]
        self.density = run.layout.occupancies[self.t].density
        dense = run.traffic
        self.updates = dense.updates[self.t]
        self.reads = dense.reads[self.t] - dense.leaving
        self.fills, self.drained = dense.fills[self.t], dense.leaving

    def count(self) -> None:
        lay, t, counts, wide = self.run.layout, self.t, self.view.counts, self.view.wide
        kept = self._kept()
        levels = [s for s in range(lay.S) if lay.stored[t, s]]
        read, fill, update = (part[t].copy() for part in (counts.read, counts.fill, counts.update))
        leaving = wide(self.drained)
        leaving = leaving.copy() if leaving is self.drained else leaving
        for s, (above, here) in zip(levels, kept, strict=True):
            occupied = self.run.occupied[t, s]
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
        self._enter(np.maximum(read, 0.0), fill, update)
        self.run.leaving = leaving

    def _kept(self) -> list[tuple[PerDesign, PerDesign]]:
        """Per level, the share of the accesses that filters further out leave, and that those up to here do."""
        removal, t, lay = self.view.removal, self.t, self.run.layout
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
        every = self.run.nest.tile_words[self.t, 0] * np.maximum(visits, 1.0)
        return np.maximum(1.0, words * self.run.nest.instances_used[s] / every)

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
        run, compute = self.run, self.view.compute
        lanes = run.nest.instances_used[run.layout.S] / run.nest.instances_used[s]
        updates = np.where(self.updates[s] > 0.0, self.updates[s], 1.0)
        together = np.maximum(1.0, lanes * run.nest.steps[-1] / updates)
        wide = self.view.wide
        carried = np.where(wide(self.packed), compute.nonzero, compute.actual) / wide(np.asarray(run.total))
        return 1.0 - (1.0 - np.clip(carried, 0.0, 1.0)) ** wide(together)

    def _enter(self, read: Array, fill: Array, update: Array) -> None:
        """Sets the counts, in place, as nothing else reads them; metadata go with their words."""
        t, counts, metadata = self.t, self.view.counts, self.view.metadata
        dense_reads, dense_updates = self.view.wide(self.reads + self.drained), self.view.wide(self.updates)
        counts.gone_read[t] = np.minimum(counts.gone_read[t], np.maximum(dense_reads - read, 0.0))
        counts.gone_update[t] = np.minimum(counts.gone_update[t], np.maximum(dense_updates - update, 0.0))
        begin = t * read.size
        mine = np.flatnonzero((metadata.cell >= begin) & (metadata.cell < begin + read.size))
        if mine.size:  # one run of entries, and another one of those that are there twice
            parts = np.split(mine, np.flatnonzero(np.diff(mine) > 1) + 1)
            runs = [(slice(part[0], part[-1] + 1), metadata.cell[part[0] : part[-1] + 1] - begin) for part in parts]
        for name, new in (("read", read), ("fill", fill), ("update", update)):
            old = getattr(counts, name)[t]
            if mine.size:
                factor = (new / np.where(old > 0.0, old, 1.0)).reshape(-1)
                for rows, cell in runs:
                    changed = factor[cell]
                    for part in getattr(metadata, name):
                        part[rows] *= changed
            old[:] = new
