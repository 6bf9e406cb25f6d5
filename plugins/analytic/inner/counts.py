"""Counts of dense traffic after compression, filters and compute units (docs/model.md, sections 6.4 and 7.2)."""

from __future__ import annotations

from sparsemap.inner.primitives import ceil, floor
from sparsemap.inner.types import Real, Whole

from .computes import compute, less
from .design import OneDesign
from .drains import FILLS, READS, UPDATES, drain
from .facts import NONE, Facts
from .metadata import METADATA, METADATA_BITS, PAYLOAD, PAYLOAD_BITS
from .records import Counts, FigureTables
from .removal import pass_along
from .stored import positive

EVERY_RANK = 1 << 40


def count(m: Facts, k: FigureTables, x: OneDesign, c: Counts) -> None:
    """Count accesses with the filters of `c`."""
    for t in range(m.T):
        for s in range(m.S):
            emptiness_share = 1.0 - x.kept[t, s]
            c.read[t, s] = less(x.reads[t, s], emptiness_share)
            c.fill[t, s] = less(x.fills[t, s], emptiness_share)
            c.update[t, s] = less(x.updates[t, s], emptiness_share)
    pass_along(m, x, c)
    for t in range(m.T):
        filter_tensor(m, x, c, t)
    if m.deals:
        repeat_passes(m, x, c)
    compute(m, k, x, c)
    if m.drains or m.sums:
        drain(m, x, c)
    for t in range(m.T):
        for s in range(m.S):
            full = m.filter_metadata and x.looked[t, s] != NONE
            count_bits(m, x, c, t, s, full)
            if full and not x.packed[t, s]:  # what the filter looks at are the words
                c.read[t, s] += c.gone_read[t, s]
                c.gone_read[t, s] = 0.0


def filter_tensor(m: Facts, x: OneDesign, c: Counts, t: Whole) -> None:
    """7.2, from the outermost level inwards."""
    acts_above = 0
    for s in range(m.S):
        goes = c.goes[t, s]
        c.read[t, s] = less(c.read[t, s], goes)
        c.fill[t, s] = less(c.fill[t, s], c.comes[t, s])
        c.update[t, s] = less(c.update[t, s], goes)
        c.own[t, s] = 0.0
        c.gone_read[t, s] = 0.0
        c.gone_update[t, s] = 0.0
        if c.kind[t, s] == NONE:
            continue
        own = c.accessed[t, s]
        if acts_above:
            left = 1.0 - goes
            own = 1.0 - (1.0 - own) / positive(left) if left > 0.0 else 0.0
            if own < 0.0 and not m.q11:
                own = 0.0
        c.own[t, s] = own
        c.gone_read[t, s] = ceil(c.read[t, s] * own) if t == m.output else floor(c.read[t, s] * own)
        c.gone_update[t, s] = floor(c.update[t, s] * own)
        c.read[t, s] -= c.gone_read[t, s]
        c.update[t, s] -= c.gone_update[t, s]
        acts_above = 1


def repeat_passes(m: Facts, x: OneDesign, c: Counts) -> None:
    """7.4: scale reads of the other operands at the compute units by the passes of packed lanes."""
    for u in range(m.T):
        if x.passes[u] >= 0.0:
            for i in range(m.operand.shape[0]):
                t = m.operand[i]
                if t != u:
                    c.read[t, m.innermost[t]] = less(c.read[t, m.innermost[t]], 1.0 - x.passes[u])


def rank_count(x: OneDesign, t: Whole, s: Whole) -> Whole:
    """Ranks with metadata of the tile of tensor t at a level: at least one if compressed, else 0."""
    return max(x.level_ranks[t, s], 1) if x.packed[t, s] else 0


def ranks_of_child(m: Facts, x: OneDesign, c: Counts, t: Whole, s: Whole) -> Whole:
    """Number of innermost ranks with metadata gated or skipped by the filter of level s: the ranks of the child's tile."""
    if c.own[t, s] == 0.0:
        return 0
    child = m.child[t, s]
    if child < 0:
        return EVERY_RANK
    if m.pointers and t != m.output and x.words[t, child] == 1.0:
        return 0  # who reads the metadata of all knows which tiles of one word are left out
    found = rank_count(x, t, child)
    return found if m.q17 else max(found, 1)


