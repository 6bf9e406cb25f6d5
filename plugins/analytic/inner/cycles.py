"""Cycles limited by bandwidth, and waiting of compute units and levels (docs/model.md, section 8)."""

from __future__ import annotations

from sparsemap.inner.primitives import ceil, floor, inf
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import GATE, Facts
from .imbalance import thin, waiting_ratio
from .overlap import overlapped
from .records import Counts, FigureTables
from .skipping import pass_cycles, rounded_up
from .stored import positive
from .vectors import vector_ratio


def cycle(m: Facts, k: FigureTables, x: OneDesign, c: Counts) -> None:
    """Section 8. Units work as long as the fullest unit of each waiting group, and pass empty positions no faster than
    skips allow; never longer than the steps of the nest. `c`: counts with the filters saving time."""
    busy = c.actual + c.gated
    if m.positions:
        busy += c.passed
    x.units *= x.units_share
    share = busy / positive(x.units)
    x.mean_cycles = rounded_up(share) if m.ragged else ceil(share)
    if m.imbalance or m.vectors or m.shared_words or m.intersection:
        thin(m, x)
    if m.vectors:
        ratio = vector_ratio(m, k, x)
        if ratio > 0.0:
            x.mean_cycles = min(rounded_up(share * ratio) if ratio > 1.0 else x.mean_cycles, x.turns)
    x.compute_cycles = x.mean_cycles
    x.worked_cycles = x.mean_cycles
    if m.imbalance or m.shared_words:
        ratio = waiting_ratio(m, k, x)
        x.worked_cycles = min(max(share * x.shared_ratio, x.mean_cycles), x.turns)
        if ratio > 1.0:
            x.compute_cycles = min(max(rounded_up(share * ratio), x.mean_cycles), x.turns)
    x.uneven_cycles = x.compute_cycles
    if m.intersection:
        x.compute_cycles = pass_cycles(m, k, x, c, share, x.compute_cycles)
    demand(m, x, c)
    x.cycles = x.compute_cycles
    for s in range(m.S):
        x.level_cycles[s] = serve(m, x, s, x.compute_cycles)
        x.cycles = max(x.cycles, x.level_cycles[s])
    if m.overlap:
        x.cycles = max(x.cycles, overlapped(m, k, x, c))


def demand(m: Facts, x: OneDesign, c: Counts) -> None:
    """Words of every level moved in its time: data and metadata, including gated but not skipped accesses. With
    `remainders`, the words of the fullest instance."""
    for t in range(m.T):
        for s in range(m.S):
            read = c.read[t, s]
            written = c.fill[t, s] + c.update[t, s]
            read_bits = c.read_bits[t, s]
            written_bits = c.fill_bits[t, s] + c.update_bits[t, s]
            if c.kind[t, s] == GATE:
                read += c.gone_read[t, s]
                written += c.gone_update[t, s]
                read_bits += c.gone_read_bits[t, s]
                written_bits += c.gone_update_bits[t, s]
            x.demand_read[t, s] = read * x.word_width[t, s] + floor(read_bits / m.word_bits[s])
            x.demand_written[t, s] = written * x.word_width[t, s] + floor(written_bits / m.word_bits[s])
            x.demand_filled[t, s] = c.fill[t, s] * x.word_width[t, s] + floor(c.fill_bits[t, s] / m.word_bits[s])
            if m.ragged and (m.stored[t, s] or m.streamed[t, s]):
                serves = x.gives[t, s]
                arrives = x.gets[t, s]
                x.demand_read[t, s] *= serves
                x.demand_written[t, s] *= max(serves, arrives) if t == m.output else arrives
                x.demand_filled[t, s] *= arrives


def serve(m: Facts, x: OneDesign, s: Whole, compute: Real) -> Real:
    """Cycles needed by a level: averaged over instances and rounded up tensor by tensor."""
    busy = positive(compute)
    read = 0.0
    written = 0.0
    slowdown = 1.0
    for t in range(m.T):
        if x.active[t, s] > 0.0:
            share = x.used[s] * x.most_share[t, s] / x.active[t, s]
            read += ceil(x.demand_read[t, s] / share) / busy
            written += ceil(x.demand_written[t, s] / share) / busy
    if m.read_bandwidth[s] < inf:
        slowdown = min(slowdown, m.read_bandwidth[s] / max(read, m.read_bandwidth[s]))
    if m.write_bandwidth[s] < inf:
        slowdown = min(slowdown, m.write_bandwidth[s] / max(written, m.write_bandwidth[s]))
    if m.bandwidth[s] < inf:
        slowdown = min(slowdown, m.bandwidth[s] / max(read + written, m.bandwidth[s]))
    x.slowdown[s] = slowdown
    # nothing computed: the level still moves its words (Timeloop divides by zero there)
    return ceil(busy / slowdown) if compute > 0.0 or slowdown < 1.0 else 0.0
