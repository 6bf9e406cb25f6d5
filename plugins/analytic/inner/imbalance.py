"""`imbalance`: compute units wait for the slowest of the units sharing their tiles."""

from __future__ import annotations

from sparsemap.inner.primitives import inf
from sparsemap.inner.types import Real, Whole

from .computes import unit_kind
from .design import OneDesign
from .facts import SKIP, Facts
from .ratios import by_lanes, work_ratio
from .records import FigureTables
from .sharing import add_shared_words, group_ratio, thinning_movers
from .work import APART, EXTENT, STAYS, fit_boxes, record_point, stride_of, thinned, widen, words_apart


def thin(m: Facts, x: OneDesign) -> None:
    """Find the operands thinning the work, and the loops keeping the work within one tile."""
    x.alongs = 0
    x.shared_ratio = 1.0
    x.stepping = 0
    for i in range(m.operand.shape[0]):
        x.looks[i] = finest_look(m, x, i)
        x.unit_words[i] = 1.0
    for s in range(m.S - 1):
        group = m.temporal[s]
        for t in range(m.T):
            last = -1
            for p in range(m.D):
                if x.bound[group, x.order[group, p]] > 1.0 and m.relevant[t, x.order[group, p]]:
                    last = p
            for p in range(m.D):
                d = x.order[group, p]
                own = x.bound[group, d] if p > last else 1.0
                x.held[s, t, d] = own * x.held[s - 1, t, d] if last < 0 and s > 0 else own
            x.grows[s, t] = x.order[group, last] if last >= 0 else x.grows[s - 1, t] if s > 0 else -1


def finest_look(m: Facts, x: OneDesign, i: Whole) -> Real:
    """Words of the smallest tile of operand i examined by a skip on computes; infinity: no skip."""
    t = m.operand[i]
    if unit_kind(m, x) == SKIP and x.packed[t, m.innermost[t]]:
        return 1.0
    found = inf
    for f in range(m.filters):
        if x.acts[f] == 0 or m.target[f] == m.output or not x.saves[f] or not x.effect[f] > 0.0:
            continue
        for j in range(m.leaders[f]):
            if m.leader[f, j] == t:
                words = x.effect_words[f, j]
                if m.alike[i]:
                    words = words_apart(m, i, words, x.effect_empty[f, j])
                found = min(found, words)
    return found


def waiting_ratio(m: Facts, k: FigureTables, x: OneDesign) -> Real:
    """Largest ratio, over all waiting points, of the fullest unit's work to the mean; 0 without thinned work."""
    if not thinned(m, x) or not x.used[m.S] > 1.0:
        return 0.0
    find_coupled(m, x)
    for d in range(m.D):
        inside = 1.0
        for s in range(m.S - 1, -1, -1):
            inside *= x.bound[m.temporal[s], d]
            x.inside[s, d] = inside
    x.points = 0
    if m.shared_words:
        add_shared_words(m, k, x)
    if m.imbalance:
        add_tiles(m, k, x)
    return together(m, x)


def add_tiles(m: Facts, k: FigureTables, x: OneDesign) -> None:
    """Add the waiting points of all shared tiles, and the end of the run."""
    swap_looks(m, x)
    for h in range(1, m.S):
        for t in range(m.T):
            product = 1.0
            for d in range(m.D):
                product *= x.held[h - 1, t, d]
            x.pace[t] = x.steps[h - 1] / product
        for t in range(m.T):
            if m.stored[t, h] and m.parent[t, h] >= 0 and shares_tile(m, x, t, h):
                couple(m, x, t, h)
                x.depth = m.buffers[h, t]
                x.grown = x.grows[h - 1, t]
                x.parts = x.pace[t]
                for d in range(m.D):
                    x.apart[STAYS, d] = x.held[h - 1, t, d]
                add_point(m, k, x, h, m.parent[t, h])
    for a in range(x.alongs):
        x.along_bound[a] = x.along_every[a]
    x.depth = 1
    x.grown = -1
    x.parts = 1.0
    for d in range(m.D):
        x.apart[STAYS, d] = 1.0
    add_point(m, k, x, 0, 0)  # the end of the run
    swap_looks(m, x)


def swap_looks(m: Facts, x: OneDesign) -> None:
    """Exchange the words examined for a step of a unit and of a group of units stepping together."""
    for i in range(m.operand.shape[0] if x.stepping else 0):
        if x.looks[i] < inf:
            words = x.looks[i]
            x.looks[i] = x.step_words[i]
            x.step_words[i] = words
            x.unit_words[i] = x.looks[i] if words == 1.0 else 1.0


