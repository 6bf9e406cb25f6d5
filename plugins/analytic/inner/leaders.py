"""Leader tiles: the data to be empty before an access to another tensor is skipped or gated (docs/model.md, 7.1)."""

from __future__ import annotations

from sparsemap.inner.primitives import ceil, floor, inf
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import Facts
from .nest import volume
from .records import FigureTables
from .tables import EMPTY, KINDS, emptiness, one_figure

TARGET = 4
REGION = 5
LED = 6
"""Rows of `OneDesign.part`: extents up to the target loop, of the region of an access, and of the leader's tile."""
DIM = 0
SPANNED = 1
BEYOND = 2
"""Rows of `OneDesign.scan`."""
SHARED_TILE = 0
CHILD_TILE = 1
STEP_TILE = 2
"""What a leader tile covers: an access at the level, the part of one child, or one step of one child (`stay`)."""


def scan_region(m: Facts, x: OneDesign, t: Whole, level: Whole, part: Whole) -> None:
    """Scan the part of the nest served by one access of tensor t at a level: the loops between the level and the child,
    innermost first.

    The target loop is the innermost loop moving t. The region spans the target loop and all spatial loops outside.
    Outside a spatial target, the region also spans temporal loops up to the first loop moving t. Loops not moving t share
    the access among children (`shared`) and steps (`lasts`); the region of a smaller `part` leaves them out."""
    child = m.child[t, level]
    inner = child if child >= 0 else m.S
    moved = 0
    x.scans = 0
    x.targeted = 0
    x.target_spatial = 0
    x.shared = 0
    x.lasts = 0
    for d in range(m.D):
        x.part[TARGET, d] = x.extent[inner, d]
        x.part[REGION, d] = x.extent[inner, d]
    for p in range(x.loops):
        block = x.loop_block[p]
        spatial = x.loop_spatial[p]
        if block < level or block >= inner or (child < 0 and (not spatial or m.separate[level])):
            continue
        d = x.loop_dim[p]
        moves = m.relevant[t, d]
        # at the compute units only the spatial loops of the innermost level are searched for a target
        inside = not x.targeted and (child >= 0 or block == m.S - 1)
        spans = 0
        if not inside:
            if moves and not spatial:
                moved = 1
            spans = spatial or (x.target_spatial and not moves and not moved)
        elif moves:
            x.targeted = 1
            x.target_spatial = spatial
        if inside:
            x.part[TARGET, d] *= x.loop_bound[p]
        if (inside or spans) and (moves or part == SHARED_TILE or (part == CHILD_TILE and not spatial)):
            x.part[REGION, d] *= x.loop_bound[p]
        if (inside or spans) and not moves:
            x.shared |= spatial
            x.lasts |= not spatial
        x.scan[DIM, x.scans] = d
        x.scan[SPANNED, x.scans] = spans or (inside and moves)
        x.scan[BEYOND, x.scans] = not inside
        x.scan_bound[x.scans] = x.loop_bound[p]
        x.scans += 1


def lead(m: Facts, k: FigureTables, x: OneDesign, i: Whole, blind: Whole, part: Whole) -> None:
    """7.1: for each leader of filter i, the probability of an empty leader tile (0 where the filter does nothing for
    this leader) and the words of the tile (infinity there).

    A `blind` filter looks at metadata, on whole granules (6.5). But for a single step, the leader tile covers everything
    met by the target's tile while in the child, `x.stays` iterations of outer loops."""
    t = m.target[i]
    level = m.level[i]
    scan_region(m, x, t, level, part)
    scalar = m.child[t, level] < 0 and (m.spatial[m.S - 1] < 0 or m.separate[level])
    words = m.access_words[level]
    for j in range(m.leaders[i]):
        c = m.leader[i, j]
        idle = 0
        before = 0
        agreed = 1.0
        for d in range(m.D):
            x.part[LED, d] = x.part[REGION, d]
            x.factor[d] = 1.0
            x.factor_beyond[d] = 1.0
        for p in range(x.scans):
            d = x.scan[DIM, p]
            both = x.scan[SPANNED, p] and m.relevant[t, d] and m.relevant[c, d] and (m.filter_metadata or not scalar)
            again = x.scan[SPANNED, p] and m.relevant[c, d] and before and x.target_spatial
            if both and (m.stay or not again):  # the leader's tile is the same at its positions
                agreed *= x.scan_bound[p]
                x.factor[d] *= x.scan_bound[p]
                if x.scan[BEYOND, p]:
                    x.factor_beyond[d] *= x.scan_bound[p]
            if again and not m.stay:  # a second such loop: for Timeloop the tiles do not match
                idle = 1
            if both:
                before = 1
        fit_leader(m, x, t, c, level, words, scalar, agreed)
        if part != STEP_TILE:
            for d in range(m.D):
                x.part[LED, d] *= x.stays[d]
        if blind and x.granule[c]:
            for d in range(m.D):
                x.part[LED, d] = max(x.part[LED, d], x.granule_extent[c, d])
        x.effect_words[i, j] = inf
        x.effect_empty[i, j] = 0.0
        if not idle:
            x.effect_words[i, j] = min(volume(m, c, x.part, LED), m.volumes[c])
            x.effect_empty[i, j] = led_emptiness(m, k, x, c, x.effect_words[i, j])


