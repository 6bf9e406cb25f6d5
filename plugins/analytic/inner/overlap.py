"""`overlap`: transfers hide behind computing only with a second buffer, limited by unevenness of tiles and of their
work."""

from __future__ import annotations

from sparsemap.inner.numbers import exp, power
from sparsemap.inner.primitives import inf, sqrt
from sparsemap.inner.types import Pair, Real, Reals2, Whole

from .design import OneDesign
from .facts import Facts
from .metadata import shapes
from .nest import width
from .ratios import ONE, ROOT_OF_TWO_PI, TWO, by_lanes, loose, work_of, work_ratio
from .records import Counts, FigureTables
from .skipping import rounded_up
from .stored import positive
from .work import APART, EXTENT, STAYS, fit_boxes, stride_of, thinned, widen

NEAR = 0.1
"""If the shorter of two times is below this share of the longer, only the longer counts."""
ROOT_OF_PI = 1.7724538509055159


def above(at: Real) -> Real:
    """Probability of a normal variable above a number from 0 on, to 1e-5 (Abramowitz and Stegun, 26.2.16)."""
    k = 1.0 / (1.0 + 0.33267 * at)
    return exp(-0.5 * (at * at)) / ROOT_OF_TWO_PI * (0.4361836 * k - 0.1201676 * (k * k) + 0.9372980 * (k * k * k))


def later(a: Real, b: Real, spread_a: Real, spread_b: Real, some: Real) -> Real:
    """Expected larger of two times with means a and b and deviations `spread_a`, `spread_b`. `some`: probability of a
    nonzero first time, 1 if unknown.

    Where both are above zero, the mean of the smaller is taken from two normal variables, and is at least the mean for
    exponential variables. A time with a deviation above the mean is taken as either zero or exponential."""
    of_a = spread_a / a
    of_b = spread_b / b
    there_a = some if some < 1.0 else 2.0 / (1.0 + max(of_a * of_a, 1.0))
    there_b = 2.0 / (1.0 + max(of_b * of_b, 1.0))
    part_a = a / there_a
    part_b = b / there_b
    rest_a = max((a * a + spread_a * spread_a) / there_a - part_a * part_a, 0.0)
    rest_b = max((b * b + spread_b * spread_b) / there_b - part_b * part_b, 0.0)
    spread = sqrt(rest_a + rest_b)
    apart = abs(part_a - part_b) / spread if spread > 0.0 else 9.0
    bell = exp(-0.5 * (apart * apart)) / ROOT_OF_TWO_PI
    normal = min(part_a, part_b) - spread * max(bell - apart * above(apart), 0.0)
    return a + b - there_a * there_b * max(normal, 1.0 / (1.0 / part_a + 1.0 / part_b))


def find_transfers(m: Facts, x: OneDesign, c: Counts) -> None:
    """Words of one instance in time, by direction: filled, drained, sent, got."""
    for t in range(m.T):
        for s in range(m.S):
            share = x.active[t, s] / x.used[s]
            x.filled[t, s] = share * x.demand_filled[t, s]
            x.sent[t, s] = share * x.demand_read[t, s]
            x.drained[t, s] = 0.0
            if t == m.output:
                leaving = x.leaving[s]
                if m.drains:
                    part = c.leaving[s] / positive(c.read[t, s])
                    leaving = min(max(part, 0.0), 1.0) * x.demand_read[t, s]
                x.drained[t, s] = share * leaving
                if m.drains:
                    x.sent[t, s] -= x.drained[t, s]
            x.got[t, s] = max(share * x.demand_written[t, s] - x.filled[t, s], 0.0)
            x.sent[t, s] = max(x.sent[t, s], 0.0)


def moving(m: Facts, s: Whole, read: Reals2, written: Reals2, tensors: Whole) -> Real:
    """Cycles for the words of some tensors read and written by level s. `tensors`: a bit per tensor."""
    out = 0.0
    into = 0.0
    for t in range(m.T):
        if tensors >> t & 1:
            out += read[t, s]
            into += written[t, s]
    found = 0.0
    if m.read_bandwidth[s] < inf:
        found = max(found, out / m.read_bandwidth[s])
    if m.write_bandwidth[s] < inf:
        found = max(found, into / m.write_bandwidth[s])
    if m.bandwidth[s] < inf:
        found = max(found, (out + into) / m.bandwidth[s])
    return found


