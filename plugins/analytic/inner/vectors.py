"""`vectors`: lanes stepping together over condensed nonzeros take whole steps; the last step is only partly filled."""

from __future__ import annotations

from sparsemap.inner.types import Real, Whole

from .design import OneDesign
from .facts import Facts
from .metadata import shapes
from .records import FigureTables
from .tables import EMPTY, KINDS, PACKED, STEPS, figures, one_figure


def vector_ratio(m: Facts, k: FigureTables, x: OneDesign) -> Real:
    """Steps of the lanes over the steps with all lanes full; 0: no lanes step together.

    Lanes along loops moving a single operand are filled with words of this operand. Lanes along other loops are filled
    with positions nonempty in every operand."""
    group = m.spatial[m.S - 1]
    if group < 0:
        return 0.0
    ratio = 1.0
    chance = 1.0
    several = 0
    shared = 1.0
    positions = 1.0
    for d in range(m.D):
        if movers(m, d) > 1:
            shared *= x.bound[group, d]
            positions *= x.bound[group, d] * x.bound[m.temporal[m.S - 1], d]
    for i in range(m.operand.shape[0]):
        t = m.operand[i]
        if x.looks[i] != 1.0 or deals_any(m, x):
            continue
        lanes = 1.0
        for d in range(m.D):
            if m.relevant[t, d] and movers(m, d) == 1:
                lanes *= x.bound[group, d]
        count = own_words(m, k, x, t, group)
        if shared > 1.0:
            chance *= 1.0 - one_figure(k, KINDS * t + EMPTY, count, 0.0)
            several = 1
        if lanes > 1.0:
            k.argument[count] = lanes
            start = figures(k, KINDS * t + PACKED, count + 1)
            if start >= 0:
                ratio /= k.data[start]
    if several and chance > 0.0 and not k.lacking:
        k.argument[0] = positions
        k.argument[1] = chance
        k.argument[2] = shared
        ratio *= one_figure(k, KINDS * m.T + STEPS, 3, 1.0)
    return ratio


def movers(m: Facts, d: Whole) -> Whole:
    """Number of operands moved by a dimension."""
    count = 0
    for i in range(m.operand.shape[0]):
        count += m.relevant[m.operand[i], d]
    return count


def deals_any(m: Facts, x: OneDesign) -> Whole:
    """Whether any filter of the design deals work out to lanes (7.4)."""
    for i in range(m.deals):
        if m.deal_chosen[i, x.chosen[m.deal_gene[i]]]:
            return 1
    return 0


def own_words(m: Facts, k: FigureTables, x: OneDesign, t: Whole, group: Whole) -> Whole:
    """Write table arguments: words of tensor t along lanes and loops of the innermost level moving no other operand.
    Return their number."""
    words = 1.0
    for r in range(m.ranks[t]):
        own = 1.0
        for j in range(m.terms[t, r]):
            d = m.term_dim[t, r, j]
            if movers(m, d) == 1:
                own *= x.bound[group, d] * x.bound[m.temporal[m.S - 1], d]
        words *= own
        k.argument[r] = own
    if shapes(m, t) == 1:
        k.argument[0] = words
        return 1
    return m.ranks[t]
