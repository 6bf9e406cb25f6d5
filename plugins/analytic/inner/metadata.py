"""Metadata of every rank of every tensor at every level (docs/model.md, sections 6.2 and 6.3)."""

from __future__ import annotations

from sparsemap.inner.primitives import ceil, floor, inf, mixed, wrapped
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import NONE, Facts
from .nest import volume, width
from .records import Counts, FigureTables
from .stored import WHOLE
from .tables import KINDS, LONGEST, UNITS, figures_of, one_figure

__all__ = ["LARGEST_METADATA", "LARGEST_PAYLOAD", "METADATA_BITS", "PAYLOAD_BITS"]

METADATA = 0
PAYLOAD = 1
LARGEST_METADATA = 2
LARGEST_PAYLOAD = 3
METADATA_BITS = 4
PAYLOAD_BITS = 5
"""Columns of `OneDesign.entry`, and of table figures for units."""
OFFSETS = 6
LARGEST_OFFSETS = 7
NARROW = 8
"""Further columns of table figures for units."""


def shapes(m: Facts, t: Whole) -> Whole:
    """Number of table arguments for a part of tensor t."""
    return m.ranks[t] if m.by_shape[t] and m.ranks[t] > 0 else 1


def metadata(m: Facts, k: FigureTables, x: OneDesign, c: Counts) -> None:
    """Units of every rank of every compressed tensor at every level storing it."""
    x.entries = 0
    x.narrow = 0
    for t in range(m.T):
        lacking = k.lacking
        k.lacking = 0
        if x.packed[t, 0]:
            describe_ranks(m, k, x, t, c)
        known = not k.lacking
        for s in range(m.S):
            x.begin[t, s] = x.entries
            if x.packed[t, s] and m.stored[t, s] and known:
                enter_ranks(m, k, x, t, s)
            x.end[t, s] = x.entries
        if lacking:
            k.lacking = 1


def describe_ranks(m: Facts, k: FigureTables, x: OneDesign, t: Whole, c: Counts) -> None:
    """Lengths, shapes and formats of the ranks of tensor t, followed by the rank of a one-word tile."""
    n = shapes(m, t)
    count = x.ranks[t]
    for i in range(count):
        measure_rank(m, x, t, i)
        block_rank(m, x, t, i, n)
        x.rank_longest[i] = x.rank_length[i]
        if m.padded[x.form[t, i]]:
            x.rank_longest[i] = longest_fiber(m, k, x, t, i, n)
        x.rank_pointed[i] = 0
    keep_together(m, x, t, n)
    if m.pointers:
        point_ranks(m, x, t, c)
    for i in range(count):
        told = 0
        if m.every_fiber and i + 1 < count:
            above = x.form[t, i + 1]
            told = 1 if m.compressed[above] and m.form_block[above] == 1.0 and not m.padded[above] else 0
            if m.offsets[above] or x.rank_pointed[i + 1]:
                told += 2
        x.rank_row[i] = m.asked[told, x.form[t, i]]
    for i in range(count):
        if m.own_offsets[x.form[t, i]]:
            x.rank_pointed[i] = 1
        x.rank_key[i] = key_of_rank(m, x, i, n)
    last = x.slot[t, m.slots - 1]
    for j in range(n):
        x.rank_box[count, j] = 1.0
        x.rank_below[count, j] = 1.0
        x.rank_group[count, j] = 1.0
    x.rank_length[count] = 1.0
    x.rank_longest[count] = 1.0
    x.rank_positions[count] = 1.0
    x.rank_pointed[count] = m.own_offsets[last]
    x.rank_row[count] = m.asked[0, last]
    x.rank_key[count] = key_of_rank(m, x, count, n)


def measure_rank(m: Facts, x: OneDesign, t: Whole, i: Whole) -> None:
    """Positions of rank i of tensor t, words of the rank's tile, and words below one position."""
    x.rank_length[i] = 1.0
    box = 1.0
    below = 1.0
    for r in range(m.ranks[t]):
        outer = rank_width(m, x, t, r, i + 1)
        inner = rank_width(m, x, t, r, i)
        length = ceil(outer / inner)
        if m.window_positions:
            length = 1.0
            for j in range(m.terms[t, r]):
                d = m.term_dim[t, r, j]
                turns = x.rank_inside[t, i + 1, d] / x.rank_inside[t, i, d]
                length += m.term_factor[t, r, j] * (turns - 1.0)
        x.rank_length[i] *= length
        if m.by_shape[t]:
            x.rank_box[i, r] = outer
            x.rank_below[i, r] = inner
        box *= outer
        below *= inner
    inside = x.rank_positions[i - 1] if i > 0 else 1.0
    x.rank_positions[i] = inside * x.rank_length[i] if m.window_positions else box
    if not m.by_shape[t] or m.ranks[t] == 0:
        x.rank_box[i, 0] = box
        x.rank_below[i, 0] = below


