"""Dense traffic of one design: words delivered, multicast, partial sums (docs/model.md, section 4). All counts are per
instance."""

from __future__ import annotations

from sparsemap.inner.primitives import floor, inf
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import Facts
from .nest import fullest, led_loops, present_share, volume, width
from .records import FigureTables
from .tables import GAPS, KINDS, one_figure


def traffic(m: Facts, k: FigureTables, x: OneDesign) -> None:
    """Compute 4.1 to 4.6, with `remainders`, `drains` and `holes`."""
    for t in range(m.T):
        deliver(m, x, t)
        for s in range(m.S):
            x.distinct[t, s] = distinct_children(m, x, t, s)
            x.accesses[s] = x.delivered[s] * x.distinct[t, s]
        for s in range(m.S - 1, 0, -1):
            if not m.stored[t, s]:  # 4.5: it hands its accesses to the next outer level
                x.accesses[s - 1] = x.accesses[s - 1] * x.accesses[s] / x.delivered[s - 1]
        if t == m.output:
            divide_output(m, x)
        for s in range(m.S):
            x.reads[t, s] = 0.0
            x.fills[t, s] = 0.0
            x.updates[t, s] = 0.0
            if t == m.output:
                x.leaving[s] = 0.0
                if m.stored[t, s]:
                    exchange_output(m, x, s)
            elif m.stored[t, s]:
                x.reads[t, s] = floor(x.accesses[s] + 0.5)
                if m.parent[t, s] >= 0:
                    x.fills[t, s] = floor(x.delivered[s - 1])
            if m.streamed[t, s] and not m.stored[t, s]:
                x.reads[t, s] = floor(x.accesses[s] + 0.5)
                x.fills[t, s] = x.reads[t, s]
            if m.ragged and (m.stored[t, s] or m.streamed[t, s]):
                end(m, x, t, s)
            if t == m.output and m.first_fills:
                x.fills[t, s] = x.leaving[s]
            if t == m.output and m.drains:
                x.reads[t, s] += x.leaving[s]
            x.brought[t, s] = x.fills[t, s]
            if m.holes and has_gaps(m, t):
                child = m.child[t, s] if m.child[t, s] >= 0 else m.S
                x.reads[t, s] *= word_share(m, k, x, t, child - 1, s)
                if s > 0:
                    x.fills[t, s] *= word_share(m, k, x, t, s - 1, m.S)
    if m.widens:
        widen_sums(m, x)


def widen_sums(m: Facts, x: OneDesign) -> None:
    """14: partial sums at a level are as wide as at the next inner level."""
    t = m.output
    for s in range(m.S - 1, -1, -1):
        child = m.child[t, s]
        if m.stored[t, s] and child >= 0 and x.reads[t, s] > (x.leaving[s] if m.drains else 0.0):
            x.word_width[t, s] = max(x.word_width[t, s], x.word_width[t, child] * m.word_bits[child] / m.word_bits[s])


def exchange_output(m: Facts, x: OneDesign, s: Whole) -> None:
    """4.4 for the output. The box of a strided output includes holes without partial sums, so counts are kept from 0
    on."""
    t = m.output
    x.updates[t, s] = floor(x.accesses[s] + 0.5)
    x.reads[t, s] = max(0.0, floor(x.accesses[s] - x.partition[s] + 0.5))
    if m.parent[t, s] >= 0:
        x.fills[t, s] = max(0.0, floor(x.delivered[s - 1] - x.partition[s] + 0.5))
        x.leaving[s] = floor(x.delivered[s - 1] + 0.5)


def end(m: Facts, x: OneDesign, t: Whole, s: Whole) -> None:
    """`remainders`: scale counts to loops ending with the data. First visits of output words are scaled separately."""
    link = (m.child[t, s] if m.child[t, s] >= 0 else m.S) - 1
    led_loops(m, x, t, link)
    serves = present_share(m, x, t, link, s)
    x.gives[t, s] = fullest(m, x, t, link, s)
    x.gets[t, s] = 1.0
    comes = 0.0
    if s > 0:
        led_loops(m, x, t, s - 1)
        comes = present_share(m, x, t, s - 1, s)
        x.gets[t, s] = fullest(m, x, t, s - 1, s)
    if t != m.output:
        x.reads[t, s] *= serves
        x.fills[t, s] *= comes
        return
    seen = present_share(m, x, t, -1, s)
    before = x.updates[t, s] - x.reads[t, s]
    drained = x.leaving[s] - x.fills[t, s]
    x.updates[t, s] *= serves
    x.leaving[s] *= comes
    x.reads[t, s] = max(0.0, x.updates[t, s] - before * seen)
    x.fills[t, s] = max(0.0, x.leaving[s] - drained * seen)