def outer_of(m: Facts, x: OneDesign, c: Counts, t: Whole, s: Whole) -> Whole:
    """Next outer level with a filter on tensor t; -1: none."""
    for outer in range(s - 1, -1, -1):
        if c.kind[t, outer] != NONE:
            return outer
    return -1


def count_bits(m: Facts, x: OneDesign, c: Counts, t: Whole, s: Whole, full: Whole) -> None:
    """6.3, 7.2: metadata bits read, filled and updated at a level, and bits removed by the level's filter. `full`: a
    filter looking at the metadata reads all of them."""
    c.read_bits[t, s] = 0.0
    c.fill_bits[t, s] = 0.0
    c.update_bits[t, s] = 0.0
    c.gone_read_bits[t, s] = 0.0
    c.gone_update_bits[t, s] = 0.0
    if x.begin[t, s] == x.end[t, s]:
        return
    inside = ranks_of_child(m, x, c, t, s)
    outer = outer_of(m, x, c, t, s) if m.q7 or m.q8 else -1
    single = outer >= 0 and rank_count(x, t, outer) == 1
    for e in range(x.begin[t, s], x.end[t, s]):
        metadata_bits = x.entry[e, METADATA_BITS]
        payload_bits = x.entry[e, PAYLOAD_BITS]
        goes = c.goes[t, s]
        comes = c.comes[t, s]
        if m.q7 and not (x.entry_place[e] == 0 and single):
            goes = 0.0
            comes = 0.0
        own = c.own[t, s] if x.entry_place[e] < inside else 0.0
        swapped = m.q8 and outer >= 0 and c.kind[t, s] != NONE
        count_units(m, x, c, t, s, e, 0, x.entry[e, METADATA], metadata_bits, comes, goes, own, swapped, full)
        count_units(m, x, c, t, s, e, 1, x.entry[e, PAYLOAD], payload_bits, comes, goes, own, swapped, full)


def count_units(
    m: Facts, x: OneDesign, c: Counts, t: Whole, s: Whole, e: Whole, kind: Whole, units: Real, bits: Real, comes: Real,
    goes: Real, own: Real, swapped: Whole, full: Whole,
) -> None:  # fmt: skip
    """Count the units of one rank, metadata (0) or payload (1). `swapped`: Timeloop reports updates in place of reads
    (Q8)."""
    words = x.words[t, s]
    read = less(ceil(units * (x.reads[t, s] / words)), goes)
    fill = less(ceil(units * (x.fills[t, s] / words)), comes)
    update = ceil(units * (x.updates[t, s] / words))
    if not m.q7:
        update = less(update, goes)
    if swapped:
        read = update
    gone_read = floor(read * own)
    gone_update = floor(update * own)
    read -= gone_read
    update -= gone_update
    if t == m.output and (m.drains or m.sums):
        read *= c.scale[READS, s]
        fill *= c.scale[FILLS, s]
        update *= c.scale[UPDATES, s]
    if full:
        read += gone_read
        gone_read = 0.0
    c.ranks[e, kind] = read
    c.ranks[e, 2 + kind] = fill
    c.ranks[e, 4 + kind] = update
    c.ranks[e, 6 + kind] = gone_read
    c.ranks[e, 8 + kind] = gone_update
    c.read_bits[t, s] += read * bits
    c.fill_bits[t, s] += fill * bits
    c.update_bits[t, s] += update * bits
    c.gone_read_bits[t, s] += gone_read * bits
    c.gone_update_bits[t, s] += gone_update * bits


def count_all(m: Facts, k: FigureTables, x: OneDesign, every: Counts, timed: Counts) -> None:
    """Expected instances in use; counts with all filters and, if different, with the filters saving time."""
    for t in range(m.T):
        for s in range(m.S):
            handles = m.stored[t, s] or m.streamed[t, s]
            x.active[t, s] = x.used[s] * x.mean_share[t, s] * x.occupied[t, s] if handles else 0.0
    count(m, k, x, every)
    if x.differ:
        count(m, k, x, timed)
