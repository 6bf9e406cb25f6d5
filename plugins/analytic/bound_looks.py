"""What it costs at least that filters read the metadata of what they look at: a part of the lower bound (`bound_inner`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .bound_words import SHARE

if TYPE_CHECKING:
    from .bound_inner import InnerTiles


def looking(
    choices: Sequence[tuple[frozenset[int], frozenset[int]]],
    share: Mapping[int, Array],
    whole: Mapping[int, Array],
    looked: Mapping[int, Array],
) -> Array:
    """(n,) pJ that are added to the `share` of what moves: whatever the filters are, they let through `whole` of what they do
    not hold back, and read all metadata of what they look at, `looked`."""
    found = np.full(1, np.inf)
    for targets, leaders in choices:
        more = np.zeros(1)
        for t, part in share.items():
            added = whole[t] if t not in targets else looked[t] if t in leaders else 0.0
            more = more + (1.0 - part) * added
        found = np.minimum(found, more)
    return found


def looked_at(inner: InnerTiles, t: int, moved: Array) -> Array:
    """(n,) pJ of reading all metadata of so many words of a tensor, in tiles of the largest size, or words with zeros in their
    place."""
    if t == inner.layout.output:
        return np.zeros(1)
    words, s, density = inner.words, inner.s, inner.words.density[t]
    packed = words.each(s, "read", words.told_bits(t, np.full(1, words.volumes[t])))
    plain = words.each(s, "read", None) / density if density > 0.0 else np.inf
    told = np.minimum(packed, plain) - words.each(s, "read", np.zeros(1))
    return inner.accesses.needed(t, s, moved, every=True) * np.maximum(0.0, told) * SHARE


def told_of_classes(inner: InnerTiles) -> Array:
    """(N,) by class, the metadata of a word in the level's tiles over those in the largest one, at least."""
    found: Array = np.ones(1)
    for t in inner.layout.operands:
        most = inner.words.told_bits(t, np.full(1, inner.words.volumes[t]))
        found = np.minimum(found, inner.words.told_bits(t, inner.outer.words[t]) / most) if most > 0.0 else found
    return found