def exchanging(m: Facts, x: OneDesign, h: Whole, tensors: Whole) -> Real:
    """Cycles for the words of some tensors between level h and their parents."""
    found = moving(m, h, x.drained, x.filled, tensors)
    for p in range(h):
        of_parent = 0
        for t in range(m.T):
            if tensors >> t & 1 and m.parent[t, h] == p:
                of_parent |= 1 << t
        if of_parent:
            found = max(found, moving(m, p, x.sent, x.got, of_parent))
    return found


def stalled(m: Facts, x: OneDesign, h: Whole, tensors: Whole) -> Real:
    """Stall cycles of an instance of level h for tiles of some tensors. While the parent serves other instances, the
    instance works on."""
    apart = 0.0
    for t in range(m.T):
        if tensors >> t & 1:
            served = 1.0
            for block in range(m.parent[t, h], h):
                served *= x.distinct[t, block]
            apart += moving(m, m.parent[t, h], x.sent, x.got, 1 << t) / served
    return max(moving(m, h, x.drained, x.filled, tensors), min(apart, exchanging(m, x, h, tensors)))


def tile_work(m: Facts, x: OneDesign, t: Whole, h: Whole) -> None:
    """Boxes of the lanes using one tile of tensor t at level h."""
    x.alongs = 0
    parent = m.parent[t, h]
    for d in range(m.D):
        inside = 1.0
        for s in range(h, m.S):
            inside *= x.bound[m.temporal[s], d]
        x.apart[STAYS, d] = x.held[h - 1, t, d]
        x.apart[EXTENT, d] = inside * x.held[h - 1, t, d]
        x.apart[APART, d] = inside
    for s in range(parent, m.S):
        if m.spatial[s] < 0:
            continue
        for d in range(m.D):
            bound = x.bound[m.spatial[s], d]
            x.apart[APART, d] *= bound
            if bound > 1.0 and (s >= h or not m.relevant[t, d]):
                x.along_dim[x.alongs] = d
                x.along_stride[x.alongs] = stride_of(m, x, s, d)
                x.along_bound[x.alongs] = bound
                x.alongs += 1
    x.depth = 1
    x.grown = -1
    x.parts = 1.0
    x.pitch = 1.0
    widen(m, x, h)
    fit_boxes(m, x)


def work_spread(m: Facts, k: FigureTables, x: OneDesign) -> Pair:
    """Relative deviation, from tile to tile, of the longest work of the units using a tile, and the probability of any
    work."""
    different = x.crowd
    square = 1.0
    some = 1.0
    share = 1.0
    pairs = x.volume * x.crowd
    apart = x.volume
    finite = 0
    single = 1
    for i in range(m.operand.shape[0]):
        if x.looks[i] == inf:
            continue
        finite += 1
        different = x.lanes[i] if finite == 1 else x.crowd
        if x.looks[i] != 1.0:
            single = 0
        words = 1.0
        for r in range(shapes(m, m.operand[i])):
            words *= x.box[i, r]
            k.argument[1 + r] = x.box[i, r]
        start = work_of(m, k, i, x.looks[i])
        if start < 0:
            continue
        mean = k.data[start + ONE]
        moment = k.data[start + m.lanes]
        if x.lanes[i] == 1.0 and mean > 0.0:  # all units have the same
            square *= moment / (mean * mean)
        any_of = 1.0 - power(1.0 - min(k.data[start + m.lanes + 1], 1.0), x.lanes[i])
        words = max(words, x.looks[i])
        some *= any_of
        share *= loose(mean, moment, words)
        pairs *= mean / positive(any_of)
        apart /= words
    longest = by_lanes(m.deviations, different) * (work_ratio(m, k, x) - 1.0)
    apart = 1.0 - min(apart, 1.0) if single and finite > 1 else 0.0
    met = share * apart / max(pairs * some, 1e-300) if x.crowd == 1.0 else 0.0
    relative = square * (1.0 + longest * longest + met) - 1.0
    some *= 1.0 - apart * exp(-pairs)
    return sqrt(max(relative, 0.0)), min(max(some, 1.0 / (1.0 + relative)), 1.0)


