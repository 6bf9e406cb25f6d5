"""`drains`: results are read where they leave; `sums`: words without a product are neither updated nor moved."""

from __future__ import annotations

from sparsemap.inner.numbers import power
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import NONE, Facts
from .records import Counts
from .stored import positive

READS = 0
FILLS = 1
UPDATES = 2
"""Rows of `Counts.scale`."""


def drain(m: Facts, x: OneDesign, c: Counts) -> None:
    """Adjust the counts of the output; metadata scale with the words."""
    t = m.output
    for s in range(m.S):
        read = c.read[t, s]
        fill = c.fill[t, s]
        update = c.update[t, s]
        c.leaving[s] = x.leaving[s]
        if m.stored[t, s]:
            drain_level(m, x, c, s)
        c.read[t, s] = max(c.read[t, s], 0.0)
        c.scale[READS, s] = c.read[t, s] / positive(read)
        c.scale[FILLS, s] = c.fill[t, s] / positive(fill)
        c.scale[UPDATES, s] = c.update[t, s] / positive(update)
        c.gone_read[t, s] = min(c.gone_read[t, s], max(x.reads[t, s] - c.read[t, s], 0.0))
        c.gone_update[t, s] = min(c.gone_update[t, s], max(x.updates[t, s] - c.update[t, s], 0.0))


def drain_level(m: Facts, x: OneDesign, c: Counts, s: Whole) -> None:
    t = m.output
    above = 1.0 - c.comes[t, s]  # shares of the accesses that filters leave
    here = 1.0 - (c.accessed[t, s] if c.kind[t, s] != NONE else c.goes[t, s])
    used = x.occupied[t, s] if x.packed[t, s] and x.occupied[t, s] > 0.0 else 1.0
    reads = x.reads[t, s] - (x.leaving[s] if m.drains else 0.0)
    updates = x.updates[t, s]
    child = m.child[t, s]
    if s > 0:
        visit(m, x, c, s, x.leaving[s], x.fills[t, s], holders(m, x, s, x.leaving[s], s), above)
        c.leaving[s] = x.leaving[s] * c.leave / used
        c.fill[t, s] = x.fills[t, s] * c.come / used
    if child < 0:
        happens = min(happens_share(m, x, c, s), here) if m.sums else here
        words = updates - reads
        visits = updates / words if words > 0.0 else 0.0
        touched = words * (1.0 - power(1.0 - happens, visits))
        done = updates * happens
        c.update[t, s] = done / used
        c.read[t, s] = (done - touched) / used
    else:
        visit(m, x, c, s, x.leaving[child], x.fills[t, child], holders(m, x, s, updates, child), here)
        c.update[t, s] = updates * c.leave / used
        c.read[t, s] = reads * c.come / used
    if m.drains:
        c.read[t, s] += c.leaving[s]


def holders(m: Facts, x: OneDesign, s: Whole, words: Real, child: Whole) -> Real:
    """Number of places adding products of one word, if `words` arrive at or leave an instance of level s."""
    once = x.leaving[child] - x.fills[m.output, child]
    visits = x.leaving[child] / once if once > 0.0 else 1.0
    return max(1.0, words * x.used[s] / (x.words[m.output, 0] * max(visits, 1.0)))


def visit(m: Facts, x: OneDesign, c: Counts, s: Whole, words: Real, back: Real, count: Real, visited: Real) -> None:
    """Shares `leave` and `come` of a tile's words leaving and coming back, as counted at level s: the visits left by
    filters (`visited`) and, with metadata, with a nonzero partial sum. A visit and its product are not independent
    events.

    Over the run `words` of a tile leave and `back` of them return; `count` places add products of a word."""
    c.leave = visited
    c.come = visited
    if not m.sums or not x.packed[m.output, s]:
        return
    once = words - back
    visits = max(1.0, words / once) if once > 0.0 else 1.0
    empty = power(1.0 - min(1.0, m.density[m.output]), 1.0 / count)
    none = power(empty, 1.0 / visits)
    leaves = 1.0 - none * (1.0 - empty) / (visits * (1.0 - none)) if none < 1.0 else 0.0
    comes = (visits * leaves - (1.0 - empty)) / (visits - 1.0) if visits > 1.0 else 0.0
    brings_none = max(0.0, 1.0 - (1.0 - none) / positive(visited))
    ratio = brings_none / none if none > 0.0 else 1.0
    c.leave = visited * (1.0 - ratio * (1.0 - min(max(leaves, 0.0), 1.0)))
    c.come = visited * min(max(comes, 0.0), 1.0)


def happens_share(m: Facts, x: OneDesign, c: Counts, s: Whole) -> Real:
    """Share of the updates of level s, next to the compute units, with at least one of the added computes carried out."""
    computes = x.computes / x.used[s] if m.ragged else x.used[m.S] / x.used[s] * x.steps[m.S - 1]
    together = max(1.0, computes / positive(x.updates[m.output, s]))
    carried = (c.nonzero if x.packed[m.output, s] else c.actual) / x.computes
    return 1.0 - power(1.0 - min(max(carried, 0.0), 1.0), together)
