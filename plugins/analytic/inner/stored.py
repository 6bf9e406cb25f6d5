"""Ranks of the formats of one design, and contents of its tiles (docs/model.md, sections 5.6, 6.1 and 6.5)."""

from __future__ import annotations

from sparsemap.inner.numbers import power
from sparsemap.inner.primitives import ceil, inf
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import Facts
from .nest import volume
from .records import FigureTables
from .tables import KINDS, LARGEST, LONGEST, TILE, arguments, emptiness, figures, one_figure

GRANULE = 0
FIBER = 1
INSIDE = 2
WHOLE = 3
"""Rows of `OneDesign.part`."""


def positive(x: Real) -> Real:
    """Divisor: x if above 0, else 1."""
    return x if x > 0.0 else 1.0


def form_at(m: Facts, x: OneDesign, t: Whole, place: Whole) -> Whole:
    """Format of the rank of tensor t at a place, counted from the innermost rank."""
    return x.slot[t, m.slots - 1 - place] if place < m.slots else m.beyond


def list_ranks(m: Facts, x: OneDesign, t: Whole) -> None:
    """6.1: list the ranks of tensor t, innermost first. Every loop moving the tensor is a rank, except: a tile decoded
    as a whole is a single rank, and a loop with a flattened format joins the rank inside."""
    n = -1
    place = -1
    for d in range(m.D):
        x.part[INSIDE, d] = 1.0
    for p in range(x.loops):
        d = x.loop_dim[p]
        if not m.relevant[t, d]:
            continue
        new = 1
        if x.loop_block[p] >= x.decoded[t]:
            new = n < 0
            place = 0
        else:
            place += 1
            if n >= 0 and m.flattened[form_at(m, x, t, place)]:
                new = 0
        if new:
            n += 1
            x.form[t, n] = form_at(m, x, t, place)
            for i in range(m.D):
                x.rank_inside[t, n, i] = x.part[INSIDE, i]
        x.rank_block[t, n] = x.loop_block[p]
        x.rank_dim[t, n] = d
        x.rank_bound[t, n] = x.loop_bound[p]
        x.part[INSIDE, d] *= x.loop_bound[p]
    x.ranks[t] = n + 1
    for i in range(m.D):
        x.rank_inside[t, n + 1, i] = x.part[INSIDE, i]
    for s in range(m.S):
        x.level_ranks[t, s] = 0
        for i in range(n + 1):
            if x.rank_block[t, i] >= m.spans[t, s]:
                x.level_ranks[t, s] += 1


def find_granule(m: Facts, k: FigureTables, x: OneDesign, t: Whole) -> None:
    """6.5: granule of tensor t, the part stored or left out together by the formats."""
    x.granule[t] = 0
    at = -1
    x.granule_outer[t] = 0
    for i in range(x.ranks[t]):
        if m.compressed[x.form[t, i]]:
            if at < 0:
                at = i
            else:
                x.granule_outer[t] = 1
    if at < 0 or not m.pads:
        return
    form = x.form[t, at]
    dim = x.rank_dim[t, at]
    length = x.rank_bound[t, at]
    for d in range(m.D):
        inside = x.rank_inside[t, at, d]
        x.part[INSIDE, d] = inside
        x.part[FIBER, d] = inside * length if d == dim else inside
        x.granule_extent[t, d] = inside * min(m.form_block[form], length) if d == dim else inside
    if not m.padded[form] and not volume(m, t, x.granule_extent, t) > 1.0:
        return
    x.granule[t] = 1
    x.granule_dim[t] = dim
    x.granule_length[t] = length
    x.granule_width[t] = inf
    x.granule_density[t] = 1.0 - emptiness(m, k, t, x.granule_extent, t)
    if m.padded[form]:
        for d in range(m.D):
            x.part[WHOLE, d] = m.sizes[d]
        count = volume(m, t, x.part, WHOLE) / volume(m, t, x.part, FIBER)
        last = arguments(m, k, t, x.part, INSIDE, arguments(m, k, t, x.part, FIBER, 0))
        k.argument[last] = count
        longest = one_figure(k, KINDS * t + LONGEST, last + 1, length)
        kept = 1.0 - emptiness(m, k, t, x.part, FIBER) if x.granule_outer[t] else 1.0
        filled = length * (1.0 - emptiness(m, k, t, x.part, INSIDE))
        # the fullest fiber has no fewer positions than those that are kept have on average
        x.granule_width[t] = min(max(longest, filled / positive(kept)), length)
        x.granule_density[t] = kept * x.granule_width[t] / length


