"""`intersection`: a skipping unit compares metadata and passes a limited number of positions per cycle."""

from __future__ import annotations

from sparsemap.inner.numbers import exp, expm1, log1p, power
from sparsemap.inner.primitives import ceil, inf, sqrt
from sparsemap.inner.types import Pair, Real, Whole

from .computes import unit_kind
from .design import OneDesign
from .facts import SKIP, Facts
from .records import Counts, FigureTables
from .runs import find_blocks, passed, passed_runs
from .stored import positive


def rounded_up(cycles: Real) -> Real:
    """Whole cycles, ignoring the rounding noise of mathematically whole numbers."""
    return ceil(cycles * (1.0 - 1e-12))


def unskipped(m: Facts, c: Counts, t: Whole, s: Whole) -> Real:
    """Share of the accesses to tensor t at a level left by skips further out; the innermost of these skips counts."""
    for outer in range(s - 1, -1, -1):
        if c.kind[t, outer] == SKIP:
            return 1.0 - c.share[t, outer]
    return 1.0


def pass_cycles(m: Facts, k: FigureTables, x: OneDesign, c: Counts, mean: Real, busy: Real) -> Real:
    """Cycles of units busy in some positions and passing the others by skips of finite width. `c`: counts with the
    filters saving time; `mean`: busy cycles of the mean unit. `unit_cycles`: cycles of all skip units of a place.

    Two stages pass single positions: skips selecting words for the units, then skips of the units on the remaining
    positions. Each stage passes the positions between two products at its own width; the slower stage sets the rate.
    Skips further out pass tiles, and empty tiles take extra cycles. For a skip walking along entries, the positions are
    entries."""
    positions = x.turns
    width = inf
    second = busy
    waited = 0.0
    for a in range(x.waits.shape[0]):
        x.waits[a] = 0.0
        x.unit_cycles[a] = 0.0
        x.compared[a] = -1.0
    walk_entries(m, x, c)
    find_blocks(m, k, x)
    for i in range(m.filters):
        t = m.target[i]
        s = m.level[i]
        a = m.gene[i]
        if x.acts[i] != SKIP or not x.saves[i]:
            continue
        child = m.child[t, s]
        if t == m.output:
            x.unit_cycles[a] = max(x.unit_cycles[a], mean * x.units if child < 0 else 0.0)
            continue
        limit = min(m.sight[m.place[i]], m.width[i, x.chosen[a]])
        left = unskipped(m, c, t, s)
        listed = 1.0
        if x.compared[a] >= 0.0:
            listed = x.compared[a]
            if m.entries[i, x.chosen[a]]:
                limit = 1.0
        if child < 0:
            here = x.turns * left * listed
            chance = x.stay_share * (x.turns / positive(here))
            x.unit_cycles[a] = max(x.unit_cycles[a], passed_runs(here, mean, limit, x.stay, chance) * x.units)
            if limit < inf:
                positions = min(positions, here)
                width = min(width, limit)
            continue
        tiles = x.brought[t, child] / x.words[t, child] * left
        taken = tiles * min(1.0, (1.0 - x.effect_access[i]) / positive(left))
        each = passed(max(tiles * listed, taken), taken, limit)
        x.unit_cycles[a] = max(x.unit_cycles[a], each * x.used[child])
        x.waits[a] = max(x.waits[a], each - taken)
    if unit_kind(m, x) == SKIP:
        candidate = x.chosen[m.unit]
        reached = c.left / x.units
        limit = min(m.sight[m.S], m.width[m.filters, candidate])
        there = reached
        if m.entries[m.filters, candidate]:
            listed = unit_entries(m, x, c, limit)
            there = reached * listed
            reached = there * sqrt(busy / positive(x.mean_cycles))
            limit = 1.0
        # without a first stage, runs of whole blocks are left
        chance = 1.0 if width < inf else x.stay_share
        second = passed_runs(reached, busy, limit, x.stay, chance)
        x.unit_cycles[m.unit] = passed_runs(there, mean, limit, x.stay, chance) * x.units
    for a in range(x.waits.shape[0]):
        waited += x.waits[a]
    first = passed_runs(positions, busy, width, x.stay, x.stay_share * (x.turns / positive(positions)))
    return min(rounded_up(max(first, second) + waited), x.turns)


def units_pj(m: Facts, x: OneDesign) -> Real:
    """`intersection`: pJ of the skip units of all places, each as large as `unit_macs` 16-bit MACs."""
    added = 0.0
    for a in range(x.unit_cycles.shape[0]):
        if x.unit_cycles[a] > 0.0:
            added += x.unit_cycles[a] * m.unit_pj[x.chosen[a]]
    return added


