"""Computes left by filters, and treatment of empty operands by the compute units (docs/model.md, section 7.3)."""

from __future__ import annotations

from sparsemap.inner.primitives import ceil, floor
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import GATE, NONE, SKIP, Facts
from .records import Counts, FigureTables
from .removal import reached
from .stored import positive

NONZERO = 0
ZERO = 1
ABSENT = 2
"""States of an operand: rows of `OneDesign.state`. A zero left out by metadata is absent."""
TOLERANCE = 1e-5
"""Allowed excess of a probability above one in Timeloop (Q9)."""


def less(count: Real, share: Real) -> Real:
    """Count without the share, rounded as in Timeloop."""
    return count - floor(count * share)


def truncated(x: Real) -> Real:
    """Real number without the fraction."""
    return floor(x) if x >= 0.0 else ceil(x)


def unit_kind(m: Facts, x: OneDesign) -> Whole:
    """Action of the compute units on empty operands: none, gate or skip."""
    return m.kind[m.filters, x.chosen[m.unit]] if m.unit >= 0 else NONE


def acting_level(m: Facts, c: Counts, t: Whole) -> Whole:
    """Innermost level with a filter on tensor t; -1: none."""
    for s in range(m.S - 1, -1, -1):
        if c.kind[t, s] != NONE:
            return s
    return -1


def compute(m: Facts, k: FigureTables, x: OneDesign, c: Counts) -> None:
    """Compute 7.3: actual, gated, skipped and passed computes."""
    c.left = x.computes
    for t in range(m.T):
        x.emptied[t] = 0.0
    leave_computes(m, x, c)
    deal_computes(m, x, c)
    find_states(m, x, c)
    nonzero = 1.0
    for i in range(m.operand.shape[0]):
        nonzero *= x.state[NONZERO, i]
        c.there[i] = 1.0 - x.state[ABSENT, i]
    if m.joint:
        effectual = x.computes * m.nonzeros[0, 1]  # no filter removes one
        nonzero = min(1.0, effectual / positive(c.left))
        meet_jointly(x, c, nonzero)
    elif m.operand.shape[0] == 2:
        meet_two(x, c)
    else:
        meet_several(m, x, c)
    if m.q16 and m.operand.shape[0] != 2:
        forget_computes(m, x, c)
    use_units(m, k, x, c)
    c.nonzero = c.left * nonzero


def use_units(m: Facts, k: FigureTables, x: OneDesign, c: Counts) -> None:
    """Apply the units' action to computes with empty operands. On entry, `skipped` counts computes with some operand
    absent, `gated` computes with any empty operand, and `passed` computes with all operands absent."""
    kind = unit_kind(m, x)
    vanish = floor(c.passed)
    saved = c.skipped if kind == SKIP else c.gated if kind == GATE else 0.0
    if m.unit >= 0:  # with limits of its own the unit leaves out fewer
        share = saved / positive(c.left)
        caught_share = reached(m, k, m.filters, x.chosen[m.unit], share)
        if caught_share < share:
            saved = c.left * caught_share
    saved = floor(saved)
    c.skipped = saved if kind == SKIP else 0.0
    c.gated = saved if kind == GATE else 0.0
    c.actual = truncated(c.left - c.skipped - c.gated - vanish)
    c.passed = 0.0 if kind == SKIP else vanish


def leave_computes(m: Facts, x: OneDesign, c: Counts) -> None:
    """Computes left by filters on operands. Only the innermost filter of an operand counts. An empty leader tile
    removes a compute once, so each operand in turn removes only the remainder."""
    for i in range(m.operand.shape[0]):
        t = m.operand[i]
        s = acting_level(m, c, t)
        if m.operand.shape[0] == 2:
            share = c.share[t, s] if s >= 0 else 0.0
            if m.joint:
                share = joint_share(m, x, c, t, s)
            c.left = less(c.left, share)
            x.emptied[m.operand[1 - i]] = share
        elif m.q16:
            c.left = less(c.left, c.share[t, s] if s >= 0 else 0.0)
        elif s >= 0:
            stay = 1.0
            for u in range(m.T):
                before = x.emptied[u]
                x.emptied[u] = max(before, c.led[t, u, s])
                if before < 1.0:
                    stay *= (1.0 - x.emptied[u]) / (1.0 - before)
            c.left = less(c.left, 1.0 - stay)


def joint_share(m: Facts, x: OneDesign, c: Counts, t: Whole, s: Whole) -> Real:
    """7.5: share of computes removed by the filter of operand t, among the computes left by the other operand's filter
    on zeros of t."""
    full = 1.0
    for u in range(m.T):
        full *= 1.0 - (c.led[t, u, s] if s >= 0 else 0.0)
    share = 1.0 - full
    other = m.operand[0] if m.operand[1] == t else m.operand[1]
    given = m.own_nonzeros[t]
    if m.operand[1] == t and near(x.emptied[t], 1.0 - given) and near(share, 1.0 - m.own_nonzeros[other]):
        return 1.0 - (m.nonzeros[0, 1] / given if given > 0.0 else 0.0)
    return share


def near(a: Real, b: Real) -> Whole:
    """Whether a equals b up to rounding."""
    return abs(a - b) <= 1e-8 + 1e-5 * abs(b)