def deliver(m: Facts, x: OneDesign, t: Whole) -> None:
    """4.1: words of tensor t received by one child of each level over the run."""
    outside = 1.0
    for s in range(m.S - 1):
        if m.windowed[t]:
            x.delivered[s] = window_delivered(m, x, t, s)
            continue
        group = m.temporal[s]
        still = 1
        run = 1.0
        for p in range(m.D - 1, -1, -1):
            d = x.order[group, p]
            if m.relevant[t, d] and x.bound[group, d] > 1.0:
                still = 0
                break
            run *= x.bound[group, d]
        outside = run * outside if still else run
        x.delivered[s] = x.words[t, s + 1] * (x.steps[s] / outside)
    x.delivered[m.S - 1] = handed_on(m, x, t) if m.linked[t] else x.steps[m.S - 1]


def handed_on(m: Facts, x: OneDesign, t: Whole) -> Real:
    """4.6: words received by one compute unit: one per step, except while the word stays and neighbours share it."""
    steps = x.steps[m.S - 1]
    group = m.spatial[m.S - 1]
    if group < 0:
        return steps
    shared = 0
    for p in range(m.D - 1, -1, -1):
        d = x.order[group, p]
        if x.bound[group, d] > 1.0:
            shared = not m.relevant[t, d]
            break
    if not shared:
        return steps
    run = 1.0
    for s in range(m.S - 1, -1, -1):
        for p in range(m.D - 1, -1, -1):
            d = x.order[m.temporal[s], p]
            bound = x.bound[m.temporal[s], d]
            if m.relevant[t, d] and bound > 1.0:
                return steps / run
            run *= bound
    return steps / run


def window_delivered(m: Facts, x: OneDesign, t: Whole, s: Whole) -> Real:
    """4.1 with windows: overlap is kept along the innermost moving loop, and further out while the step stays the same."""
    ranks = m.ranks[t]
    words = x.words[t, s + 1]
    total = words
    outside = x.steps[s]
    first_change = words
    seen = 0
    for r in range(ranks):
        x.moved[0, r] = 0.0
    for block in range(s, -1, -1):
        group = m.temporal[block]
        for p in range(m.D - 1, -1, -1):
            d = x.order[group, p]
            bound = x.bound[group, d]
            if not bound > 1.0:
                continue
            outside /= bound
            overlap = 1.0
            same = seen
            for r in range(ranks):
                vector = step_of(m, x, t, r, block, d) - x.moved[0, r]
                if not seen:
                    x.moved[1, r] = vector
                if vector != x.moved[1, r]:
                    same = 0
                overlap *= max(0.0, width(m, t, r, x.extent, m.spans[t, s + 1]) - abs(vector))
            if not seen:
                first_change = words - overlap
            total += (bound - 1.0) * outside * (first_change if same or not seen else words)
            for r in range(ranks):
                x.moved[0, r] += step_of(m, x, t, r, block, d)
            seen = 1
    return total


def step_of(m: Facts, x: OneDesign, t: Whole, r: Whole, block: Whole, d: Whole) -> Real:
    """Words along rank r by which one turn of a block's loop of dimension d moves the tile."""
    for i in range(m.terms[t, r]):
        if m.term_dim[t, r, i] == d:
            return m.term_factor[t, r, i] * x.around[block, d]
    return 0.0


def common_factor(a: Real, b: Real) -> Real:
    """Greatest common divisor of two whole numbers from 1 on."""
    for _ in range(128):
        if b < 1.0:
            break
        rest = a - floor(a / b) * b
        a = b
        b = rest
    return a


