"""Of what a tile brings, the words: neither padding nor holes that no window takes (docs/model.md, `holes`)."""

from __future__ import annotations

import math
from threading import RLock

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..layout import Layout
from ..nest import Nest
from ..occupancy.lookup import Number, Table, fingerprint


def word_share(nest: Nest, t: int, s: int, apart: bool) -> PerDesign:
    """(B,) the share of words among all that the children of level s get of tensor t over the run. `apart`: what several get
    at once counts as often; otherwise once."""
    lay, found = nest.layout, np.ones(nest.batch)
    axis, reach, count = _run(nest, s) if s < lay.S - 1 else (np.full(nest.batch, -1), found, found)
    for r, rank in enumerate(lay.ranks[t]):
        if lay.gaps[t][r] is None:
            continue
        tiles = [nest.extents[s + 1][dim] for dim, _ in rank]
        width = 1.0 + sum(c * (tile - 1.0) for (_, c), tile in zip(rank, tiles, strict=True))
        along = np.zeros(nest.batch)  # of which term of the rank a run of tiles that share words is; 0: of none
        for place, (dim, c) in enumerate(rank, start=1):
            along = np.where((axis == dim) & (c * reach < width), place, along)
        none, spatial = along == 0.0, nest.spatial_bounds(s)
        across = [np.ones(nest.batch) if apart or spatial is None else spatial[dim] for dim, _ in rank]
        across = [
            np.where(np.minimum.reduce(across) > 1.0, n, 1.0) for n in across
        ]  # children of one dimension are apart
        keys = np.stack([along, np.where(none, 1.0, reach), np.where(none, 1.0, count), *tiles, *across])
        found = found * looked_up(lay, t, r, keys)
    return found


def share_taken(lay: Layout, t: int) -> float:
    """Of the operands that computes take of tensor t, the share of words."""
    ones = [(0, 1, 1, *(1 for _ in 2 * rank)) for rank in lay.ranks[t]]
    return math.prod(_share(lay, t, r, ones[r]) for r, there in enumerate(lay.gaps[t]) if there is not None)


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
    """Of the positions of one rank that all tiles have together, or runs of tiles that share words, the share of words."""
    along, reach, count, *rest = key
    rank, (tiles, across) = lay.ranks[t][r], (rest[: len(rest) // 2], rest[len(rest) // 2 :])
    starts, places, width = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1
    real = np.ones(1, dtype=bool)  # tiles that begin before the end of the data
    for place, ((dim, c), tile, children) in enumerate(zip(rank, tiles, across, strict=True), start=1):
        begins, extent = np.arange(0, int(lay.sizes[dim]), tile * children), tile
        if place == along:  # the first tiles of runs
            begins = begins[begins % (reach * count) < reach]
            extent = reach * (count - 1) + tile
        real = (real[:, None] & (begins < lay.ends[dim])).reshape(-1)
        starts, width = (starts[:, None] + c * begins).reshape(-1), width + c * (extent - 1)
        places = np.unique(places[:, None] + c * tile * np.arange(children))
    starts = (starts[:, None] + places).reshape(-1)
    there = lay.gaps[t][r]
    assert there is not None
    before = np.concatenate([[0], np.cumsum(there)])
    words = (before[starts + width] - before[starts]) * np.repeat(real, len(places))
    return float(words.mean() / width)
