"""Shares of accesses removed by filters at storage, for every tensor (docs/model.md, section 7.1)."""

from __future__ import annotations

from sparsemap.inner.numbers import log1p, power
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import GATE, NONE, SKIP, Facts
from .leaders import CHILD_TILE, SHARED_TILE, STEP_TILE, find_stays, lead
from .records import Counts, FigureTables
from .tables import KINDS, SHARE, one_figure


def reached(m: Facts, k: FigureTables, i: Whole, candidate: Whole, empty: Real) -> Real:
    """Share removed by a mechanism, possibly with limited sight, of the share `empty`."""
    if m.own_share[i, candidate]:
        k.argument[0] = i
        k.argument[1] = candidate
        k.argument[2] = empty
        return one_figure(k, KINDS * m.T + SHARE, 3, empty)
    seen = m.lookahead[i, candidate]
    share = empty
    if seen > 0.0:
        unseen = empty if seen == 1.0 else empty * empty if seen == 2.0 else power(empty, seen)
        share = (empty - unseen) / (1.0 - unseen) if unseen < 1.0 else 1.0 - 1.0 / seen
    return min(share * m.effectiveness[i, candidate], empty)


def caught(empty: Real, possible: Real, share: Real) -> Real:
    """Share of one leader's empty tiles caught by a mechanism removing `share` of `possible`. The shares left by all
    leaders multiply to 1 - share."""
    if not share < possible:
        return empty
    if not possible < 1.0:
        return min(empty, share)
    return 1.0 - power(1.0 - empty, log1p(-share) / log1p(-possible))


def removed(m: Facts, k: FigureTables, x: OneDesign, i: Whole, candidate: Whole) -> Real:
    """Share of accesses removed by filter i for leader tiles empty with probabilities `effect_empty`. Afterwards
    `effect_empty` holds the share caught of each leader."""
    full = 1.0
    for j in range(m.leaders[i]):
        full *= 1.0 - x.effect_empty[i, j]
    share = reached(m, k, i, candidate, 1.0 - full)
    for j in range(m.leaders[i]):
        if m.joint or m.operand.shape[0] != 2:
            x.effect_empty[i, j] = caught(x.effect_empty[i, j], 1.0 - full, share)
    if m.joint and m.led_nonzeros[i, 0] >= 0.0:
        met = 1.0 - joint_left(m, x, i, full)
        share = min(share, met) if share < 1.0 - full else met
    return share


def joint_left(m: Facts, x: OneDesign, i: Whole, left: Real) -> Real:
    """7.5: share of accesses left by the leaders of filter i where tiles of all actual-data leaders are single words;
    otherwise `left`. A compressed target is accessed at nonzeros only."""
    others = 1.0
    for j in range(m.leaders[i]):
        if not m.actual[m.leader[i, j]]:
            others *= 1.0 - x.effect_empty[i, j]
        elif x.effect_words[i, j] != 1.0:
            return left
    t = m.target[i]
    if not x.packed[t, m.level[i]]:
        return m.led_nonzeros[i, 0] * others
    given = m.own_nonzeros[t]
    return m.led_nonzeros[i, 1] / given * others if given > 0.0 else 0.0


def filter_accesses(m: Facts, k: FigureTables, x: OneDesign, every: Counts, timed: Counts) -> None:
    """Apply all filters; among several on one tensor at one level, the strongest counts. `timed`: counts with the
    filters saving time."""
    some = 0
    for t in range(m.T):
        for s in range(m.S):
            x.looked[t, s] = NONE
    for i in range(m.filters):
        candidate = x.chosen[m.gene[i]]
        x.acts[i] = m.kind[i, candidate]
        if x.acts[i] == NONE:
            continue
        x.saves[i] = not (m.gate_time and m.passes[i, candidate])
        if not x.saves[i]:
            some = 1
        for j in range(m.leaders[i]):
            c = m.leader[i, j]
            x.looked[c, m.holder[i, j]] = max(x.looked[c, m.holder[i, j]], x.acts[i])
        remove(m, k, x, i, candidate)
    take_strongest(m, x, every, 0)
    x.differ = 0
    if some:
        take_strongest(m, x, timed, 1)
        x.differ = differ(m, every, timed)


def differ(m: Facts, a: Counts, b: Counts) -> Whole:
    """Whether two choices of filters have different effects."""
    for t in range(m.T):
        for s in range(m.S):
            if a.kind[t, s] != b.kind[t, s] or a.share[t, s] != b.share[t, s]:
                return 1
            if a.accessed[t, s] != b.accessed[t, s] or a.filled[t, s] != b.filled[t, s]:
                return 1
    return 0


def remove(m: Facts, k: FigureTables, x: OneDesign, i: Whole, candidate: Whole) -> None:
    """Shares removed by one filter. `stay`: an access serves all children and steps needing the tile; a child is filled if
    any of its own steps does, and works in these steps alone."""
    blind = m.blind[i, candidate]
    stays = find_stays(m, x, m.target[i], m.level[i])
    lead(m, k, x, i, blind, SHARED_TILE)
    x.effect_access[i] = removed(m, k, x, i, candidate)
    x.effect_fill[i] = x.effect_access[i]
    if m.stay and x.shared:
        lead(m, k, x, i, blind, CHILD_TILE)
        x.effect_fill[i] = removed(m, k, x, i, candidate)
    x.effect[i] = x.effect_fill[i]
    if m.stay and (stays or x.lasts):
        lead(m, k, x, i, blind, STEP_TILE)
        x.effect[i] = removed(m, k, x, i, candidate)


def take_strongest(m: Facts, x: OneDesign, c: Counts, timed: Whole) -> None:
    """Select the strongest filter of every tensor at every level: gates first, then skips; a later filter wins by a
    larger share."""
    for t in range(m.T):
        for s in range(m.S):
            c.kind[t, s] = NONE
            c.share[t, s] = 0.0
            c.accessed[t, s] = 0.0
            c.filled[t, s] = 0.0
            for u in range(m.T):
                c.led[t, u, s] = 0.0
    for kind in range(GATE, SKIP + 1):
        for i in range(m.filters):
            if x.acts[i] != kind or (timed and not x.saves[i]):
                continue
            t = m.target[i]
            s = m.level[i]
            if c.kind[t, s] != NONE and not x.effect[i] > c.share[t, s]:
                continue
            c.kind[t, s] = kind
            c.share[t, s] = x.effect[i]
            c.accessed[t, s] = x.effect_access[i]
            c.filled[t, s] = x.effect_fill[i]
            for u in range(m.T):
                c.led[t, u, s] = 0.0
            for j in range(m.leaders[i]):
                c.led[t, m.leader[i, j], s] = x.effect_empty[i, j]


def pass_along(m: Facts, x: OneDesign, c: Counts) -> None:
    """Shares removed by outer filters: `comes` of the accesses from the parent, `goes` of the accesses passed on
    inwards. While a child's tile stays, the share for all its leader tiles met applies."""
    for t in range(m.T):
        above = 0.0
        here = 0.0
        for s in range(m.S):
            c.comes[t, s] = here
            if m.stay and x.moves[t, s]:
                here = above
            c.goes[t, s] = here
            if c.kind[t, s] != NONE:
                above = c.share[t, s]
                here = c.filled[t, s]
