"""What the outermost level exchanges with the next one, whatever the tiles: a part of the lower bound (`bound`)."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts import box
from sparsemap.pieces.contracts.base import Array
from sparsemap.primes import divisors

from .layout import Layout
from .validity import data_words

MOST_TILES = 1 << 18
"""Where a problem has more tiles, or ways to share a fan-out, none is tried: this bounds time and memory."""


def moved_words(lay: Layout) -> tuple[list[Array], list[Array]]:
    """Per tensor, words that the outermost level exchanges with the next one, without compression, for every tile
    that fits and every loop that may be innermost around it, (N,), 0 where it is not known; and the computes of the
    tile that one word serves, (N,), 1 where it is not known."""
    moved, stays = [np.zeros(1) for _ in range(lay.T)], [np.ones(1) for _ in range(lay.T)]
    plain = [not lay.holes[t] for t in range(lay.T)]
    options = [np.array(divisors(int(size)), dtype=np.float64) for size in lay.sizes]
    tiles = float(np.prod([float(len(option)) for option in options]))
    if lay.S < 2 or lay.spatial[0] is not None or tiles > MOST_TILES:
        return moved, stays
    extents = np.stack([grid.ravel() for grid in np.meshgrid(*options, indexing="ij")])
    widths = [list(box(ranks, extents)) for ranks in lay.ranks]
    words = [np.prod([np.ones(extents.shape[1]), *boxes], axis=0) for boxes in widths]
    chip = lay.problem.chip
    if np.isfinite(chip.capacity_bits[1]):
        needed = sum(least_words(lay, t, words[t]) for t in range(lay.T) if lay.stored[t, 1] and plain[t])
        fits = needed <= data_words(chip, 1)
        if not fits.any():
            return moved, stays  # nor does any design
        extents, words = extents[:, fits], [w[fits] for w in words]
        widths = [[w[fits] for w in boxes] for boxes in widths]
    loops = lay.sizes[:, None] / extents
    busy = loops > 1.0
    possible = [np.flatnonzero(busy[d] | ~busy.any(axis=0)) for d in range(lay.D)]
    for t in range(lay.T):
        if not plain[t] or lay.child(t, 0) != 1:
            continue
        by_loop = delivered(lay, t, words[t], widths[t], extents, loops)
        moved[t] = np.concatenate([by[rows] for by, rows in zip(by_loop, possible, strict=True)])
        reuse = extents[~lay.relevant[t]].prod(axis=0)
        stays[t] = np.concatenate([reuse[rows] for rows in possible])
    return moved, stays


def delivered(lay: Layout, t: int, words: Array, widths: list[Array], extents: Array, loops: Array) -> list[Array]:
    """Per dimension whose loop is the innermost around a tile of `words` (N,): the least that is delivered (4.1).

    If the loop moves the tensor, each of its steps brings what it uncovers. So may the other loop along the same
    rank of a window, where its step is the same; all further loops deliver the tile anew. If the loop does not move
    it, the loops that do deliver all words, but for one of two along a rank: its step may be none.
    """
    anew = np.ones_like(words)
    for rank in lay.ranks[t]:
        along = np.array([loops[d] for d, _ in rank])
        busiest, idlest = along.max(axis=0), along.min(axis=0)
        anew = anew * np.where(idlest > 1.0, idlest, busiest)
    found = [words * anew for _ in lay.dims]
    for rank, width in zip(lay.ranks[t], widths, strict=True):
        along = np.array([loops[d] for d, _ in rank]).prod(axis=0)
        for d, c in rank:
            uncovered = words * np.minimum(1.0, c * extents[d] / width)
            found[d] = loops.prod(axis=0) / along * (words + (along - 1.0) * uncovered)
    return found


def least_words(lay: Layout, t: int, words: Array) -> Array:
    """Words of data that tiles of so many words need at least, whether compressed or not."""
    occupancy = lay.occupancies[t]
    if occupancy.by_shape or not hasattr(occupancy, "largest_many"):
        return np.floor(words * min(1.0, occupancy.density) * (1.0 - 1e-9))  # the mean: no largest one is smaller
    return np.minimum(words, occupancy.largest_many(words.astype(np.int64)))
