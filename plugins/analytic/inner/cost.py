"""Energy from the counts and the cycles (docs/model.md, section 9 and its charges)."""

from __future__ import annotations

from sparsemap.inner.primitives import ceil, floor, sqrt
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import (
    GATE,
    GATED_METADATA_READ,
    GATED_METADATA_UPDATE,
    GATED_READ,
    GATED_UPDATE,
    METADATA_READ,
    METADATA_WRITE,
    NONE,
    READ,
    SKIPPED_METADATA_READ,
    SKIPPED_METADATA_UPDATE,
    SKIPPED_READ,
    SKIPPED_UPDATE,
    WRITE,
    Facts,
)  # fmt: skip
from .metadata import shapes
from .records import Counts, FigureTables
from .sharing import queue_pj
from .skipping import units_pj
from .tables import KINDS, PACKED, TILE, arguments, figures

NS = 1e9


def cost(m: Facts, k: FigureTables, x: OneDesign, c: Counts) -> None:
    """Section 9, and all charges of energy."""
    x.compute_pj = c.actual * m.mac_pj + c.gated * m.mac_gated_pj + c.skipped * m.mac_skipped_pj
    x.energy_pj = x.compute_pj
    for s in range(m.S):
        reach = min(x.used[s], m.instances[s] / m.cluster[s]) / x.used[s] if m.cluster[s] > 1.0 else 1.0
        for t in range(m.T):
            handles = m.stored[t, s] or m.streamed[t, s]
            ratio = whole_ratio(m, k, x, t, s) if m.short_tiles and m.access_words[s] > 1.0 else 1.0
            spent = access_pj(m, x, c, t, s, ratio) * x.active[t, s] * reach if handles else 0.0
            if x.decoded[t] == s and s > 0 and m.stored[t, s] and x.packed[t, 0]:
                spent += recoding_pj(m, x, c, t, s)
            if m.widens and t == m.output:
                spent += rounding_pj(m, x, c, s)
            if m.recodes and m.stored[t, s]:
                spent += formats_pj(m, x, c, t, s)
            x.tile_pj[t, s] = spent
            x.energy_pj += spent
    x.intersection_pj = units_pj(m, x) if m.intersection else 0.0
    x.leakage_pj_per_cycle = leaking_pj(m, x) if m.leakage else 0.0
    x.leakage_pj = x.leakage_pj_per_cycle * x.cycles
    x.gated_pj = gating_pj(m, x, c) if m.gated else 0.0
    x.network_pj = wires_pj(m, x, c) if m.network else 0.0
    x.shared_words_pj = queue_pj(m, x, c) if m.shared_words else 0.0
    x.energy_pj += x.intersection_pj + x.leakage_pj + x.gated_pj + x.network_pj + x.shared_words_pj


def whole_words(m: Facts, s: Whole, count: Real, ratio: Real) -> Real:
    """Words of `count` rounded up to whole accesses, times `ratio`."""
    together = m.access_words[s]
    return ceil(count / together) * together * ratio if together > 1.0 else count


def access_pj(m: Facts, x: OneDesign, c: Counts, t: Whole, s: Whole, ratio: Real) -> Real:
    """pJ of all accesses of one instance to a tensor at a level."""
    width = m.metadata_width[s]
    wide = x.word_width[t, s]
    spent = whole_words(m, s, c.read[t, s] * wide, ratio) * m.price_pj[READ, s]
    spent += whole_words(m, s, c.fill[t, s] * wide, ratio) * m.price_pj[WRITE, s]
    spent += whole_words(m, s, c.update[t, s] * wide, ratio) * m.price_pj[WRITE, s]
    spent += ceil(c.read_bits[t, s] / width) * m.price_pj[METADATA_READ, s]
    spent += ceil(c.fill_bits[t, s] / width) * m.price_pj[METADATA_WRITE, s]
    spent += ceil(c.update_bits[t, s] / width) * m.price_pj[METADATA_WRITE, s]
    if c.kind[t, s] != NONE:
        gates = c.kind[t, s] == GATE
        read = whole_words(m, s, c.gone_read[t, s] * wide, ratio)
        update = whole_words(m, s, c.gone_update[t, s] * wide, ratio)
        spent += read * m.price_pj[GATED_READ if gates else SKIPPED_READ, s]
        spent += update * m.price_pj[GATED_UPDATE if gates else SKIPPED_UPDATE, s]
        read = ceil(c.gone_read_bits[t, s] / width)
        update = ceil(c.gone_update_bits[t, s] / width)
        spent += read * m.price_pj[GATED_METADATA_READ if gates else SKIPPED_METADATA_READ, s]
        spent += update * m.price_pj[GATED_METADATA_UPDATE if gates else SKIPPED_METADATA_UPDATE, s]
    return spent


def whole_ratio(m: Facts, k: FigureTables, x: OneDesign, t: Whole, s: Whole) -> Real:
    """Accesses of compressed tiles read one by one, over the accesses of their words together: E[ceil(k / w)] / (E[k] /
    w). Returns 1 where Timeloop takes the ratio to be below 1.01."""
    if not m.stored[t, s] or not x.packed[t, s]:
        return 1.0
    together = max(1.0, floor(m.access_words[s] / x.word_width[t, s]))
    words = x.words[t, s]
    count = arguments(m, k, t, x.extent, m.spans[t, s], 0)
    tile = figures(k, KINDS * t + TILE, count)
    k.argument[shapes(m, t)] = together
    packed = figures(k, KINDS * t + PACKED, count + 1)
    if tile < 0 or packed < 0:
        return 1.0
    density = k.data[tile]
    few = (1.0 - 1.0 / together) * 50.0 / max(floor(10.0 * density) / 10.0, 0.1)
    if density > 0.0 and density < 1.0 and floor(words / together) < few:
        return k.data[packed + 1] * together / (density * words)
    return 1.0