def distinct_children(m: Facts, x: OneDesign, t: Whole, s: Whole) -> Real:
    """4.2: different tiles among the children of one instance. Equal tiles are multicast or spatially reduced."""
    group = m.spatial[s]
    found = 1.0
    if group < 0:
        return found
    if s >= m.innermost[t] and m.separate[m.innermost[t]]:
        return x.product[group]
    for r in range(m.ranks[t]):
        first = m.term_dim[t, r, 0]
        one = x.bound[group, first]
        if m.terms[t, r] == 1:
            found *= one
            continue
        second = m.term_dim[t, r, 1]
        other = x.bound[group, second]
        lost = 0.0
        if one > 1.0 and other > 1.0:
            # sums i a + j b: (i, j) and (i + b', j - a') coincide, with a', b' free of common factors
            a = m.term_factor[t, r, 0] * x.extent[s + 1, first]
            b = m.term_factor[t, r, 1] * x.extent[s + 1, second]
            g = common_factor(a, b)
            lost = max(0.0, one - b / g) * max(0.0, other - a / g)
        found *= one * other - lost
    return found


def divide_output(m: Facts, x: OneDesign) -> None:
    """4.3: partition, the words of the output ever seen by one instance."""
    t = m.output
    x.partition[0] = x.words[t, 0]
    for s in range(1, m.S):
        before = x.partition[s - 1]
        if s <= m.home[t]:
            x.partition[s] = x.partition[0]
        elif m.windowed[t] or m.strided[t]:
            x.partition[s] = floor(before * x.words[t, s] / volume(m, t, x.around, s - 1))
        else:
            x.partition[s] = floor(before / (volume(m, t, x.around, s - 1) / x.words[t, s]))


def has_gaps(m: Facts, t: Whole) -> Whole:
    for r in range(m.ranks[t]):
        if m.gaps[t, r]:
            return 1
    return 0


def word_share(m: Facts, k: FigureTables, x: OneDesign, t: Whole, s: Whole, outer: Whole) -> Real:
    """`holes`: share of words among the positions of tensor t delivered to the children of level s over the run. Words
    delivered to several children at once, from level `outer` inwards, count once."""
    axis = -1
    reach = 1.0
    count = 1.0
    goes_on = 1
    for block in range(s if s < m.S - 1 else -1, -1, -1):
        group = m.temporal[block]
        for p in range(m.D - 1, -1, -1):
            d = x.order[group, p]
            bound = x.bound[group, d]
            if not bound > 1.0:
                continue
            step = x.around[block, d]
            if axis < 0:
                axis = d
                reach = step
                count = bound
            elif goes_on and axis == d and count == 2.0 and step == 2.0 * reach:
                count *= bound  # with the next loop, if it goes on where two steps of this one end (4.1)
            else:
                goes_on = 0
    found = 1.0
    for r in range(m.ranks[t]):
        if m.gaps[t, r]:
            found *= rank_share(m, k, x, t, s, outer, r, axis, reach, count)
    return found


def rank_share(
    m: Facts,
    k: FigureTables,
    x: OneDesign,
    t: Whole,
    s: Whole,
    outer: Whole,
    r: Whole,
    axis: Whole,
    reach: Real,
    count: Real,
) -> Real:
    """The share of words along rank r, for a run of `count` tiles along dimension `axis`, each `reach` further."""
    terms = m.terms[t, r]
    words = width(m, t, r, x.extent, s + 1)
    along = 0.0
    least = inf
    for i in range(terms):
        d = m.term_dim[t, r, i]
        k.argument[4 + i] = x.extent[s + 1, d]
        if axis == d and m.term_factor[t, r, i] * reach < words:
            along = i + 1.0
        spread = 1.0
        for b in range(s, outer - 1, -1):
            if m.spatial[b] >= 0:
                spread *= x.bound[m.spatial[b], d]
        least = min(least, spread)
    k.argument[0] = r
    k.argument[1] = along
    k.argument[2] = reach if along > 0.0 else 1.0
    k.argument[3] = count if along > 0.0 else 1.0
    last = 4 + terms
    for b in range(s, outer - 1, -1):
        if m.spatial[b] < 0:
            continue
        for i in range(terms):
            n = x.bound[m.spatial[b], m.term_dim[t, r, i]]
            shared = least > 1.0 and n > 1.0  # children along one dimension share no words
            k.argument[last] = x.extent[b + 1, m.term_dim[t, r, i]] if shared else 0.0
            k.argument[last + 1] = n if shared else 0.0
            last += 2
    return one_figure(k, KINDS * t + GAPS, last, 1.0)