def rank_width(m: Facts, x: OneDesign, t: Whole, r: Whole, i: Whole) -> Real:
    """Words along rank r of tensor t inside rank i of the formats."""
    found = 1.0
    for j in range(m.terms[t, r]):
        found += m.term_factor[t, r, j] * (x.rank_inside[t, i, m.term_dim[t, r, j]] - 1.0)
    return found


def block_rank(m: Facts, x: OneDesign, t: Whole, i: Whole, n: Whole) -> None:
    """Count blocks as positions of a rank stored in blocks; set the groups of positions listed together by the code."""
    form = x.form[t, i]
    length = x.rank_length[i]
    if m.form_block[form] > 1.0:
        block = min(m.form_block[form], length)
        share = (block - 1.0) / (length - 1.0)
        for j in range(n):
            part = x.rank_below[i, j]
            x.rank_below[i, j] = floor(part + (x.rank_box[i, j] - part) * share + 0.5)
        x.rank_length[i] = ceil(length / block)
        length = x.rank_length[i]
    if m.grouped:
        share = (min(m.form_group[form], length) - 1.0) / max(length - 1.0, 1.0)
        for j in range(n):
            part = x.rank_below[i, j]
            x.rank_group[i, j] = floor(part + (x.rank_box[i, j] - part) * share + 0.5)


def longest_fiber(m: Facts, k: FigureTables, x: OneDesign, t: Whole, i: Whole, n: Whole) -> Real:
    """Expected non-empty positions in the fullest fiber of a padded rank."""
    words = 1.0
    for j in range(n):
        words *= x.rank_box[i, j]
        k.argument[j] = x.rank_box[i, j]
        k.argument[n + j] = x.rank_below[i, j]
    for d in range(m.D):
        x.part[WHOLE, d] = m.sizes[d]
    k.argument[2 * n] = volume(m, t, x.part, WHOLE) / words
    return min(one_figure(k, KINDS * t + LONGEST, 2 * n + 1, x.rank_length[i]), x.rank_length[i])


def keep_together(m: Facts, x: OneDesign, t: Whole, n: Whole) -> None:
    """6.5: per rank, the part required to be non-empty for a fiber to exist: the part below one position of the next
    outer compressed rank. Without a compressed rank outside, the tile of the rank or, if codes of empty fibers count,
    the whole tensor."""
    if not (m.pads or m.every_fiber):
        return
    outer = -1
    for i in range(x.ranks[t] - 1, -1, -1):
        for j in range(n):
            if outer >= 0:
                x.rank_box[i, j] = x.rank_below[outer, j]
            elif m.every_fiber:
                x.rank_box[i, j] = inf
        if m.compressed[x.form[t, i]]:
            outer = i


def point_ranks(m: Facts, x: OneDesign, t: Whole, c: Counts) -> None:
    """`pointers`: the innermost rank outside the child's tile has an offset per position if a compressed rank lies
    inside and either a filter omits tiles or different children read them."""
    packed = x.ranks[t]
    for i in range(x.ranks[t] - 1, -1, -1):
        if m.compressed[x.form[t, i]]:
            packed = i
    for s in range(m.S):
        child = m.child[t, s]
        if not m.stored[t, s] or child < 0:
            continue
        rank = x.level_ranks[t, child]
        if rank >= x.level_ranks[t, s] or packed >= rank or m.payload_links[x.form[t, rank]]:
            continue
        if c.kind[t, s] != NONE or spreads(m, x, t, s, child):
            x.rank_pointed[rank] = 1


def spreads(m: Facts, x: OneDesign, t: Whole, s: Whole, child: Whole) -> Whole:
    """Whether spatial loops between two levels move tensor t."""
    for block in range(s, child):
        for d in range(m.D):
            if m.spatial[block] >= 0 and m.relevant[t, d] and x.bound[m.spatial[block], d] > 1.0:
                return 1
    return 0


