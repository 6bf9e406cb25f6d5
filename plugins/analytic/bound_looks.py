"""What it costs at least that filters read the metadata of what they look at: a part of the lower bound (`bound_inner`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .bound_words import SHARE

if TYPE_CHECKING:
    from .bound_inner import InnerTiles
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

    def added(self, pj: Array, energy: Array, own: list[Handed], given: tuple[Any, ...]) -> tuple[Array, Array]:
        """`pj` (K, N) by class and `energy` (K, D, n) by loop and tile, with what filters look at; the former as far as metadata
        in the tiles of a class are those in the largest tile. `given` as `InnerTiles.least` has it."""
        inner, least, (d, tile) = self.inner, energy.min(), np.divmod(energy.min(axis=0).argmin(), energy.shape[2])
        if not self.choices or inner.least(len(pj), given, self, tile)[:, d, tile].min() <= least * (1.0 + WORTH):
            return pj, energy
        energy = inner.least(len(pj), given, self)
        told: Array = np.ones(1)
        for t in inner.layout.operands:
            most = inner.words.told_bits(t, np.full(1, inner.words.volumes[t]))
            told = np.minimum(told, inner.words.told_bits(t, inner.outer.words[t]) / most) if most > 0.0 else told
        return np.where(np.isinf(pj), pj, (1.0 - told) * pj + told * inner.in_classes(energy, own)), energy

    def kinds(self, tensors: Sequence[int]) -> Array:
        """(choices, T) of some tensors: what filters read of what they hold back, nothing (0) or all metadata (2), or that they
        hold back nothing (1). Whatever they are, they let through all that they do not hold back."""
        kinds = [[1 if t not in targets else 2 * (t in leaders) for t in tensors] for targets, leaders in self.choices]
        return np.array(kinds, dtype=np.int64)

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