def led_emptiness(m: Facts, k: FigureTables, x: OneDesign, c: Whole, words: Real) -> Real:
    """Probability of an empty tile of leader c. The tile is limited to the words of the whole leader, wherever they
    lie."""
    if not m.by_shape[c]:
        k.argument[0] = words
        return one_figure(k, KINDS * c + EMPTY, 1, 1.0)
    for d in range(m.D):
        x.part[LED, d] = min(x.part[LED, d], m.sizes[d])
    return emptiness(m, k, c, x.part, LED)


def fit_leader(
    m: Facts, x: OneDesign, t: Whole, c: Whole, level: Whole, words: Real, scalar: Whole, agreed: Real
) -> None:
    """Fit the leader tile to one access: among the positions moving both tensors, the positions spanned by the access.

    Timeloop divides dimension by dimension in order, and compares words up to the target loop with positions of all
    loops. `filter-metadata` divides each dimension by itself, and compares words and positions of the same loops."""
    if m.filter_metadata:
        for d in range(m.D):
            x.part[TARGET, d] *= x.factor_beyond[d]
    ratio = volume(m, t, x.part, TARGET) / agreed
    if m.filter_metadata:
        for d in range(m.D):
            x.part[TARGET, d] /= x.factor_beyond[d]
    spans = max(ceil((1.0 if scalar else words) / ratio), 1.0)
    need = 1.0 if m.filter_metadata else spans
    for d in range(m.D):
        if m.relevant[t, d] and m.relevant[c, d] and x.factor[d] > 1.0:
            x.part[LED, d] = ceil(x.part[LED, d] / (x.factor[d] / need))
            if not m.filter_metadata:
                need /= x.factor[d]
    if not words > 1.0:
        return
    if scalar:
        lengthen_scalar(m, x, t, level, words)
        return
    dim = -1
    for p in range(x.scans):  # the last one is the target loop or, without one, the outermost that is searched
        if not x.scan[BEYOND, p]:
            dim = x.scan[DIM, p]
    if dim < 0 or (m.filter_metadata and not x.targeted):
        return
    if m.filter_metadata:
        lengthen(x, dim, spans, x.part[TARGET, dim])
    else:
        lengthen(x, dim, need, inf)


def lengthen(x: OneDesign, dim: Whole, count: Real, most: Real) -> None:
    """Lengthen the leader tile `count` times along a dimension, up to `most`."""
    if count > 1.0:
        x.part[LED, dim] = min(floor(x.part[LED, dim] * count), most)


def lengthen_scalar(m: Facts, x: OneDesign, t: Whole, level: Whole, words: Real) -> None:
    """Lengthen the leader tile for an access of several words where each word of tensor t serves a single compute. The
    further words lie along the innermost temporal loop or, with `filter-metadata`, the innermost loop moving t."""
    for p in range(x.loops):
        dim = x.loop_dim[p]
        if x.loop_block[p] < level or x.loop_spatial[p] or (m.filter_metadata and not m.relevant[t, dim]):
            continue
        if m.filter_metadata:
            lengthen(x, dim, min(words, x.loop_bound[p]), x.extent[level, dim])
        else:
            lengthen(x, dim, words, inf)
        return


def find_stays(m: Facts, x: OneDesign, t: Whole, level: Whole) -> Whole:
    """`stay`: per dimension, iterations of loops outside a level during which the tile of tensor t stays in the next
    level storing the tensor: the innermost temporal loops not moving t, unless a loop inside moves the tile. Return
    whether there are any."""
    for d in range(m.D):
        x.stays[d] = 1.0
    if not m.stay or x.moves[t, level]:
        return 0
    found = 0
    for s in range(level - 1, -1, -1):
        for p in range(m.D - 1, -1, -1):
            d = x.order[m.temporal[s], p]
            bound = x.bound[m.temporal[s], d]
            if bound > 1.0 and m.relevant[t, d]:
                return found
            x.stays[d] *= bound
            found |= bound > 1.0
    return found