def walk_entries(m: Facts, x: OneDesign, c: Counts) -> None:
    """`compared`: by place, cycles per position of skips walking along entries."""
    for i in range(m.filters):
        t = m.target[i]
        a = m.gene[i]
        if x.acts[i] != SKIP or t == m.output or not x.saves[i] or not m.entries[i, x.chosen[a]]:
            continue
        if x.compared[a] < 0.0:
            x.compared[a] = 1.0
            for u in range(m.T):
                x.entry_chance[a, u] = -1.0
        x.comparator[a] = min(m.sight[m.place[i]], m.width[i, x.chosen[a]])
        left = positive(unskipped(m, c, t, m.level[i]))
        for j in range(m.leaders[i]):
            u = m.leader[i, j]
            x.entry_chance[a, u] = min(1.0, (1.0 - x.effect_empty[i, j]) / left)
    for i in range(m.filters):
        a = m.gene[i]
        if x.compared[a] == 1.0 and x.acts[i] == SKIP:
            x.compared[a] = comparing(m, x, m.place[i], a, x.comparator[a])


def unit_entries(m: Facts, x: OneDesign, c: Counts, width: Real) -> Real:
    """Cycles per position of a compute unit walking along entries."""
    for t in range(m.T):
        x.entry_chance[m.unit, t] = -1.0
    for i in range(m.operand.shape[0]):
        t = m.operand[i]
        if x.packed[t, m.innermost[t]]:
            x.entry_chance[m.unit, t] = c.there[i]
    return comparing(m, x, m.S - 1, m.unit, width)


def comparing(m: Facts, x: OneDesign, level: Whole, a: Whole, width: Real) -> Real:
    """Cycles per position of a level for a unit walking along the entry lists of some tensors: one per pair, and one
    per `width` entries of one list without a partner. `entry_chance`: probability of an entry at a position; -1: not
    compared.

    Lists cover the run of innermost loops moving all tensors, L positions; loops further in form one position together.
    A unit stops where a list has an entry and no list has ended. Expected stops: sum over r of prod (1 - x^r) - prod x
    (1 - x^(r-1)), with x the probability of no entry and r the positions left."""
    length, together = measure_lists(m, x, level, a)
    lists = 0
    every = 0.0
    met = 1.0
    chance = 1.0
    for t in range(m.T):
        if x.entry_chance[a, t] < 0.0:
            continue
        own = min(x.entry_chance[a, t], 1.0 - 1e-15)
        none = log1p(-own) * x.list_step[t]  # of no entry
        x.none_here[lists] = none
        every += none
        met *= 0.0 - expm1(none)
        chance *= own
        lists += 1
    if lists == 0:
        return 1.0
    total = 0.0
    for which in range(1 << lists):
        out = 0.0
        others = 0.0
        sign = 1.0
        for i in range(lists):
            if which >> i & 1:
                out += x.none_here[i]
                sign = -sign
            else:
                others += x.none_here[i]
        ended = 0.0 - expm1(out)
        turns = (0.0 - expm1(length * out)) / ended if ended > 0.0 else length
        total += sign * turns * exp(out) * (0.0 - expm1(others))
    missed = max(total - length * met, 0.0)
    stop = 0.0 - expm1(every)
    cycles = missed
    full = 1.0
    for i in range(lists):
        full *= 0.0 - expm1(x.none_here[i] * length)
    for i in range(lists):
        none = x.none_here[i]
        alone = (0.0 - expm1(none)) * exp(every - none)  # an entry in one list only, of any stop
        own = alone * (missed / max(stop - met, 1e-300))  # such stops, of each list
        # the next stop is of the same list, but for that of the first one of all
        again = alone / max(stop, 1e-300)
        again -= again * again * full / max(own, 1e-300)
        again = min(max(again, 0.0), 1.0 - 1e-12) if own > 0.0 else 0.0
        cycles -= own * (1.0 - (1.0 - again) / (1.0 - power(again, width)))
    return min(max(chance + cycles / (length * together), 0.0), 1.0)


def measure_lists(m: Facts, x: OneDesign, level: Whole, a: Whole) -> Pair:
    """Positions of the lists, and iterations of all loops further in; `list_step`: iterations of these loops moving
    each tensor."""
    length = 1.0
    together = 1.0
    inside = 1
    for t in range(m.T):
        x.list_step[t] = 1.0
    for p in range(x.loops):
        if x.loop_block[p] > level or x.loop_spatial[p]:
            continue
        d = x.loop_dim[p]
        every = 1
        for t in range(m.T):
            if x.entry_chance[a, t] >= 0.0 and not m.relevant[t, d]:
                every = 0
        if every:
            inside = 0
            length *= x.loop_bound[p]
            continue
        if not inside:
            break
        together *= x.loop_bound[p]
        for t in range(m.T):
            if m.relevant[t, d]:
                x.list_step[t] *= x.loop_bound[p]
    return length, together
