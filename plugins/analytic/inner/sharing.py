"""`shared-words`: compute units sharing a word or a sum step together, run ahead by short queues, or read a word each."""

from __future__ import annotations

from sparsemap.inner.numbers import power
from sparsemap.inner.primitives import inf
from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import Facts
from .nest import volume
from .ratios import work_ratio
from .records import Counts, FigureTables
from .stored import positive
from .tables import EMPTY, KINDS, emptiness, one_figure
from .work import EXTENT, fit_boxes, record_point, thinned, words_apart


def couple_words(m: Facts, x: OneDesign) -> Real:
    """`along_bound`: loops over units sharing a word or a sum. Return the words of the shortest queue; infinity: no unit
    waits."""
    queue = inf
    for a in range(x.alongs):
        x.along_bound[a] = 1.0
        for t in range(m.T):
            inner = m.innermost[t]
            if m.queue[inner] < inf and x.along_block[a] >= inner and not m.relevant[t, x.along_dim[a]]:
                x.along_bound[a] = x.along_every[a]
                queue = min(queue, m.queue[inner])
    return queue


def shares_words(m: Facts, x: OneDesign, t: Whole) -> Whole:
    """Whether compute units share words of tensor t."""
    for s in range(m.innermost[t], m.S):
        if m.spatial[s] >= 0 and x.distinct[t, s] < x.product[m.spatial[s]]:
            return 1
    return 0


def thinning_movers(m: Facts, x: OneDesign, d: Whole) -> Whole:
    """Number of operands moved by a dimension and thinning the work."""
    count = 0
    for i in range(m.operand.shape[0]):
        if x.looks[i] < inf and m.relevant[m.operand[i], d]:
            count += 1
    return count


def some_work(m: Facts, k: FigureTables, x: OneDesign, i: Whole) -> Real:
    """Probability of a nonzero of operand i in the extents of `apart`, at least a tile examined by the skip."""
    t = m.operand[i]
    words = volume(m, t, x.apart, EXTENT)
    if m.by_shape[t] and words >= x.looks[i]:
        return 1.0 - emptiness(m, k, t, x.apart, EXTENT)
    k.argument[0] = max(words, x.looks[i])
    return 1.0 - one_figure(k, KINDS * t + EMPTY, 1, 0.0) if not m.by_shape[t] else 1.0


def all_work(m: Facts, k: FigureTables, x: OneDesign) -> Real:
    """Share of the steps with a nonzero of every thinning operand in the extents of `apart`."""
    found = 1.0
    for i in range(m.operand.shape[0]):
        if x.looks[i] < inf:
            found *= some_work(m, k, x, i)
    return found


def single_share(m: Facts, k: FigureTables, x: OneDesign) -> Real:
    """Share of the steps with work in one unit."""
    for d in range(m.D):
        x.apart[EXTENT, d] = 1.0
    return all_work(m, k, x)


def own_extents(m: Facts, x: OneDesign) -> Real:
    """Write the extents of one step over the coupled loops moving a single thinning operand; return the bounds of the
    loops moving several."""
    positions = 1.0
    for d in range(m.D):
        x.apart[EXTENT, d] = 1.0
    for a in range(x.alongs):
        movers = thinning_movers(m, x, x.along_dim[a])
        if movers == 1:
            x.apart[EXTENT, x.along_dim[a]] *= x.along_bound[a]
        elif movers > 1:
            positions *= x.along_bound[a]
    return positions


def any_share(m: Facts, k: FigureTables, x: OneDesign) -> Real:
    """Share of the steps with work in any of the units stepping together. Units along loops moving one operand have work
    if the step has a nonzero of the operand for any of them; other loops count whole positions."""
    x.positions = own_extents(m, x)
    x.position_share = all_work(m, k, x)
    return any_of(x, x.position_share)


def any_of(x: OneDesign, share: Real) -> Real:
    """Share of the steps with work in any of the `positions` of a step, with work in a `share` of the positions."""
    return 1.0 - power(1.0 - min(share, 1.0), x.positions) if x.positions > 1.0 else share


def group_ratio(x: OneDesign, ratio: Real) -> Real:
    """Steps of the fullest group over the cycles of the mean unit, if its positions have `ratio` times the mean work."""
    return x.shared_ratio * any_of(x, x.position_share * ratio) / positive(any_of(x, x.position_share))


def ahead(m: Facts, k: FigureTables, x: OneDesign, queue: Real, share: Real) -> Real:
    """Cycles over the cycles of the mean unit, for units with queues: a part of the run is the loops filling a queue."""
    target = queue / positive(share)
    steps = 1.0
    x.grown = -1
    for d in range(m.D):
        x.apart[EXTENT, d] = 1.0
    for p in range(x.loops):
        d = x.loop_dim[p]
        if x.loop_spatial[p]:
            continue
        part = 1.0
        for _ in range(64):
            if part < x.loop_bound[p] and steps * part < target:
                part *= 2.0
        part = min(part, x.loop_bound[p])
        x.apart[EXTENT, d] *= part
        steps *= part
        if part < x.loop_bound[p]:
            x.grown = d
            break
    if not steps < x.turns:
        return 1.0  # no queue is ever full
    x.pitch = 1.0
    if x.grown >= 0:
        x.pitch = x.apart[EXTENT, x.grown]
    x.depth = 1.0 + (queue - 1.0) / (positive(share) * steps)
    x.parts = x.turns / steps
    for i in range(m.operand.shape[0]):
        for d in range(m.D):
            x.wide[i, d] = x.apart[EXTENT, d]
    fit_boxes(m, x)
    return work_ratio(m, k, x)


def group_units(m: Facts, k: FigureTables, x: OneDesign) -> None:
    """`group_bound`, `step_words`: units stepping together, and the words of a step of a group; the extents in `apart` are
    those of `own_extents`."""
    x.stepping = 1
    for a in range(x.alongs):
        x.group_bound[a] = x.along_bound[a]
    for i in range(m.operand.shape[0]):
        if x.looks[i] < inf:
            words = max(volume(m, m.operand[i], x.apart, EXTENT), x.looks[i])
            x.step_words[i] = words_apart(m, i, words, 1.0 - some_work(m, k, x, i)) if m.alike[i] else words


def add_shared_words(m: Facts, k: FigureTables, x: OneDesign) -> None:
    """Add the waiting point of single words."""
    queue = couple_words(m, x)
    x.crowd = 1.0
    for a in range(x.alongs):
        x.crowd *= x.along_bound[a]
    if not (queue < inf and x.crowd > 1.0):
        return
    units = x.crowd
    share = single_share(m, k, x)
    ratio = ahead(m, k, x, queue, share) if queue > 0.0 else any_share(m, k, x) / positive(share)
    x.shared_ratio = max(ratio, 1.0)
    if queue == 0.0:
        group_units(m, k, x)
    record_point(x, ratio, x.turns, units)


def queue_pj(m: Facts, x: OneDesign, c: Counts) -> Real:
    """pJ of shared words passing the queues of the units. Designs without skips pass the queues by."""
    added = 0.0
    for t in range(m.T if thinned(m, x) else 0):
        if m.queue_pj[m.innermost[t]] > 0.0 and shares_words(m, x, t):
            added += (c.actual + c.gated) * x.word_width[t, m.innermost[t]] * m.queue_pj[m.innermost[t]]
    return added
