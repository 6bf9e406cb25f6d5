"""Repair of tilings: move factors out of overfull fan-outs and buffers."""

from __future__ import annotations

from sparsemap.inner.types import Flags2, Real, Whole, Wholes, Wholes2

from .tile_facts import TileFacts, put_row, take_row

__all__ = ["fit_tilings"]


def fit_tilings(x: TileFacts, genes: Wholes2, order: Wholes, packed: Flags2) -> None:
    """Repair genes (g, B) in place; factors leave in `order` (g,). `packed` (T, B): whether a tensor is compressed."""
    for b in range(genes.shape[1]):
        take_row(x, genes, b)
        for i in range(x.fans.shape[0]):
            fit_fan(x, order, i)
        for i in range(x.rooms.shape[0]):
            fit_room(x, order, i, packed, b)
        put_row(x, genes, b)


def fit_fan(x: TileFacts, order: Wholes, i: Whole) -> None:
    """Reduce the loops of a spatial level to its fan-out."""
    used = 1.0
    for j in range(x.row.shape[0]):
        if x.row[j] == x.fans[i, 0]:
            used *= x.factors[j]
    for j in range(x.row.shape[0]):
        if used <= x.fan_limits[i]:
            break
        if x.row[order[j]] == x.fans[i, 0]:
            x.row[order[j]] = x.fans[i, 1]
            used /= x.factors[order[j]]


def fit_room(x: TileFacts, order: Wholes, i: Whole, packed: Flags2, b: Whole) -> None:
    """Reduce the tiles in a buffer to its room; temporal loops leave first."""
    for d in range(x.extent.shape[0]):
        x.extent[d] = 1.0
    for j in range(x.row.shape[0]):
        if x.storage[x.row[j] - 1] >= x.rooms[i, 0]:
            x.extent[x.dims[j]] *= x.factors[j]
    needed = tile_words(x, i, packed, b)
    for parallel in range(2):
        for k in range(x.row.shape[0]):
            if needed <= x.room_words[i]:
                return
            j = order[k]
            level = x.row[j] - 1
            if x.storage[level] >= x.rooms[i, 0] and x.parallel[level] == parallel:
                x.row[j] = x.rooms[i, 1]
                x.extent[x.dims[j]] /= x.factors[j]
                needed = tile_words(x, i, packed, b)


def tile_words(x: TileFacts, i: Whole, packed: Flags2, b: Whole) -> Real:
    """Upper limit of the words needed by a level for its tiles of all tensors."""
    total, width, last = 0.0, 1.0, x.terms.shape[0] - 1
    for t in range(x.words.shape[0]):
        x.words[t] = 1.0
    for k in range(last + 1):
        width += x.terms[k, 3] * (x.extent[x.terms[k, 2]] - 1.0)
        if k == last or x.terms[k + 1, 0] != x.terms[k, 0] or x.terms[k + 1, 1] != x.terms[k, 1]:
            x.words[x.terms[k, 0]] *= width
            width = 1.0
    for t in range(x.words.shape[0]):
        if x.stored[i, t, 2] != 0.0:
            own = x.stored[i, t, 0] if x.stored[i, t, 0] >= 0.0 else x.words[t]
            if packed[t, b]:
                own = min(x.stored[i, t, 1], own)
            total += own * x.stored[i, t, 2]
    return total