def sent_share(m: Facts, k: FigureTables, x: OneDesign, t: Whole, s: Whole) -> Real:
    """6.5: share of the tiles of level s sent by a parent omitting empty tiles."""
    for d in range(m.D):  # a tile is empty if all granules that it touches are
        x.part[WHOLE, d] = max(x.extent[s, d], x.granule_extent[t, d])
    sent = 1.0 - emptiness(m, k, t, x.part, WHOLE)
    if x.granule_width[t] == inf:
        return sent
    tile = x.extent[s, x.granule_dim[t]]
    positions = tile / min(tile, x.granule_extent[t, x.granule_dim[t]])
    if positions < x.granule_length[t]:
        return 1.0 - power(1.0 - min(x.granule_density[t], 1.0), max(positions, 1.0))
    return sent if x.granule_outer[t] else 1.0  # padding is sent as well


def largest_granules(m: Facts, k: FigureTables, x: OneDesign, t: Whole, s: Whole) -> Real:
    """6.5: largest number of words stored in the tile of level s."""
    row = m.spans[t, s]
    dim = x.granule_dim[t]
    words = volume(m, t, x.extent, row)
    for d in range(m.D):
        x.part[GRANULE, d] = min(x.extent[row, d], x.granule_extent[t, d])
    if x.granule_width[t] == inf:
        last = arguments(m, k, t, x.part, GRANULE, arguments(m, k, t, x.extent, row, 0))
        return min(words, one_figure(k, KINDS * t + LARGEST, last, words))
    positions = min(max(x.extent[row, dim] / x.part[GRANULE, dim], 1.0), x.granule_length[t])
    return words * min(1.0, ceil(x.granule_width[t]) / positions)


def drops_empty(m: Facts, x: OneDesign, t: Whole, s: Whole) -> Whole:
    """Whether level s receives no empty tiles of tensor t: both the level and its parent have metadata. A level holding
    decoded tiles receives zeros (except with Q18)."""
    parent = m.parent[t, s]
    if parent < 0:
        return 0
    return x.packed[t, parent] if m.q18 else x.packed[t, s]


def store(m: Facts, k: FigureTables, x: OneDesign) -> None:
    """5.6, 6.5: largest number of words in tiles, share of instances with a tile, and stored words per word of these
    tiles."""
    for t in range(m.T):
        x.granule[t] = 0
        if x.packed[t, 0]:
            list_ranks(m, x, t)
            find_granule(m, k, x, t)
        for s in range(m.S):
            x.most[t, s] = x.words[t, s] if m.stored[t, s] else 0.0
            x.occupied[t, s] = 1.0
            x.kept[t, s] = 1.0
            if x.packed[t, 0]:
                store_tile(m, k, x, t, s)
        if m.slides[t] >= 0 and m.turned[t]:
            for d in range(m.D):
                x.part[WHOLE, d] = m.sizes[d]
            x.part[WHOLE, m.slides[t]] = x.extent[m.home[t], m.slides[t]]
            x.most[t, m.home[t]] *= volume(m, t, x.part, WHOLE) / x.words[t, m.home[t]]
        elif m.room[t] == m.room[t]:
            x.most[t, m.home[t]] *= m.room[t] / x.words[t, m.home[t]]


def store_tile(m: Facts, k: FigureTables, x: OneDesign, t: Whole, s: Whole) -> None:
    """As `store`, for one compressed tensor at one level."""
    drops = drops_empty(m, x, t, s)
    packed = m.stored[t, s] and x.packed[t, s]
    if x.granule[t]:
        if m.stored[t, s]:
            if drops:
                x.occupied[t, s] = sent_share(m, k, x, t, s)
            if packed:
                x.most[t, s] = largest_granules(m, k, x, t, s)
                x.kept[t, s] = min(x.granule_density[t] / positive(x.occupied[t, s]), 1.0)
        return
    if not packed and not drops:
        return
    start = figures(k, KINDS * t + TILE, arguments(m, k, t, x.extent, m.spans[t, s], 0))
    if start < 0:
        return
    if drops:
        x.occupied[t, s] = k.data[start + 1]
    if packed:
        x.most[t, s] = k.data[start + 3]
        x.kept[t, s] = k.data[start + 2] if drops else k.data[start]
