"""Of what a tile brings, the words: neither padding nor holes that no window takes (docs/model.md, `holes`)."""

from __future__ import annotations

from threading import RLock

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..layout import Layout
from ..nest import Nest
from ..occupancy.lookup import Number, Table, fingerprint


def word_share(nest: Nest, t: int, s: int, outer: int | None) -> PerDesign:
    """(B,) the share of words among all that the children of level s get of tensor t over the run. Words that several of them
    get at once from level `outer` count once; None: as often as there are children."""
    lay, found = nest.layout, np.ones(nest.batch)
    blocks = [] if outer is None else [b for b in range(s, outer - 1, -1) if nest.spatial_bounds(b) is not None]
    axis, reach, count = _run(nest, s) if s < lay.S - 1 else (np.full(nest.batch, -1), found, found)
    for r, rank in enumerate(lay.ranks[t]):
        if lay.gaps[t][r] is None:
            continue
        tiles = [nest.extents[s + 1][dim] for dim, _ in rank]
        width = 1.0 + sum(c * (tile - 1.0) for (_, c), tile in zip(rank, tiles, strict=True))
        along = np.zeros(nest.batch)  # of which term of the rank a run of tiles that share words is; 0: of none
        for place, (dim, c) in enumerate(rank, start=1):
            along = np.where((axis == dim) & (c * reach < width), place, along)
        none, across = along == 0.0, [[nest.bounds[lay.spatial[b], dim] for dim, _ in rank] for b in blocks]
        spread = [np.multiply.reduce(some) for some in zip(*across, strict=True)] or [np.ones(nest.batch)]
        shared = np.minimum.reduce(spread) > 1.0  # children along one dimension share no words
        steps = []
        for block, counts in zip(blocks, across, strict=True):
            for (dim, _), n in zip(rank, counts, strict=True):
                steps += [np.where(shared & (n > 1.0), part, 0.0) for part in (nest.extents[block + 1][dim], n)]
        keys = np.stack([along, np.where(none, 1.0, reach), np.where(none, 1.0, count), *tiles, *steps])
        found = found * looked_up(lay, t, r, keys)
    return found


def share_at_once(lay: Layout, t: int, units: Array) -> Array:
    """(n,) the share of words among the positions of tensor t that neighbouring compute units take at once, each one once;
    `units` (D, n) along every dimension."""
    found: Array = np.ones(units.shape[1])
    for r, there in enumerate(lay.gaps[t]):
        if there is not None:
            rank = lay.ranks[t][r]
            counts = [units[dim] for dim, _ in rank]
            shared = np.minimum.reduce(counts) > 1.0
            steps = [np.where(shared, part, 0.0) for n in counts for part in (np.ones_like(n), n)]
            one = np.ones_like(found)
            found = found * looked_up(lay, t, r, np.stack([0.0 * one, one, one, *([one] * len(rank)), *steps]))
    return found


def _run(nest: Nest, s: int) -> tuple[Array, Array, Array]:
    """(B,) the dimension of the innermost loop around a child's tile, -1: there is none; what it moves on by; and its bound,
    with that of the next loop if this one goes on where two steps of it end (4.1)."""
    lay = nest.layout
    axis, reach, count = np.full(nest.batch, -1), np.ones(nest.batch), np.ones(nest.batch)
    goes_on = np.ones(nest.batch, dtype=bool)
    for block in range(s, -1, -1):
        group = lay.temporal[block]
        for dims, bound in zip(nest.order[group][::-1], nest.loop_bounds[group][::-1], strict=True):
            busy = bound > 1.0
            step = np.take_along_axis(nest.below_spatial[block], dims[None].astype(np.int64), axis=0)[0]
            first = busy & (axis < 0)
            more = busy & goes_on & (axis == dims) & (count == 2.0) & (step == 2.0 * reach)
            goes_on &= ~busy | first | more
            axis, reach = np.where(first, dims, axis), np.where(first, step, reach)
            count = np.where(first, bound, np.where(more, count * bound, count))
    return axis, reach, count


def gap_table(lay: Layout, t: int, r: int) -> tuple[Table[Number], RLock]:
    """What `_share` said for the keys that were asked for, and who may ask now."""
    found: tuple[Table[Number], RLock] = lay.problem.remember(
        (word_share, lay.ragged, t, r), lambda: (Table(Number), RLock())
    )
    return found


def looked_up(lay: Layout, t: int, r: int, keys: Array) -> PerDesign:
    """(B,) what `_share` has for keys (K, B), each asked for once."""

    def fill(rows: Rows) -> Number:
        return Number(
            np.array([_share(lay, t, r, key) for key in zip(*keys[:, rows].astype(np.int64).tolist(), strict=True)])
        )

    table, lock = gap_table(lay, t, r)
    with lock:
        return table.find(fingerprint(keys), fill).value


def _share(lay: Layout, t: int, r: int, key: tuple[int, ...]) -> float:
    """Of the positions of one rank that all tiles have together, or runs of tiles that share words, the share of words.

    `key`: the term of the rank along which a run goes, its step and length; the tile's extent of each term; then, block by
    block, the distance and number of children of each term that get words at once, 0 and 0 where it has one child.
    """
    along, reach, count, *rest = key
    rank = lay.ranks[t][r]
    tiles, steps = rest[: len(rank)], rest[len(rank) :]
    starts, places, width = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1
    real = np.ones(1, dtype=bool)  # tiles that begin before the end of the data
    for place, ((dim, c), tile) in enumerate(zip(rank, tiles, strict=True), start=1):
        begins, extent = np.arange(0, int(lay.sizes[dim]), tile), tile
        for distance, children in zip(
            steps[2 * place - 2 :: 2 * len(rank)], steps[2 * place - 1 :: 2 * len(rank)], strict=True
        ):
            if children:
                begins = begins[begins // distance % children == 0]
                places = np.unique(places[:, None] + c * distance * np.arange(children))
        if place == along:  # the first tiles of runs
            begins = begins[begins % (reach * count) < reach]
            extent = reach * (count - 1) + tile
        real = (real[:, None] & (begins < lay.ends[dim])).reshape(-1)
        starts, width = (starts[:, None] + c * begins).reshape(-1), width + c * (extent - 1)
    starts = (starts[:, None] + places).reshape(-1)
    there = lay.gaps[t][r]
    assert there is not None
    before = np.concatenate([[0], np.cumsum(there)])
    words = (before[starts + width] - before[starts]) * np.repeat(real, len(places))
    return float(words.mean() / width)
