"""Loops end with the data: positions of a dimension behind its last one do not exist (docs/model.md, `remainders`)."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign

from .nest import Nest


@attrs.frozen(eq=False, slots=False)
class Remainders:
    """Of the index vectors of some loops of a dimension, the share that begins before the end of the data, by tensor and link;
    loops that are left out stay at their first turn. All (B,)."""

    nest: Nest

    @cached_property
    def _dims(self) -> list[int]:
        lay = self.nest.layout
        return [d for d in range(lay.D) if lay.ends[d] < lay.sizes[d]]

    @cached_property
    def _turns(self) -> Array:
        """(L, D, B) digits of the last position of every dimension, in the number system of its loops."""
        lay = self.nest.layout
        found, rest = np.zeros(self.nest.bounds.shape), np.repeat((lay.ends - 1.0)[:, None], self.nest.batch, axis=1)
        for group in lay.inwards:
            whole = np.floor(rest / self.nest.bounds[group])
            found[group] = rest - whole * self.nest.bounds[group]
            rest = whole
        return found

    def share(self, d: int, among: Array) -> PerDesign:
        """`among`: (L, B) bool, the loops by group."""
        lay, bounds = self.nest.layout, self.nest.bounds[:, d]
        some, every = np.ones(self.nest.batch), np.ones(self.nest.batch)
        for group in lay.inwards:
            turn = self._turns[group, d]
            some = np.where(among[group], turn * every + some, np.where(turn > 0.0, every, some))
            every = np.where(among[group], every * bounds[group], every)
        return some / every

    @cached_property
    def _stays(self) -> Array:
        """(T, S, L, D, B) bool: temporal loops of the blocks up to a level over which the tile that it hands on stays (4.1)."""
        nest, lay = self.nest, self.nest.layout
        found = np.zeros((lay.T, lay.S, *nest.bounds.shape), dtype=bool)
        for t in range(lay.T):
            for s in range(lay.S - 1):
                still = np.ones(nest.batch, dtype=bool)
                for block in range(s, -1, -1):
                    group = lay.temporal[block]
                    for position in range(lay.D - 1, -1, -1):
                        dims, bound = nest.order[group, position].astype(np.int64), nest.loop_bounds[group, position]
                        still = still & ~(lay.relevant[t][dims] & (bound > 1.0))
                        np.put_along_axis(found[t, s, group], dims[None], still[None], axis=0)
        return found

    def _around(self, t: int, link: int, level: int, d: int, spatial: bool) -> Array:
        """(L, B) bool: loops of a dimension that does not move tensor t, at whose turns the instances of a `level` are sent
        words by the level `link`: temporal ones over which the tile does not stay and, if `spatial`, the instances."""
        lay = self.nest.layout
        found = np.zeros((len(self.nest.bounds), self.nest.batch), dtype=bool)
        for block in range(link + 1):
            found[lay.temporal[block]] = ~self._stays[t, link, lay.temporal[block], d]
        for block in range(level):
            group = lay.spatial[block]
            if group is not None:
                found[group] = spatial
        return found

    def words(self, t: int, link: int, level: int) -> PerDesign:
        """Of the words that the level `link` exchanges for an instance of `level`, the share that there are, on average over
        its instances; link -1: of the words that an instance ever sees."""
        lay, found = self.nest.layout, np.ones(self.nest.batch)
        for d in self._dims:
            if lay.relevant[t, d]:
                found = found * (lay.ends[d] / lay.sizes[d] if lay.cut[t, d] else 1.0)
            else:
                found = found * self.share(d, self._around(t, link, level, d, True))
        return found

    def fullest(self, t: int, link: int, level: int) -> PerDesign:
        """Of these the instance with the most has so many times the mean."""
        lay, found = self.nest.layout, np.ones(self.nest.batch)
        for d in self._dims:
            if lay.relevant[t, d]:
                own = np.ones((len(self.nest.bounds), self.nest.batch), dtype=bool)
                for block in range(level):
                    group = lay.spatial[block]
                    if group is not None:
                        own[group] = False
                found = found * (self.share(d, own) / (lay.ends[d] / lay.sizes[d]))
            else:
                mean = self.share(d, self._around(t, link, level, d, True))
                found = found * (self.share(d, self._around(t, link, level, d, False)) / mean)
        return found

    @cached_property
    def turns(self) -> PerDesign:
        """Temporal iterations of the fullest compute unit."""
        lay, found = self.nest.layout, self.nest.steps[-1]
        own = np.zeros((len(self.nest.bounds), self.nest.batch), dtype=bool)
        own[lay.temporal] = True
        for d in self._dims:
            found = found * self.share(d, own)
        return np.floor(found + 0.5)