def deal_computes(m: Facts, x: OneDesign, c: Counts) -> None:
    """7.4: remove computes without a lane, due to an empty leader."""
    for t in range(m.T):
        if x.dealt[t] < 0.0:
            continue
        before = x.emptied[t]
        share = x.dealt[t]
        if before > 0.0:
            share = max(1.0 - (1.0 - x.dealt[t]) / positive(1.0 - before), 0.0)
        c.left = less(c.left, share)
        x.emptied[t] = max(before, x.dealt[t])


def find_states(m: Facts, x: OneDesign, c: Counts) -> None:
    """Probabilities of nonzero, zero and absent operands at the computes left."""
    for i in range(m.operand.shape[0]):
        t = m.operand[i]
        inside = x.packed[t, m.innermost[t]]
        present = m.rounded[t]
        if m.joint:
            other = m.operand[1 - i]
            zeros = 1.0 - m.own_nonzeros[other]
            alone = (m.own_nonzeros[t] - m.nonzeros[0, 1]) / zeros if zeros > 0.0 else 0.0
            gone = x.emptied[other]
            present = (m.own_nonzeros[t] - gone * alone) / (1.0 - gone if gone < 1.0 else 1.0)
        share = 1.0 - floor(1e6 * x.emptied[t] + 0.5) / 1e6
        present = present / share if share > 0.0 else 0.0
        c.impossible[i] = present > 1.0 + TOLERANCE
        present = min(max(present, 0.0), 1.0)
        rest = 1.0 - present
        x.state[NONZERO, i] = present
        x.state[ZERO, i] = 0.0 if inside else rest
        x.state[ABSENT, i] = rest if inside else 0.0
        if x.granule[t] and inside:  # zeros that are stored with a granule are there (6.5)
            held_share = min(max(x.granule_density[t] / positive(share), present), 1.0)
            x.state[ZERO, i] = held_share - present
            x.state[ABSENT, i] = 1.0 - held_share


def meet_two(x: OneDesign, c: Counts) -> None:
    """Count computes by the states of two operands. As in Timeloop, a combination and its mirror image are added before
    multiplication."""
    p = x.state[NONZERO, 0]
    q = x.state[NONZERO, 1]
    zero_p = x.state[ZERO, 0]
    zero_q = x.state[ZERO, 1]
    absent_p = x.state[ABSENT, 0]
    absent_q = x.state[ABSENT, 1]
    absent = c.left * (p * absent_q + absent_p * q) + c.left * (zero_p * absent_q + absent_p * zero_q)
    zero = c.left * (p * zero_q + zero_p * q) + c.left * (zero_p * zero_q)
    c.skipped = absent
    c.gated = absent + zero
    c.passed = c.left * (absent_p * absent_q)


def meet_jointly(x: OneDesign, c: Counts, both: Real) -> None:
    """7.5: as `meet_two`, for operands with both nonzero at a share `both` of the computes."""
    p = max(x.state[NONZERO, 0], both)
    q = min(max(x.state[NONZERO, 1], both), 1.0 + both - p)
    gone_p = x.state[ABSENT, 0] / positive(x.state[ZERO, 0] + x.state[ABSENT, 0])
    gone_q = x.state[ABSENT, 1] / positive(x.state[ZERO, 1] + x.state[ABSENT, 1])
    none = 1.0 - p - q + both
    absent = (p - both) * gone_q + (q - both) * gone_p + none * (gone_p + gone_q - 2.0 * gone_p * gone_q)
    c.skipped = c.left * absent
    c.passed = c.left * (none * gone_p * gone_q)
    c.gated = c.skipped + (c.left * (1.0 - both) - c.skipped - c.passed)


def meet_several(m: Facts, x: OneDesign, c: Counts) -> None:
    """As `meet_two`, for any number of operands; in the order of combinations, the first operand changes fastest."""
    every = 1
    for _ in range(m.operand.shape[0]):
        every *= 3
    c.skipped = 0.0
    c.gated = 0.0
    c.passed = 0.0
    for which in range(1, every):  # 0: all are nonzero
        chance = 1.0
        gone = 0
        rest = which
        for i in range(m.operand.shape[0]):
            state = rest % 3
            rest //= 3
            chance *= x.state[state, i]
            if state == ABSENT:
                gone += 1
        count = chance * c.left
        if gone == m.operand.shape[0]:
            c.passed += count
            continue
        c.gated += count
        if gone > 0:
            c.skipped += count


def forget_computes(m: Facts, x: OneDesign, c: Counts) -> None:
    """Q16: with filtered operands, Timeloop counts only combinations with the first filtered operand empty. All other
    computes are carried out."""
    first = -1
    every = 1
    nonzero = 1.0
    for i in range(m.operand.shape[0]):
        nonzero *= x.state[NONZERO, i]
        if acting_level(m, c, m.operand[i]) < 0:
            every = 0
        elif first < 0:
            first = i
    if first < 0:
        return
    there = c.left
    gone = c.left
    for i in range(m.operand.shape[0]):
        if i != first:
            there *= x.state[NONZERO, i]
            gone *= 1.0 - x.state[NONZERO, i]
    absent = there * x.state[ABSENT, first]
    c.skipped = 0.0 if every else absent
    c.gated = 0.0 if every else absent + there * x.state[ZERO, first]
    c.passed = c.left * (1.0 - nonzero) if every else gone