def find_coupled(m: Facts, x: OneDesign) -> None:
    """List the spatial loops over units without work stealing."""
    x.alongs = 0
    for s in range(m.S):
        if m.spatial[s] < 0 or m.steals[s]:
            continue
        for d in range(m.D):
            if x.bound[m.spatial[s], d] > 1.0:
                x.along_block[x.alongs] = s
                x.along_dim[x.alongs] = d
                x.along_stride[x.alongs] = stride_of(m, x, s, d)
                x.along_every[x.alongs] = x.bound[m.spatial[s], d]
                x.alongs += 1


def shares_tile(m: Facts, x: OneDesign, t: Whole, h: Whole) -> Whole:
    """Whether units share tiles of tensor t at level h."""
    for a in range(x.alongs):
        if x.along_block[a] >= m.parent[t, h] and not m.relevant[t, x.along_dim[a]]:
            return 1
    return 0


def couple(m: Facts, x: OneDesign, t: Whole, h: Whole) -> None:
    """`along_bound`: loops over units waiting for each other when a tile of tensor t at level h is replaced, because of
    this tile or of a tile replaced at least as often."""
    for a in range(x.alongs):
        d = x.along_dim[a]
        x.along_bound[a] = 1.0
        for u in range(m.T):
            shared = m.stored[u, h] and m.parent[u, h] >= 0 and x.along_block[a] >= m.parent[t, h]
            if shared and not m.relevant[u, d] and x.pace[u] >= x.pace[t]:
                x.along_bound[a] = x.along_every[a]


def add_point(m: Facts, k: FigureTables, x: OneDesign, h: Whole, outermost: Whole) -> None:
    """Add the waiting point at the replacement of tiles of level h, with parent level `outermost`."""
    x.pitch = 1.0
    for d in range(m.D):
        apart = x.inside[h, d]
        extent = apart * x.apart[STAYS, d]
        for s in range(outermost, m.S):
            if m.spatial[s] >= 0:
                apart *= x.bound[m.spatial[s], d]
                if m.steals[s]:
                    extent *= x.bound[m.spatial[s], d]
        x.apart[APART, d] = apart
        x.apart[EXTENT, d] = extent
        if d == x.grown:
            x.pitch = apart * x.apart[STAYS, d]
    once = join_groups(m, x)
    if m.sharing:
        for i in range(m.operand.shape[0]):
            for d in range(m.D):
                x.wide[i, d] = x.apart[EXTENT, d]
    else:
        widen(m, x, h)
    fit_boxes(m, x)
    x.volume /= once
    ratio = work_ratio(m, k, x)
    record_point(x, group_ratio(x, ratio) if x.stepping else ratio, x.parts, x.crowd)


def join_groups(m: Facts, x: OneDesign) -> Real:
    """Count units stepping together as one: their positions join the part. Return the bounds of the loops that add words
    to a step, but no positions."""
    once = 1.0
    for a in range(x.alongs if x.stepping else 0):
        if x.group_bound[a] > 1.0:
            x.along_bound[a] = 1.0
            x.apart[EXTENT, x.along_dim[a]] *= x.group_bound[a]
            if thinning_movers(m, x, x.along_dim[a]) < 2:
                once *= x.group_bound[a]
    return once


def within(x: OneDesign, inner: Whole, outer: Whole, least: Real) -> Whole:
    """Whether groups of the units waiting at the outer point already wait for each other at the inner point, at least
    as often."""
    if not (x.point_units[outer] > x.point_units[inner] and x.point_units[inner] > 1.0):
        return 0
    if not (
        x.point_turns[inner] >= x.point_turns[outer] and x.point_ratio[outer] > least and x.point_ratio[inner] > least
    ):
        return 0
    for a in range(x.alongs):
        if x.point_loop[inner, a] != 1.0 and x.point_loop[inner, a] != x.point_loop[outer, a]:
            return 0
    return 1


def together(m: Facts, x: OneDesign) -> Real:
    """Largest ratio of all points. Groups waiting at an inner point start from the ratio there, and vary less than
    single units."""
    found = 1.0
    least = x.shared_ratio if x.stepping else 1.0
    for outer in range(x.points):
        found = max(found, x.point_ratio[outer])
        for inner in range(x.stepping, x.points):
            if within(x, inner, outer, least):
                groups = by_lanes(m.normal_means, x.point_units[outer] / x.point_units[inner])
                less_so = by_lanes(m.normal_deviations, x.point_units[inner]) * groups
                less_so /= by_lanes(m.normal_means, x.point_units[outer])
                found = max(found, x.point_ratio[inner] + (x.point_ratio[outer] - least) * less_so)
    return found
