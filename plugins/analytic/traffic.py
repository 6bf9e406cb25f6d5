"""Dense traffic: words delivered, multicast, partial sums (section 4 of the model). Everything is per instance."""

from __future__ import annotations

import attrs

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


def dense_traffic(nest: Nest) -> Traffic:
    lay, xp = nest.layout, nest.xp
    shape = (lay.T, lay.S, nest.batch)
    reads, fills, updates, leaving = xp.zeros(shape), xp.zeros(shape), xp.zeros(shape), xp.zeros(shape[1:])
    for t in range(lay.T):
        delivered = delivered_words(nest, t)
        accesses = [delivered[s] * distinct_children(nest, t, s) for s in range(lay.S)]
        _bypass(lay, t, accesses, delivered)
        part = _partition(nest, t) if t == lay.output else None
        for s in range(lay.S):
            if not lay.stored[t, s]:
                continue
            outermost = lay.parent(t, s) is None
            if part is None:
                reads = xp.put(reads, (t, s), xp.floor(accesses[s] + 0.5))
                if not outermost:
                    fills = xp.put(fills, (t, s), xp.trunc(delivered[s - 1]))
            else:
                # the box of a strided output counts holes that no partial sum touches: never fewer than none
                updates = xp.put(updates, (t, s), xp.floor(accesses[s] + 0.5))
                reads = xp.put(reads, (t, s), xp.clip(xp.floor(accesses[s] - part[s] + 0.5), 0.0, None))
                if not outermost:
                    left = xp.clip(xp.floor(delivered[s - 1] - part[s] + 0.5), 0.0, None)
                    fills = xp.put(fills, (t, s), left)
                    leaving = xp.put(leaving, s, xp.floor(delivered[s - 1] + 0.5))
    return Traffic(reads, fills, updates, leaving)


def delivered_words(nest: Nest, t: int) -> list[PerDesign]:
    """Per level, the words that one child instance receives over the whole run (4.1)."""
    lay, xp = nest.layout, nest.xp
    if lay.windowed[t]:
        return [*(_window_delivered(nest, t, s) for s in range(lay.S - 1)), nest.steps[-1]]
    delivered: list[PerDesign] = []
    relevant = xp.constant(lay.relevant[t])
    reuse_outside = xp.ones(nest.batch)
    for s in range(lay.S - 1):
        # temporal reuse: the run of irrelevant loops that lies innermost above the tile, looking through levels
        group = lay.temporal[s]
        moves = xp.take(relevant, nest.order[group])
        loop_bounds = nest.loop_bounds[group]
        run = xp.ones(nest.batch)
        still = xp.ones(nest.batch, dtype=bool)
        for position in range(lay.D - 1, -1, -1):
            bound = loop_bounds[position]
            still &= ~(moves[position] & (bound > 1.0))
            run = xp.where(still, run * bound, run)
        reuse_outside = xp.where(still, run * reuse_outside, run)
        delivered.append(nest.tile_words[t, s + 1] * (nest.steps[s] / reuse_outside))
    delivered.append(nest.steps[-1])
    return delivered


def _window_delivered(nest: Nest, t: int, s: int) -> PerDesign:
    """4.1 with sliding windows: overlap is kept along the innermost moving loop, and while the step stays the same."""
    lay, xp = nest.layout, nest.xp
    widths = nest.boxes[t][s + 1]
    words = nest.tile_words[t, s + 1]
    ranks = range(len(widths))
    total = words
    outside = nest.steps[s]
    none = xp.zeros(nest.batch)
    moved, first_step = [none for _ in ranks], [none for _ in ranks]
    first_delta = words
    seen = xp.zeros(nest.batch, dtype=bool)
    for block in range(s, -1, -1):
        group = lay.temporal[block]
        # one step of the loop over d moves the tile by c * (extent of d inside the loop)
        steps = xp.zeros((len(widths), lay.D, nest.batch))
        for r, rank in enumerate(lay.ranks[t]):
            for dim, c in rank:
                steps = xp.put(steps, (r, dim), c * nest.below_spatial[block][dim])
        for position in range(lay.D - 1, -1, -1):
            bound = nest.loop_bounds[group, position]
            active = bound > 1.0
            if not active.any():
                continue
            index = xp.astype(nest.order[group, position][None, None, :], xp.int64)
            step = xp.take_along_axis(steps, index, axis=1)[:, 0]
            outside = outside / bound
            starts = active & ~seen
            vector = [step[r] - moved[r] for r in ranks]
            overlap = xp.ones(nest.batch)
            same = seen
            for r in ranks:
                first_step[r] = xp.where(starts, vector[r], first_step[r])
                same = same & (vector[r] == first_step[r])
                overlap = overlap * xp.maximum(0.0, widths[r] - xp.abs(vector[r]))
            first_delta = xp.where(starts, words - overlap, first_delta)
            delta = xp.where(starts | same, first_delta, words)
            total = total + (bound - 1.0) * outside * delta
            moved = [xp.where(active, moved[r] + step[r], moved[r]) for r in ranks]
            seen = seen | active
    return total


def distinct_children(nest: Nest, t: int, s: int) -> PerDesign:
    """Distinct tiles among the children of one instance: the rest is multicast or spatial reduction (4.2)."""
    lay, xp = nest.layout, nest.xp
    spatial = nest.spatial_bounds(s)
    distinct = xp.ones(nest.batch)
    if spatial is None:
        return distinct
    inner = nest.extents[s + 1]
    for rank in lay.ranks[t]:
        if len(rank) == 1:
            distinct = distinct * spatial[rank[0][0]]
            continue
        (first, c1), (second, c2) = rank
        n1, n2 = spatial[first], spatial[second]
        count = n1 * n2
        rows = xp.flatnonzero((n1 > 1.0) & (n2 > 1.0))
        if len(rows):
            # sums i * a + j * b, i < n1, j < n2: (i, j) and (i + b', j - a') coincide, with a', b' free of common factors
            a = xp.astype(c1 * inner[first][rows], xp.int64)
            b = xp.astype(c2 * inner[second][rows], xp.int64)
            g = xp.gcd(a, b)
            lost = xp.maximum(0.0, n1[rows] - b // g) * xp.maximum(0.0, n2[rows] - a // g)
            count = xp.put(count, rows, count[rows] - lost)
        distinct = distinct * count
    return distinct


def _partition(nest: Nest, t: int) -> list[PerDesign]:
    """Words of the output that one instance ever sees (4.3)."""
    lay, xp = nest.layout, nest.xp
    part = [nest.tile_words[t, 0]]
    for s in range(1, lay.S):
        spread = nest.volume(t, nest.below_spatial[s - 1])
        if lay.windowed[t] or lay.holes[t]:
            part.append(xp.floor(part[-1] * nest.tile_words[t, s] / spread))
        else:
            part.append(xp.floor(part[-1] / (spread / nest.tile_words[t, s])))
    return part


def _bypass(lay: Layout, t: int, accesses: list[PerDesign], delivered: list[PerDesign]) -> None:
    """A bypassed level hands its accesses to the next outer one (4.5), from the inside out."""
    for s in range(lay.S - 1, 0, -1):
        if not lay.stored[t, s]:
            accesses[s - 1] = accesses[s - 1] * accesses[s] / delivered[s - 1]
