"""The chain of docs/model.md for one design after another: loops and choices in, energy, cycles and reasons out."""

from __future__ import annotations

from sparsemap.inner.types import Reals, Reals3, Small2, Small3, Whole, Wholes

from .checks import check_data, check_dense, check_fanout, check_formats, check_loops, check_metadata
from .cost import cost
from .counts import count_all
from .cycles import cycle
from .design import OneDesign
from .facts import Facts
from .imbalance import thin, waiting_ratio
from .lanes import deal_lanes, narrow_groups
from .metadata import fullest_bits, metadata
from .nest import nest, unrolled
from .records import Counts, FigureTables
from .removal import filter_accesses
from .runs import find_blocks
from .stored import store
from .traffic import traffic

__all__ = ["evaluate", "evaluate_whole"]


def evaluate(
    m: Facts, k: FigureTables, x: OneDesign, every: Counts, timed: Counts, bounds: Reals3, order: Small3, slots: Small3,
    genes: Small2, decoded: Small2, state: Wholes, energy: Reals, cycles: Reals, reasons: Wholes,
) -> None:  # fmt: skip
    """Energy in pJ, cycles and reasons (B,) of the designs with `state` 0. The state becomes 1 where tables are
    complete, and 2 where the columns are no design. Designs: bounds and order (L, D, B), formats (T, slots, B),
    mechanisms (A, B), decoding levels (T, B)."""
    for b in range(state.shape[0]):
        if state[b] or k.full:
            continue
        if not take_design(m, x, bounds, order, slots, genes, decoded, b):
            state[b] = 2
            continue
        x.whole = 0
        chain(m, k, x, every, timed)
        if k.lacking:
            continue
        state[b] = 1
        reasons[b] = x.reasons
        if x.reasons == 0:
            energy[b] = x.energy_pj
            cycles[b] = x.cycles


def evaluate_whole(
    m: Facts, k: FigureTables, x: OneDesign, every: Counts, timed: Counts, bounds: Reals3, order: Small3, slots: Small3,
    genes: Small2, decoded: Small2, b: Whole,
) -> Whole:  # fmt: skip
    """Evaluate the whole chain for design b, even if invalid. Returns 1 if the tables are complete, 0 if figures are
    missing, 2 if the columns are no design. A design with loops not multiplying to the sizes has no tiles: bounds of
    one replace the loops."""
    if not take_design(m, x, bounds, order, slots, genes, decoded, b):
        return 2
    x.whole = 1
    chain(m, k, x, every, timed)
    return not k.lacking


def take_design(
    m: Facts, x: OneDesign, bounds: Reals3, order: Small3, slots: Small3, genes: Small2, decoded: Small2, b: Whole
) -> Whole:
    """Copy loops and choices of design b; return whether all numbers are in range."""
    good = 1
    for g in range(m.L):
        seen = 0
        for d in range(m.D):
            x.bound[g, d] = bounds[g, d, b]
            x.order[g, d] = order[g, d, b]
            if x.order[g, d] < 0 or x.order[g, d] >= m.D:
                return 0
            seen |= 1 << x.order[g, d]
            if not x.bound[g, d] >= 1.0:
                good = 0
        if seen != (1 << m.D) - 1:
            good = 0
    for t in range(m.T):
        x.decoded[t] = decoded[t, b]
        if x.decoded[t] < 0 or x.decoded[t] > m.S:
            good = 0
        for r in range(m.slots):
            x.slot[t, r] = slots[t, r, b]
            if x.slot[t, r] < 0 or x.slot[t, r] >= m.compressed.shape[0]:
                good = 0
    for a in range(genes.shape[0]):
        x.chosen[a] = genes[a, b]
        if x.chosen[a] < 0 or x.chosen[a] >= m.kind.shape[1]:
            good = 0
    return good


def chain(m: Facts, k: FigureTables, x: OneDesign, every: Counts, timed: Counts) -> None:
    """Evaluate all links, up to the first with a reason, or, with `whole`, to the end."""
    k.lacking = 0
    x.reasons = 0
    unrolled(m, x)
    check_loops(m, x)
    wrong = x.reasons != 0
    narrow_groups(m, k, x)
    if k.lacking:
        return
    check_fanout(m, x)
    check_formats(m, x)
    if x.reasons and not x.whole:
        return
    if wrong:
        for g in range(m.L):
            for d in range(m.D):
                x.bound[g, d] = 1.0
        unrolled(m, x)
    nest(m, x)
    store(m, k, x)
    if not k.lacking:
        check_data(m, x)
    elif check_dense(m, x) and not x.whole:
        return  # it may not fit: nothing else is asked for
    if x.reasons and not x.whole:
        return
    deal_lanes(m, k, x)
    filter_accesses(m, k, x, every, timed)
    metadata(m, k, x, every)
    traffic(m, k, x)
    if k.lacking:  # what the work needs is asked for as well
        if m.imbalance or m.shared_words or m.intersection:
            thin(m, x)
        if m.imbalance or m.shared_words:
            waiting_ratio(m, k, x)
        if m.intersection:
            find_blocks(m, k, x)
        return
    fullest_bits(m, x)
    check_metadata(m, x)
    if x.reasons and not x.whole:
        return
    count_all(m, k, x, every, timed)
    check_probability(m, x, every)
    if x.differ:
        cycle(m, k, x, timed)
    else:
        cycle(m, k, x, every)
    if k.lacking:
        return
    cost(m, k, x, every)


def check_probability(m: Facts, x: OneDesign, c: Counts) -> None:
    """Q9: reject a probability above one, at which Timeloop stops."""
    for i in range(m.operand.shape[0]):
        t = m.operand[i]
        if c.impossible[i] and m.probability_bit[t] >= 0:
            x.reasons |= 1 << m.probability_bit[t]