def recoding_pj(m: Facts, x: OneDesign, c: Counts, t: Whole, s: Whole) -> Real:
    """6.6: pJ of all instances of a decoding level, for words arriving there and, with an output, words leaving, as
    counted by the next outer level."""
    spent = c.fill[t, s] * x.word_width[t, s] * x.active[t, s] * m.decode_pj[s]
    parent = m.parent[t, s]
    if t == m.output and parent >= 0:
        left = c.update[t, parent] * x.word_width[t, s]
        spent += left * x.active[t, s if m.q18 else parent] * m.encode_pj[s]
    return spent


def rounding_pj(m: Facts, x: OneDesign, c: Counts, s: Whole) -> Real:
    """14: pJ of rounding the results that leave a level for a level with fewer bits per word."""
    t = m.output
    parent = m.parent[t, s]
    if not m.stored[t, s] or parent < 0:
        return 0.0
    if x.word_width[t, parent] * m.word_bits[parent] >= x.word_width[t, s] * m.word_bits[s]:
        return 0.0
    return c.update[t, parent] * x.active[t, parent] * x.word_width[t, s] * m.encode_pj[s]


def holder(m: Facts, x: OneDesign, t: Whole, s: Whole) -> Whole:
    """14: level with the number format of a tensor at a level. Widened sums are held as further inside."""
    found = s
    for inner in range(s, m.S):
        if inner == found and x.word_width[t, inner] > m.word_width[t, inner]:
            found = m.child[t, inner]
    return found


def formats_pj(m: Facts, x: OneDesign, c: Counts, t: Whole, s: Whole) -> Real:
    """14: pJ of decoding and encoding words handed between number formats: into a level, and back out with sums; at the
    innermost level, to and from the compute units."""
    parent, own, spent = m.parent[t, s], holder(m, x, t, s), 0.0
    if parent >= 0:
        moved = c.fill[t, s] * x.active[t, s]
        if t == m.output:
            moved += c.update[t, parent] * x.active[t, parent]
        spent += moved * m.recoding_pj[t, holder(m, x, t, parent), own]
    if m.child[t, s] < 0:
        moved = c.read[t, s]
        if t == m.output:
            moved += c.update[t, s] - (min(c.leaving[s], moved) if m.drains else 0.0)
        spent += moved * x.active[t, s] * m.recoding_pj[t, own, m.S]
    return spent


def leaking_pj(m: Facts, x: OneDesign) -> Real:
    """`leakage`: pJ per cycle of all memories; unused instances leak less where power gating exists."""
    power_mw = 0.0
    for s in range(m.S):
        awake = m.instances[s]
        if m.asleep[s] != 1.0:
            awake = x.used[s] + (m.instances[s] - x.used[s]) * m.asleep[s]
        power_mw += awake * m.leakage_mw[s]
    return power_mw * NS / m.clock_hz  # mW ns = pJ


def gating_pj(m: Facts, x: OneDesign, c: Counts) -> Real:
    """`gated`: pJ of gated accesses and computes above their listed price. With `positions`, a unit is also clocked
    while passing an empty position."""
    added = 0.0
    for s in range(m.S):
        for t in range(m.T):
            if c.kind[t, s] == GATE:
                wide = x.word_width[t, s]
                spent = c.gone_read[t, s] * wide * m.extra_pj[0, s] + c.gone_update[t, s] * wide * m.extra_pj[1, s]
                spent += ceil(c.gone_read_bits[t, s] / m.metadata_width[s]) * m.extra_pj[2, s]
                spent += ceil(c.gone_update_bits[t, s] / m.metadata_width[s]) * m.extra_pj[3, s]
                added += spent * x.active[t, s]
    return added + c.gated * m.mac_extra_pj + (c.passed * m.mac_passed_pj if m.positions else 0.0)


def tree_mm(copies: Real, leaves: Real, side_mm: Real) -> Real:
    """Wire length in mm of an H-tree from the root to `copies` of the leaves, spread evenly."""
    copies = min(copies, leaves)
    root = sqrt(copies)
    return side_mm * (1.5 * (root - 1.0) + root - copies / sqrt(leaves))


def wires_pj(m: Facts, x: OneDesign, c: Counts) -> Real:
    """`network`: pJ of words crossing an H-tree over the square of a level's children, and of adding partial sums on
    the way."""
    added = 0.0
    for t in range(m.T):
        for s in range(m.S):
            if not m.stored[t, s]:
                continue
            down = c.read[t, s]
            up = c.update[t, s]
            if t == m.output and m.drains:
                down = max(down - c.leaving[s], 0.0)
            wide = x.word_width[t, s]
            bits = (down + up) * wide * m.word_bits[s] + c.read_bits[t, s] + c.update_bits[t, s]
            spent = 0.0
            for block in range(s, m.child[t, s] if m.child[t, s] >= 0 else m.S):
                if m.spatial[block] < 0:
                    continue
                copies = max(x.product[m.spatial[block]] / x.distinct[t, block], 1.0)
                spent += bits * m.wire_pj * tree_mm(copies, m.fanout[block], m.side_mm[block])
                if t == m.output:
                    spent += up * wide * (copies - 1.0) * m.add_word_pj[s]
                bits *= copies
                up *= copies
            added += spent * x.active[t, s]
    return added
