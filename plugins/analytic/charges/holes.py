"""Share of words among the positions of tiles, without padding and holes between windows (docs/model.md, `holes`)."""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..layout import Layout
from ..occupancy.lookup import Table, fingerprint


def share_at_once(lay: Layout, t: int, units: Array) -> Array:
    """(n,) share of words among the positions of tensor t read by neighbouring compute units at once, each counted
    once; `units` (D, n): compute units along every dimension."""
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


def gap_table(lay: Layout, t: int, r: int) -> tuple[Table, Any]:
    """Cached results of `_share` by key, and a lock."""
    return lay.problem.remember((looked_up, lay.ragged, t, r), lambda: (Table(), RLock()))


def looked_up(lay: Layout, t: int, r: int, keys: Array) -> PerDesign:
    """(B,) results of `_share` for keys (K, B), each computed once."""

    def fill(rows: Rows) -> Array:
        return np.array(
            [[_share(lay, t, r, key)] for key in zip(*keys[:, rows].astype(np.int64).tolist(), strict=True)]
        )

    table, lock = gap_table(lay, t, r)
    with lock:
        return table.found(fingerprint(keys), fill)[:, 0]


def _share(lay: Layout, t: int, r: int, key: tuple[int, ...]) -> float:
    """Share of words among the positions of one rank, over all tiles, or over all runs of tiles with shared words.

    `key`: the term of the rank along a run, step and length of the run; the tile's extent of each term; then, block by
    block, distance and number of children of each term receiving words at once, 0 and 0 for a single child."""
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