def words_spread(m: Facts, k: FigureTables, x: OneDesign, c: Counts, t: Whole, h: Whole) -> Real:
    """Relative deviation of the words per tile of operand t at level h; an omitted tile counts as 0 words."""
    left = 1.0 - c.comes[t, h]
    square = 0.0
    if x.packed[t, h]:
        i = 0
        for j in range(m.operand.shape[0]):
            if m.operand[j] == t:
                i = j
        if shapes(m, t) == 1:
            k.argument[1] = x.words[t, h]
        else:
            for r in range(m.ranks[t]):
                k.argument[1 + r] = width(m, t, r, x.extent, m.spans[t, h])
        start = work_of(m, k, i, 1.0)
        if start >= 0:
            mean = k.data[start + ONE]  # of two of them the fuller one tells the deviation
            deviation = ROOT_OF_PI * (k.data[start + TWO] - mean) / positive(mean)
            square = deviation * deviation
    return sqrt(max((1.0 + square) / max(left, 1e-12) - 1.0, 0.0))


def pipelined(m: Facts, k: FigureTables, x: OneDesign, c: Counts, h: Whole, tensors: Whole, time: Real) -> Real:
    """Cycles of computing for `time` while the next tiles arrive and results leave."""
    results = tensors & 1 << m.output
    most = 1.0
    single = 0.0
    for t in range(m.T):
        if tensors >> t & 1:
            x.turn[t] = max(1.0, (x.leaving[h] if t == m.output else x.brought[t, h]) / x.words[t, h])
            most = max(most, x.turn[t])
            x.each[t] = exchanging(m, x, h, 1 << t)
            if t != m.output:
                single += x.each[t] / x.turn[t]
    items = max(most, 2.0) if most > 1.0 else 1.0
    come = exchanging(m, x, h, tensors - results)
    leave = exchanging(m, x, h, results)
    moved = exchanging(m, x, h, tensors)
    first = min(come, single)
    last = leave / x.turn[m.output] if results else leave
    others = max(items - 1.0, 1.0)
    loaded = (come - first) / others
    drained = (leave - last) / others
    each = time / items
    both = (loaded + drained) * moved / positive(come + leave)
    between = max(each, both)
    if m.imbalance and items > 2.0 and min(each, both) > NEAR * between:
        uneven = later_tile(m, k, x, c, h, tensors, each, both, most)
        between = min(uneven, max(both, each + stalled(m, x, h, tensors) / items))
    between = max(each, loaded) + max(items - 2.0, 0.0) * between
    return first + last + (between + max(each, drained) if items > 1.0 else time)


def later_tile(
    m: Facts, k: FigureTables, x: OneDesign, c: Counts, h: Whole, tensors: Whole, each: Real, both: Real, most: Real
) -> Real:
    """Expected larger of the work time of a tile, `each` on average, and the arrival time of the next tile, `both` on
    average."""
    square = 0.0
    worked = 0.0
    some = 1.0
    for t in range(m.T):
        if not tensors >> t & 1 or not x.turn[t] > 0.99 * most:  # others come bit by bit
            continue
        spare = m.buffers[h, t] - 1.0
        copies = sqrt(spare)
        spread = 0.0
        there = 1.0
        if thinned(m, x):
            tile_work(m, x, t, h)
            spread, there = work_spread(m, k, x)
        worked = max(worked, spread * x.worked_cycles / most / copies)
        working = min(x.worked_cycles / most / each, 1.0)  # empty positions are passed always
        some = min(some, 1.0 - power(1.0 - there, spare) * working)
        if t != m.output:
            own = words_spread(m, k, x, c, t, h) * x.each[t] / most / copies
            square += own * own
    return later(each, both, worked, sqrt(square), some)


def overlapped(m: Facts, k: FigureTables, x: OneDesign, c: Counts) -> Real:
    """Cycles of the whole run. A level without double buffering adds transfer time. `c`: counts with the filters saving
    time."""
    find_transfers(m, x, c)
    time = x.compute_cycles
    for s in range(m.S):
        to_units = 0
        for t in range(m.T):
            if m.stored[t, s] and m.child[t, s] < 0:
                to_units |= 1 << t
        time = max(time, moving(m, s, x.sent, x.got, to_units))
    for h in range(m.S - 1, 0, -1):
        doubled = 0
        single = 0
        for t in range(m.T):
            if m.stored[t, h] and m.parent[t, h] >= 0:
                if m.buffers[h, t] > 1:
                    doubled |= 1 << t
                else:
                    single |= 1 << t
        if doubled:
            time = pipelined(m, k, x, c, h, doubled, time)
        time = max(time + stalled(m, x, h, single), exchanging(m, x, h, single))
        time = max(time, x.level_cycles[h])
    return rounded_up(time)
