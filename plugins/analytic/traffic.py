"""Dense traffic: words delivered, multicast, partial sums (section 4 of the model). Everything is per instance."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import PerDesign, PerLevel, PerTile

from .layout import Layout
from .nest import Nest


@attrs.frozen(eq=False)
class Traffic:
    """Algorithmic counts of one instance; zero where a level does not store the tensor."""

    reads: PerTile
    fills: PerTile
    updates: PerTile
    leaving: PerLevel
    """(S, B) words of the output that the parent takes from an instance."""
    brought: PerTile
    """As `fills`, with positions that are no words."""
    distinct: tuple[tuple[PerDesign, ...], ...]
    """[t][s] (B,) different tiles among the children of one instance (4.2)."""


def dense_traffic(nest: Nest, drains: bool = False, first_fills: bool = False, padding: bool = False) -> Traffic:
    """Section 4. `drains`: what the parent takes from an instance is read there (docs/model.md, `drains`); `first_fills`:
    tiles of the output come from the parent the first time as well; `padding`: of operands, words alone move."""
    lay = nest.layout
    distinct = tuple(tuple(distinct_children(nest, t, s) for s in range(lay.S)) for t in range(lay.T))
    shape = (lay.T, lay.S, nest.batch)
    reads, fills, updates, leaving = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape[1:])
    for t in range(lay.T):
        delivered = delivered_words(nest, t)
        accesses = [words * children for words, children in zip(delivered, distinct[t], strict=True)]
        _bypass(lay, t, accesses, delivered)
        part = _partition(nest, t) if t == lay.output else None
        for s in range(lay.S):
            if not lay.stored[t, s]:
                if lay.streamed[t, s]:
                    reads[t, s] = fills[t, s] = np.floor(accesses[s] + 0.5)
                continue
            outermost = lay.parent(t, s) is None
            if part is None:
                reads[t, s] = np.floor(accesses[s] + 0.5)
                if not outermost:
                    fills[t, s] = np.trunc(delivered[s - 1])
            else:
                # the box of a strided output counts holes that no partial sum touches: never fewer than none
                updates[t, s] = np.floor(accesses[s] + 0.5)
                reads[t, s] = np.clip(np.floor(accesses[s] - part[s] + 0.5), 0.0, None)
                if not outermost:
                    fills[t, s] = np.clip(np.floor(delivered[s - 1] - part[s] + 0.5), 0.0, None)
                    leaving[s] = np.floor(delivered[s - 1] + 0.5)
    if nest.remainders is not None:
        _end(nest, reads, fills, updates, leaving)
    if first_fills:
        fills[lay.output] = leaving
    if drains:
        reads[lay.output] += leaving
    brought = fills
    for t in (t for t in range(lay.T) if padding and any(there is not None for there in lay.gaps[t])):
        from .charges.holes import word_share

        brought = fills.copy() if brought is fills else brought
        for s in range(lay.S):
            reads[t, s] *= word_share(nest, t, (lay.child(t, s) or lay.S) - 1, s)
            fills[t, s] *= word_share(nest, t, s - 1, None) if s else 1.0
    return Traffic(reads, fills, updates, leaving, brought, distinct)


def _end(nest: Nest, reads: PerTile, fills: PerTile, updates: PerTile, leaving: PerLevel) -> None:
    """What is left of dense counts where loops end with the data; of the output, words at their first visit are told apart."""
    lay, ends = nest.layout, nest.remainders
    assert ends is not None
    for t in range(lay.T):
        for s in np.flatnonzero(lay.handled[t]).tolist():
            serves = ends.words(t, (lay.child(t, s) or lay.S) - 1, s)
            comes = ends.words(t, s - 1, s) if s else np.zeros(nest.batch)
            if t != lay.output:
                reads[t, s] *= serves
                fills[t, s] *= comes
                continue
            seen, before, drained = ends.words(t, -1, s), updates[t, s] - reads[t, s], leaving[s] - fills[t, s]
            updates[t, s] *= serves
            leaving[s] *= comes
            reads[t, s] = np.maximum(0.0, updates[t, s] - before * seen)
            fills[t, s] = np.maximum(0.0, leaving[s] - drained * seen)


def delivered_words(nest: Nest, t: int) -> list[PerDesign]:
    """Per level, the words that one child instance receives over the whole run (4.1)."""
    lay = nest.layout
    unit = nest.steps[-1]
    if lay.linked[t]:
        from .windows import handed_on

        unit = handed_on(nest, t)
    if lay.windowed[t]:
        from .windows import window_delivered

        return [*(window_delivered(nest, t, s) for s in range(lay.S - 1)), unit]
    delivered: list[PerDesign] = []
    relevant = lay.relevant[t]
    reuse_outside = np.ones(nest.batch)
    for s in range(lay.S - 1):
        # temporal reuse: the run of irrelevant loops that lies innermost above the tile, looking through levels
        group = lay.temporal[s]
        moves = relevant[nest.order[group]]
        loop_bounds = nest.loop_bounds[group]
        run = np.ones(nest.batch)
        still = np.ones(nest.batch, dtype=bool)
        for position in range(lay.D - 1, -1, -1):
            bound = loop_bounds[position]
            still &= ~(moves[position] & (bound > 1.0))
            run = np.where(still, run * bound, run)
        reuse_outside = np.where(still, run * reuse_outside, run)
        delivered.append(nest.tile_words[t, s + 1] * (nest.steps[s] / reuse_outside))
    return [*delivered, unit]


def distinct_children(nest: Nest, t: int, s: int) -> PerDesign:
    """Distinct tiles among the children of one instance: the rest is multicast or spatial reduction (4.2)."""
    lay = nest.layout
    spatial = nest.spatial_bounds(s)
    distinct = np.ones(nest.batch)
    if spatial is None:
        return distinct
    inner = nest.extents[s + 1]
    for rank in lay.ranks[t]:
        if len(rank) == 1:
            distinct = distinct * spatial[rank[0][0]]
            continue
        (first, c1), (second, c2) = rank
        n1, n2 = spatial[first], spatial[second]
        # sums i * a + j * b, i < n1, j < n2: (i, j) and (i + b', j - a') coincide, with a', b' free of common factors
        a, b = (c1 * inner[first]).astype(np.int64), (c2 * inner[second]).astype(np.int64)
        g = np.gcd(a, b)
        lost = np.maximum(0.0, n1 - b // g) * np.maximum(0.0, n2 - a // g)
        distinct = distinct * (n1 * n2 - lost)
    return distinct


def _partition(nest: Nest, t: int) -> list[PerDesign]:
    """Words of the output that one instance ever sees (4.3)."""
    lay = nest.layout
    part = [nest.tile_words[t, 0]]
    for s in range(1, lay.S):
        if s <= lay.problem.homes[t]:
            part.append(part[0])
            continue
        spread = nest.volume(t, nest.below_spatial[s - 1])
        if lay.windowed[t] or lay.holes[t]:
            part.append(np.floor(part[-1] * nest.tile_words[t, s] / spread))
        else:
            part.append(np.floor(part[-1] / (spread / nest.tile_words[t, s])))
    return part


def _bypass(lay: Layout, t: int, accesses: list[PerDesign], delivered: list[PerDesign]) -> None:
    """A bypassed level hands its accesses to the next outer one (4.5), from the inside out."""
    for s in range(lay.S - 1, 0, -1):
        if not lay.stored[t, s]:
            accesses[s - 1] = accesses[s - 1] * accesses[s] / delivered[s - 1]
