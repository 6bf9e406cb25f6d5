"""Work of compute units between two waiting points (`imbalance`): boxes of work, and lanes with different parts."""

from __future__ import annotations

from sparsemap.inner.numbers import log
from sparsemap.inner.primitives import ceil, floor, inf
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import Facts
from .metadata import shapes
from .nest import width

EXTENT = 0
APART = 1
STAYS = 2
"""Rows of `OneDesign.apart`."""


def piece(m: Facts, i: Whole, d: Whole, reach: Real, bound: Real, apart: Real) -> Real:
    """Extent of `bound` pieces of operand i, each `reach` long and starting `apart` from the last. Side by side the
    pieces would lie in fewer blocks, so each counts up to the start of the next piece or the end of a block."""
    return bound * (max(reach, min(apart, m.block_steps[i, d])) if bound > 1.0 else reach)


def widen(m: Facts, x: OneDesign, h: Whole) -> None:
    """`wide`: extents of a lane's part of operands with equal tiles within blocks. The part covers temporal loops from
    level h inwards, and the outer loops keeping the tile (`apart`)."""
    for i in range(m.operand.shape[0]):
        if not m.alike[i]:
            continue
        for d in range(m.D):
            apart = 1.0
            reach = 1.0
            for s in range(m.S - 1, h - 1, -1):
                here = x.bound[m.temporal[s], d]
                if m.spatial[s] >= 0:
                    reach = piece(m, i, d, reach, grouped(x, s, d), apart)
                    apart *= x.bound[m.spatial[s], d]
                reach = piece(m, i, d, reach, here, apart)
                apart *= here
            x.wide[i, d] = piece(m, i, d, reach, x.apart[STAYS, d], x.apart[APART, d])


def grouped(x: OneDesign, s: Whole, d: Whole) -> Real:
    """Bound of the loop of a level over units stepping together; 1: none."""
    for a in range(x.alongs if x.stepping else 0):
        if x.along_block[a] == s and x.along_dim[a] == d:
            return x.group_bound[a]
    return 1.0


def stride_of(m: Facts, x: OneDesign, s: Whole, d: Whole) -> Real:
    """Steps of dimension d by which a spatial loop of level s moves per turn."""
    found = 1.0
    for inner in range(s + 1, m.S):
        found *= x.bound[m.temporal[inner], d]
        if m.spatial[inner] >= 0:
            found *= x.bound[m.spatial[inner], d]
    return found


def independent(m: Facts, x: OneDesign, i: Whole, lanes: Real) -> Real:
    """Number of effectively independent lanes among `lanes` with own parts of operand i."""
    t = m.operand[i]
    different = 1.0
    for r in range(m.ranks[t]):
        places = 1.0
        span = 1.0
        for j in range(m.terms[t, r]):
            for a in range(x.alongs):
                if x.along_dim[a] == m.term_dim[t, r, j]:
                    places *= x.along_bound[a]
                    span += (x.along_bound[a] - 1.0) * x.along_stride[a] * m.term_factor[t, r, j]
        different *= min(places, ceil(span / m.alike_words[i, r]))
    return min(lanes, different)


def fit_boxes(m: Facts, x: OneDesign) -> None:
    """Boxes of work with the extents in `apart`, for units along the loops `along`."""
    for i in range(m.operand.shape[0]):
        t = m.operand[i]
        words = 1.0
        for r in range(m.ranks[t]):
            own = width(m, t, r, x.wide, i) if m.alike[i] else width(m, t, r, x.apart, EXTENT)
            words *= own
            x.box[i, r] = own
        if shapes(m, t) == 1:
            x.box[i, 0] = words
        x.lanes[i] = 1.0
        for a in range(x.alongs):
            if m.relevant[t, x.along_dim[a]]:
                x.lanes[i] *= x.along_bound[a]
        x.least[i] = min(x.pitch, m.alike_words[i, m.rank_of[t, x.grown]] if x.grown >= 0 else 1.0)
        if m.alike[i] and x.lanes[i] > 1.0:
            x.lanes[i] = independent(m, x, i, x.lanes[i])
    for i in range(m.operand.shape[0]):
        for j in range(i + 1, m.operand.shape[0]):
            both = 1.0
            for a in range(x.alongs):
                if m.relevant[m.operand[i], x.along_dim[a]] and m.relevant[m.operand[j], x.along_dim[a]]:
                    both *= x.along_bound[a]
            x.pairs[i, j] = min(both, min(x.lanes[i], x.lanes[j]))
    x.crowd = 1.0
    for a in range(x.alongs):
        x.crowd *= x.along_bound[a]
    x.volume = 1.0
    for d in range(m.D):
        x.volume *= x.apart[EXTENT, d]


def words_apart(m: Facts, i: Whole, words: Real, empty: Real) -> Real:
    """Number of independent words empty together as often as a tile of operand i. Within one block, either all words
    are empty or none."""
    if not (empty > 0.0 and empty < 1.0 and words < inf):
        return words
    return min(max(floor(log(empty) / m.rarity[i] + 0.5), 1.0), words)


def thinned(m: Facts, x: OneDesign) -> Whole:
    """Whether a skip thins the work of any operand."""
    for i in range(m.operand.shape[0]):
        if x.looks[i] < inf:
            return 1
    return 0


def record_point(x: OneDesign, ratio: Real, turns: Real, units: Real) -> None:
    """Record a waiting point of `units` along the loops `along_bound`, met in `turns` parts of the run."""
    x.point_ratio[x.points] = ratio
    x.point_turns[x.points] = turns
    x.point_units[x.points] = units
    for a in range(x.alongs):
        x.point_loop[x.points, a] = x.along_bound[a]
    x.points += 1
