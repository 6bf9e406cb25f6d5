"""The loop nest of one design (docs/model.md, section 3)."""

from __future__ import annotations

from sparsemap.inner.primitives import floor
from sparsemap.inner.types import Real, Reals2, Whole

from .design import OneDesign
from .facts import Facts


def width(m: Facts, t: Whole, r: Whole, extent: Reals2, row: Whole) -> Real:
    """Width in words of rank r of tensor t in a box with extents `extent[row]` (1)."""
    found = 1.0
    for i in range(m.terms[t, r]):
        found += m.term_factor[t, r, i] * (extent[row, m.term_dim[t, r, i]] - 1.0)
    return found


def volume(m: Facts, t: Whole, extent: Reals2, row: Whole) -> Real:
    """Words of tensor t in a box with extents `extent[row]` (1)."""
    found = 1.0
    for r in range(m.ranks[t]):
        found *= width(m, t, r, extent, row)
    return found


def unrolled(m: Facts, x: OneDesign) -> None:
    """List the loops with a bound above one, innermost first, and the product of bounds of each group."""
    x.loops = 0
    for i in range(m.L):
        group = m.inwards[i]
        x.product[group] = 1.0
        for p in range(m.D - 1, -1, -1):
            d = x.order[group, p]
            bound = x.bound[group, d]
            x.product[group] *= bound
            if bound > 1.0:
                x.loop_dim[x.loops] = d
                x.loop_bound[x.loops] = bound
                x.loop_block[x.loops] = m.block[group]
                x.loop_spatial[x.loops] = 1 if m.spatial[m.block[group]] == group else 0
                x.loops += 1


def nest(m: Facts, x: OneDesign) -> None:
    """Compute extents, tiles, instances and iterations."""
    for d in range(m.D):
        x.extent[m.S, d] = 1.0
        for s in range(m.S - 1, -1, -1):
            x.around[s, d] = x.extent[s + 1, d] * (x.bound[m.spatial[s], d] if m.spatial[s] >= 0 else 1.0)
            x.extent[s, d] = x.around[s, d] * x.bound[m.temporal[s], d]
    for t in range(m.T):
        x.words[t, m.S] = 1.0
        for s in range(m.S):
            x.words[t, s] = volume(m, t, x.extent, m.spans[t, s])
            x.word_width[t, s] = m.word_width[t, s]
            x.moves[t, s] = moves(m, x, t, s)
    x.used[0] = 1.0
    for s in range(m.S):
        x.used[s + 1] = x.used[s] * (x.product[m.spatial[s]] if m.spatial[s] >= 0 else 1.0)
        x.steps[s] = x.product[m.temporal[s]] * (x.steps[s - 1] if s > 0 else 1.0)
    x.computes = x.used[m.S] * x.steps[m.S - 1]
    x.turns = x.steps[m.S - 1]
    x.units = x.used[m.S]
    if m.ragged:
        remainders(m, x)


def moves(m: Facts, x: OneDesign, t: Whole, s: Whole) -> Whole:
    """Whether temporal loops between level s and the next inner level storing tensor t move the tile there. Always 1
    towards the compute units, where every word is new."""
    if m.child[t, s] < 0:
        return 1
    for block in range(s, m.child[t, s]):
        for d in range(m.D):
            if m.relevant[t, d] and x.bound[m.temporal[block], d] > 1.0:
                return 1
    return 0


def remainders(m: Facts, x: OneDesign) -> None:
    """`remainders`: limit computes, iterations and units to the positions with data."""
    x.outside[0] = 0
    time = 0
    for s in range(m.S):
        time |= 1 << m.temporal[s]
        x.outside[s + 1] = x.outside[s] | (1 << m.spatial[s] if m.spatial[s] >= 0 else 0)
    x.computes = 1.0
    for d in range(m.D):
        x.computes *= m.ends[d]
    for d in range(m.D):
        if m.ends[d] < m.sizes[d]:
            rest = m.ends[d] - 1.0
            for i in range(m.L):
                group = m.inwards[i]
                above = floor(rest / x.bound[group, d])
                x.digit[group, d] = rest - above * x.bound[group, d]
                rest = above
            x.turns *= begun(m, x, d, time)
            for s in range(m.S):
                x.own_share[s, d] = begun(m, x, d, ~x.outside[s]) / (m.ends[d] / m.sizes[d]) if x.outside[s] else 1.0
    x.turns = floor(x.turns + 0.5)
    x.units *= x.computes / (x.turns * x.units)


def begun(m: Facts, x: OneDesign, d: Whole, among: Whole) -> Real:
    """Share of the index vectors of some loops of dimension d beginning before the end of the data. `among`: bits by
    group of these loops; all others stay at their first turn."""
    some = 1.0
    every = 1.0
    for i in range(m.L):
        group = m.inwards[i]
        digit = x.digit[group, d]
        if among >> group & 1:
            some = digit * every + some
            every = every * x.bound[group, d]
        elif digit > 0.0:
            some = every
    return some / every


def led_loops(m: Facts, x: OneDesign, t: Whole, link: Whole) -> None:
    """`leads`: per dimension, the temporal loops of blocks 0 to `link` over which the tile of tensor t changes."""
    still = 1 if link < m.S - 1 else 0
    for d in range(m.D):
        x.leads[d] = 0
    for block in range(link, -1, -1):
        group = m.temporal[block]
        for p in range(m.D - 1, -1, -1):
            d = x.order[group, p]
            if m.relevant[t, d] and x.bound[group, d] > 1.0:
                still = 0
            if not still:
                x.leads[d] |= 1 << group


def present_share(m: Facts, x: OneDesign, t: Whole, link: Whole, level: Whole) -> Real:
    """Share of words with data in the exchange of level `link` with an instance of `level`, averaged over instances.
    Link -1: share of all words ever seen by an instance. `leads` must belong to the link."""
    found = 1.0
    for d in range(m.D):
        if m.ends[d] < m.sizes[d]:
            if m.relevant[t, d]:
                found *= m.ends[d] / m.sizes[d] if m.cut[t, d] else 1.0
            else:
                found *= begun(m, x, d, (x.leads[d] if link >= 0 else 0) | x.outside[level])
    return found


def fullest(m: Facts, x: OneDesign, t: Whole, link: Whole, level: Whole) -> Real:
    """Words with data in the fullest instance over the mean of all instances; arguments as for `present_share`."""
    found = 1.0
    for d in range(m.D):
        if m.ends[d] < m.sizes[d]:
            if m.relevant[t, d]:
                found *= x.own_share[level, d]
            elif x.outside[level]:
                leads = x.leads[d] if link >= 0 else 0
                found *= begun(m, x, d, leads) / begun(m, x, d, leads | x.outside[level])
    return found
