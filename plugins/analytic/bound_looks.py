"""What it costs at least that filters read the metadata of what they look at: a part of the lower bound (`bound_inner`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .bound_tiles import possible
from .bound_words import SHARE

if TYPE_CHECKING:
    from .bound_inner import InnerTiles, Ways
    from .bound_links import Handed

WORTH = 1e-3
"""Of the least energy: where it is less that filters look at, it is left out."""


@attrs.frozen(eq=False)
class Looks:
    """Of the link between a level and the next one inside."""

    inner: InnerTiles
    choices: list[tuple[frozenset[int], frozenset[int]]]
    """What mechanisms may do at the level: the tensors that they hold back there, and those that they look at."""

    @classmethod
    def of(cls, inner: InnerTiles) -> Looks:
        """With no choice where tensors pass by, where filters further out may hold back as well, and without `stay`: then more
        words need not be held back more."""
        known, places = inner.accesses, inner.accesses.places
        acting = [a for a in places.actions if a.place.storage is not None and a.kind.any()]
        further_out = any((a.place.storage or 0) < inner.s for a in acting)
        told = known.stay and inner.layout.stored.all() and not further_out
        return cls(inner, known.choices(inner.s) if told else [])

    def added(self, pj: Array, energy: Array, still: Array, own: list[Handed], ways: Ways) -> Array:
        """`pj` (K, N) by class and, in place, `energy` (K, D, n) by loop and tile, with what filters look at; the former as
        far as metadata in the tiles of a class are those in the largest tile."""
        inner, least, (d, tile) = self.inner, energy.min(), np.divmod(energy.min(axis=0).argmin(), energy.shape[2])
        row = np.flatnonzero(inner.tiles == tile)
        if not self.choices or self._least(int(d), row, ways).min() <= least * (1.0 + WORTH):
            return pj
        for loop, rows in (one for one in possible(inner.loops) if one[1].size):
            energy[:, loop, inner.tiles[rows]] = self._least(loop, rows, ways)
        told: Array = np.ones(1)
        for t in inner.layout.operands:
            most = inner.words.told_bits(t, np.full(1, inner.words.volumes[t]))
            told = np.minimum(told, inner.words.told_bits(t, inner.outer.words[t]) / most) if most > 0.0 else told
        return np.where(np.isinf(pj), pj, (1.0 - told) * pj + told * inner.in_classes(energy, still, own))

    def _least(self, d: int, rows: Array, ways: Ways) -> Array:
        parts = [self.inner.part(t, d, rows) for t in range(self.inner.layout.T)]
        return self.inner.least(d, rows, parts, ways, self)

    def looking(self, through: Mapping[int, tuple[Array, Array]], looked: Mapping[int, Array]) -> Array:
        """(n,) pJ that are added to the share of what moves, `through` by tensor the share and the whole: whatever the filters
        are, they let through the whole of what they do not hold back, and read all metadata of what they look at, `looked`."""
        found = np.full(1, np.inf)
        for targets, leaders in self.choices:
            more = np.zeros(1)
            for t, (share, whole) in through.items():
                added = whole if t not in targets else looked[t] if t in leaders else 0.0
                more = more + (1.0 - share) * added
            found = np.minimum(found, more)
        return found

    def metadata(self, t: int, moved: Array) -> Array:
        """(n,) pJ of reading all metadata of so many words of a tensor, in tiles of the largest size, or words with zeros in
        their place."""
        inner, words, s = self.inner, self.inner.words, self.inner.s
        if t == inner.layout.output:
            return np.zeros(1)
        packed = words.each(s, "read", words.told_bits(t, np.full(1, words.volumes[t])))
        plain = words.each(s, "read", None) / words.density[t] if words.density[t] > 0.0 else np.inf
        told = np.minimum(packed, plain) - words.each(s, "read", np.zeros(1))
        return inner.accesses.needed(t, s, moved, every=True) * np.maximum(0.0, told) * SHARE