def key_of_rank(m: Facts, x: OneDesign, i: Whole, n: Whole) -> Whole:
    """Key of everything determining the units of a rank, except the tile."""
    key = mixed(n, x.rank_length[i])
    key = mixed(key, x.rank_row[i])
    key = mixed(key, x.rank_positions[i])
    key = mixed(key, x.rank_longest[i])
    for j in range(n):
        key = mixed(key, x.rank_below[i, j])
        if m.grouped:
            key = mixed(key, x.rank_group[i, j])
    return key


def enter_ranks(m: Facts, k: FigureTables, x: OneDesign, t: Whole, s: Whole) -> None:
    """Enter the ranks of tensor t in the tile of level s. A compressed one-word tile has a single rank without width
    and cost, unless its format has `of_one_word`."""
    n = shapes(m, t)
    count = x.level_ranks[t, s]
    lone = count == 0
    costs = not lone or m.of_one_word[x.slot[t, m.slots - 1]]
    if not costs and not x.whole:
        return
    fibers = 1.0 if lone else x.rank_positions[count - 1]
    drops = 1.0 if m.parent[t, s] >= 0 else 0.0
    key = mixed(KINDS * t + UNITS, drops)
    for j in range(n):
        x.tile[j] = width(m, t, j, x.extent, m.spans[t, s]) if m.by_shape[t] and m.ranks[t] > 0 else x.words[t, s]
        key = mixed(key, x.tile[j])
    for i in range(1 if lone else count):
        enter_rank(m, k, x, t, x.ranks[t] if lone else i, n, fibers, drops, key)
        if not costs:
            x.entry[x.entries, METADATA_BITS] = 0.0
            x.entry[x.entries, PAYLOAD_BITS] = 0.0
        x.entry_place[x.entries] = i
        x.entries += 1


def enter_rank(
    m: Facts, k: FigureTables, x: OneDesign, t: Whole, i: Whole, n: Whole, fibers: Real, drops: Real, key: Whole
) -> None:
    """Enter one rank. `fibers`: positions of the outermost rank times the positions of all ranks inside."""
    above = fibers / x.rank_positions[i]
    key = wrapped(x.rank_key[i], mixed(key, above), 1)
    for j in range(n):
        key = mixed(key, min(x.rank_box[i, j], x.tile[j]))
        k.argument[j] = x.tile[j]
        k.argument[n + j] = min(x.rank_box[i, j], x.tile[j])
        k.argument[2 * n + j] = x.rank_below[i, j]
        if m.grouped:
            k.argument[3 * n + 6 + j] = x.rank_group[i, j]
    last = 3 * n
    k.argument[last] = x.rank_length[i]
    k.argument[last + 1] = above
    k.argument[last + 2] = x.rank_row[i]
    k.argument[last + 3] = x.rank_positions[i]
    k.argument[last + 4] = drops
    k.argument[last + 5] = x.rank_longest[i]
    start = figures_of(k, KINDS * t + UNITS, key, last + 6 + (n if m.grouped else 0))
    if start < 0:
        return
    e = x.entries
    for column in range(6):
        x.entry[e, column] = k.data[start + column]
    if x.rank_pointed[i]:
        x.entry[e, PAYLOAD] = k.data[start + OFFSETS]
        x.entry[e, LARGEST_PAYLOAD] = k.data[start + LARGEST_OFFSETS]
        x.entry[e, PAYLOAD_BITS] = name_bits(x.rank_positions[i] + 1.0)
    if k.data[start + NARROW] > 0.0:
        x.narrow |= 1 << m.entry_bit[t]


def name_bits(positions: Real) -> Real:
    """Bits to name one position among `positions`, rounded up to a power of two so as to divide a metadata word."""
    bits = 1.0
    reach = 2.0
    for _ in range(1024):
        if reach >= positions:
            break
        reach *= 2.0
        bits += 1.0
    found = 1.0
    for _ in range(11):
        if found >= bits:
            break
        found *= 2.0
    return found


def fullest_bits(m: Facts, x: OneDesign) -> None:
    """Bits of the fullest tiles. Payload of the innermost rank is the data and counts nothing here."""
    for t in range(m.T):
        for s in range(m.S):
            bits = 0.0
            for e in range(x.begin[t, s], x.end[t, s]):
                if x.entry_place[e] == 0:
                    x.entry[e, PAYLOAD] *= 0.0
                    x.entry[e, LARGEST_PAYLOAD] *= 0.0
                bits += x.entry[e, LARGEST_METADATA] * x.entry[e, METADATA_BITS]
                bits += x.entry[e, LARGEST_PAYLOAD] * x.entry[e, PAYLOAD_BITS]
            x.largest_bits[t, s] = ceil(bits)
