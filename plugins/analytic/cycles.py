"""Cycles with bandwidth, and what compute units and levels wait for (section 8 of the model and its charges)."""

from __future__ import annotations

import attrs
import numpy as np

from sparsemap.pieces.boundary import charged
from sparsemap.pieces.contracts.base import PerDesign, PerLevel, PerTile
from sparsemap.problem.chip import Chip

from .actions import GATE
from .charges.imbalance import Thinned, waiting_ratio
from .charges.intersection import looked_at
from .charges.overlap import Transfers, overlapped
from .charges.uneven import Uneven
from .counts import Counts
from .layout import by_level, limited
from .nest import DesignChoices, Nest
from .prepared import ModelTables
from .removal import Removals
from .traffic import Traffic


@attrs.frozen(eq=False)
class Cycles:
    """Clock cycles."""

    compute: PerDesign
    """(B,) of the compute units."""
    level: PerLevel
    """(S, B) that each level needs; with the next one, without the waiting of `overlap`."""
    slowdown: PerLevel
    """(S, B) share of the words asked for that a level can move."""
    total: PerDesign
    """(B,) of the whole design."""


@attrs.frozen(eq=False)
class Demand:
    """Words of one instance in the time that a level has, (T, S, B): data and metadata, gated ones included, skipped ones
    not."""

    read: PerTile
    written: PerTile
    filled: PerTile
    """Of those written, the words that come from the parent."""


def cycles_of(
    known: ModelTables,
    nest: Nest,
    choices: DesignChoices,
    traffic: Traffic,
    removals: Removals,
    every: Counts,
    counts: Counts,
) -> Cycles:
    """Section 8. The units work as long as the fullest of those that wait for each other, the mean times the ratio of
    `imbalance`, and pass empty positions no faster than `intersection` allows; never longer than the nest has steps.
    `counts` are those of the filters that save time, `every` those of all."""
    lay, options, chip = known.layout, known.options, choices.chip
    computes = counts.computes
    busy = computes.actual + computes.gated
    if options.positions:
        busy = busy + computes.passed
    lanes = removals.lanes
    units = nest.units_of(nest.instances_used[lay.S] * (1.0 if lanes is None else lanes.units))
    share = busy / np.where(units > 0.0, units, 1.0)
    compute = mean = np.ceil(share) if nest.remainders is None else whole(share)
    if options.vectors and lay.problem.levels[-1].memory.vectors:
        from .charges.vectors import whole_steps

        ratio = whole_steps(known, nest, choices, removals.time)
        if ratio is not None:
            compute = mean = np.minimum(np.where(ratio > 1.0, whole(share * ratio), mean), nest.turns)
    if options.imbalance:
        thinned = Thinned.of(known, nest, choices, removals.time)
        ratio = waiting_ratio(known, nest, choices, thinned)
        if ratio is not None:
            compute = np.where(ratio > 1.0, np.minimum(whole(compute * ratio), nest.turns), compute)
    if options.intersection:
        compute = looked_at(known, nest, choices, traffic, removals.time, counts, compute)
    demand = demand_of(chip, counts, nest)
    used = nest.instances_used[: lay.S] * (1.0 if lanes is None else lanes.most)
    level, slowdown = level_cycles(chip, demand, used, counts.active, compute)
    total = compute
    for here in level:
        total = np.maximum(total, here)
    if options.overlap:
        transfers = Transfers.of(nest, traffic, counts, demand, chip)
        uneven = Uneven(known, nest, choices, removals.time, thinned, mean) if options.imbalance else None
        total = np.maximum(total, overlapped(transfers, lay.problem.buffers, compute, level, uneven))
    if known.strangers:
        from .public import chip_counts

        public = chip_counts(nest, every, total)
        for charge in known.strangers:
            total = np.maximum(total, charged(charge, "cycles", public, chip))
    return Cycles(compute, level, slowdown, total)


def whole(cycles: PerDesign) -> PerDesign:
    """Rounded up, but for the noise of a number that is whole in mathematics."""
    return np.ceil(cycles * (1.0 - 1e-12))


def demand_of(chip: Chip, counts: Counts, nest: Nest) -> Demand:
    """Words that every level moves in time; where loops end with the data, of the instance that has the most."""
    bits = counts.bits
    (gated_read, gated_update), filled = counts.gone(GATE), counts.fill
    read, written = counts.read + gated_read, counts.fill + counts.update + gated_update
    if bits:
        word = by_level(chip.word_bits)
        timed_read, timed_write = bits["read"], bits["fill"] + bits["update"]
        if "gated_read" in bits:
            timed_read = timed_read + bits["gated_read"]
            timed_write = timed_write + bits["gated_update"]
        read = read + np.floor(timed_read / word)
        written = written + np.floor(timed_write / word)
        filled = filled + np.floor(bits["fill"] / word)
    if nest.remainders is not None:
        lay, fullest, filled = nest.layout, nest.remainders.fullest, filled.copy()
        for t in range(lay.T):
            for s in np.flatnonzero(lay.handled[t]).tolist():
                serves, comes = fullest(t, (lay.child(t, s) or lay.S) - 1, s), fullest(t, s - 1, s)
                read[t, s] *= serves
                written[t, s] *= np.maximum(serves, comes) if t == lay.output else comes
                filled[t, s] *= comes
    return Demand(read, written, filled)


def level_cycles(
    chip: Chip, demand: Demand, used: PerLevel | PerTile, active: PerTile, compute_cycles: PerDesign
) -> tuple[PerLevel, PerLevel]:
    """Cycles that each level needs and its slowdown; `active` instances are expected in use of the `used` ones."""
    busy = np.where(compute_cycles > 0.0, compute_cycles, 1.0)
    alive = active > 0.0
    share = used / np.where(alive, active, 1.0)
    # averaged over instances and rounded up tensor by tensor, then added in their order
    reads = np.where(alive, np.ceil(demand.read / share), 0.0) / busy
    writes = np.where(alive, np.ceil(demand.written / share), 0.0) / busy
    read, written = reads[0], writes[0]
    for t in range(1, len(reads)):
        read, written = read + reads[t], written + writes[t]
    slowdown = np.ones(read.shape)
    for s in range(len(chip)):
        demands = ((chip.read_bandwidth[s], read[s]), (chip.write_bandwidth[s], written[s]))
        for bandwidth, words in (*demands, (chip.bandwidth[s], read[s] + written[s])):
            if limited(bandwidth):  # inf over inf is none: it does not slow down
                slowdown[s] = np.fmin(slowdown[s], bandwidth / np.maximum(words, bandwidth))
    cycles = np.ceil(busy / slowdown)
    # nothing computed: the level still moves its words (Timeloop divides by zero there)
    return np.where((compute_cycles > 0.0) | (slowdown < 1.0), cycles, 0.0), slowdown
