"""Work dealt out to lanes: only nonempty parts of a leader get a lane (docs/model.md, section 7.4)."""

from __future__ import annotations

from sparsemap.inner.primitives import floor
from sparsemap.inner.types import Whole

from .checks import held_level, mark
from .design import OneDesign
from .facts import Facts
from .nest import nest, volume
from .records import FigureTables
from .tables import EMPTY, KINDS, PACKED, TILE, arguments, figures, one_figure

NEXT_TILE = 0
MET_TILE = 1
MET_FIBER = 2
"""Rows of `OneDesign.part`."""


def chosen_deal(m: Facts, x: OneDesign, i: Whole, packs: Whole) -> Whole:
    """Whether the design applies dealing filter i of this kind (`packs`: pack, else condense)."""
    if not m.deal_chosen[i, x.chosen[m.deal_gene[i]]] or m.deal_packs[i] != packs:
        return 0
    return packs or m.spatial[m.deal_level[i]] >= 0


def narrow_groups(m: Facts, k: FigureTables, x: OneDesign) -> None:
    """`needed`: instances needed by each group below one instance of its level. This is the product of the group's
    bounds, reduced by `condense` for the most demanding tensor. A design with wrong loops deals nothing."""
    for g in range(m.L):
        x.needed[g] = x.product[g]
    for s in range(m.S):
        for t in range(m.T):
            x.needed_share[s, t] = 1.0
            x.led_share[s, t] = 1.0
    if not m.deals or x.reasons:
        return
    nest(m, x)
    for i in range(m.deals):
        if chosen_deal(m, x, i, 0):
            narrow(m, k, x, i)
        if chosen_deal(m, x, i, 1):
            mark(x, m.place_bit[m.deal_gene[i]], unmatched(m, x, i))
    for s in range(m.S):
        if m.spatial[s] >= 0:
            most = 0.0
            for t in range(m.T):
                most = max(most, x.needed_share[s, t])
            x.needed[m.spatial[s]] = floor(x.product[m.spatial[s]] * most + 0.5)


def narrow(m: Facts, k: FigureTables, x: OneDesign, i: Whole) -> None:
    """`needed_share`: largest share of a level's instances used by each tensor: fewer for targets and leaders, and once
    per leader however many targets it leads."""
    s = m.deal_level[i]
    for j in range(m.deal_leaders[i]):
        c = m.deal_leader[i, j]
        condense(m, k, x, i, c)
        share = x.filled_most / x.filled_every
        x.needed_share[s, m.deal_target[i]] *= share
        least = min(x.led_share[s, c], share)
        x.needed_share[s, c] *= least / x.led_share[s, c]
        x.led_share[s, c] = least


def condense(m: Facts, k: FigureTables, x: OneDesign, i: Whole, c: Whole) -> None:
    """`filled_every`: iterations of the spatial loops moving leader c. `filled_most`: the largest number of these with
    a nonzero. `filled_share`: probability of a nonzero in an innermost iteration.

    A tile of the target staying in the level below meets several leader tiles: over temporal loops not moving the
    target, the leader tiles count together."""
    t = m.deal_target[i]
    level = m.deal_level[i]
    group = m.spatial[level]
    find_kept(m, x, t, level)
    for d in range(m.D):
        x.part[NEXT_TILE, d] = x.extent[level + 1, d]
    x.filled_every = 1.0
    x.filled_most = 1.0
    x.filled_share = 1.0
    first = 1
    for p in range(m.D - 1, -1, -1):
        own = x.order[group, p]
        n = x.bound[group, own]
        if m.relevant[c, own] and n > 1.0:
            for d in range(m.D):
                x.part[MET_TILE, d] = x.part[NEXT_TILE, d] * (x.stays[d] if m.relevant[t, own] else 1.0)
                x.part[MET_FIBER, d] = x.part[MET_TILE, d] * (n if d == own else 1.0)
            if first:
                count = arguments(m, k, c, x.part, MET_TILE, 0)
                x.filled_share = 1.0 - one_figure(k, KINDS * c + EMPTY, count, 0.0)
                first = 0
            start = figures(k, KINDS * c + TILE, arguments(m, k, c, x.part, MET_FIBER, 0))
            x.filled_every *= n
            x.filled_most *= min(n, k.data[start + 3]) if start >= 0 else n
        x.part[NEXT_TILE, own] *= n


def find_kept(m: Facts, x: OneDesign, t: Whole, level: Whole) -> None:
    """`stays`: iterations of temporal loops around a level during which the tile of tensor t below stays."""
    for d in range(m.D):
        x.stays[d] = 1.0
    holder = held_level(m, t, level)
    if m.child[t, holder] < 0:
        return
    for s in range(level, holder - 1, -1):
        for p in range(m.D - 1, -1, -1):
            d = x.order[m.temporal[s], p]
            if x.bound[m.temporal[s], d] > 1.0 and m.relevant[t, d]:
                return
            x.stays[d] *= x.bound[m.temporal[s], d]


def unmatched(m: Facts, x: OneDesign, i: Whole) -> Whole:
    """Whether another operand shares positions of the packed tile; its words would no longer meet in the lanes."""
    t = m.deal_target[i]
    level = held_level(m, t, m.deal_level[i])
    for d in range(m.D):
        if m.relevant[t, d] and x.extent[level, d] > 1.0:
            for j in range(m.operand.shape[0]):
                if m.operand[j] != t and m.relevant[m.operand[j], d]:
                    return 1
    return 0


def deal_lanes(m: Facts, k: FigureTables, x: OneDesign) -> None:
    """Effects of dealing: instances in use, active compute units, computes without a lane, passes over packed tiles."""
    x.units_share = 1.0
    for t in range(m.T):
        x.dealt[t] = -1.0
        x.passes[t] = -1.0
        for s in range(m.S):
            x.mean_share[t, s] = 1.0
            x.most_share[t, s] = 1.0
            for outer in range(s):
                x.most_share[t, s] *= x.needed_share[outer, t]
    if not m.deals:
        return
    least = 1.0
    for i in range(m.deals):
        if chosen_deal(m, x, i, 1):
            pack(m, k, x, i)
        if chosen_deal(m, x, i, 0):
            t = m.deal_target[i]
            there = 1.0
            for j in range(m.deal_leaders[i]):
                c = m.deal_leader[i, j]
                condense(m, k, x, i, c)
                there *= x.filled_share
                if t != m.output:
                    x.dealt[c] = max(x.dealt[c], 1.0 - x.filled_share)
            for s in range(m.deal_level[i] + 1, m.S):
                x.mean_share[t, s] = there  # that of the innermost such level
            if t != m.output:
                least = min(least, there)
    x.units_share *= least


def pack(m: Facts, k: FigureTables, x: OneDesign, i: Whole) -> None:
    """Fill the lanes with the nonzeros of a tile, in as many passes as needed."""
    c = m.deal_target[i]
    level = held_level(m, c, m.deal_level[i])
    lanes = 1.0
    for s in range(level, m.S):
        for d in range(m.D):
            if m.spatial[s] >= 0 and m.relevant[c, d]:
                lanes *= x.bound[m.spatial[s], d]
    count = arguments(m, k, c, x.extent, level, 0)
    k.argument[count] = lanes
    start = figures(k, KINDS * c + PACKED, count + 1)
    if start >= 0:
        x.units_share *= k.data[start]
        x.passes[c] = k.data[start + 1] / (volume(m, c, x.extent, level) / lanes)
    for d in range(m.D):
        x.part[MET_TILE, d] = 1.0
    count = arguments(m, k, c, x.part, MET_TILE, 0)
    x.dealt[c] = max(x.dealt[c], one_figure(k, KINDS * c + EMPTY, count, 0.0))
