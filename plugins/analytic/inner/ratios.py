"""Longest work of units waiting for each other, over the mean (`imbalance`)."""

from __future__ import annotations

from sparsemap.inner.numbers import exp, log2, power
from sparsemap.inner.primitives import inf, mixed, sqrt, whole
from sparsemap.inner.types import Real, Reals, Whole

from .design import OneDesign
from .facts import Facts
from .maxima import meetings
from .metadata import shapes
from .records import FigureTables
from .stored import positive
from .tables import KINDS, MEETINGS, RATIO, WORK, figures, own_figures, seat

__all__ = ["TAILS"]

TAILS = 21
"""Thresholds of a tile's work (`charges/maxima.py`)."""
NEWTON = 6
"""Newton steps; each at least halves the error."""
PARTS = 4
"""Counts of consecutive parts (1, 2, 4 and 8) for units allowed to run ahead of each other."""
MOST_PARTS = 1048576.0
ROOT_OF_TWO_PI = 2.5066282746310002
FIRST_LANES = 0.25
"""Units in the first column of maxima."""
ONE = 2
TWO = 3
"""Columns of maxima for one unit and two units."""
PRODUCT = 0
REACHED = 1
"""Rows of `OneDesign.threshold`."""
LONGEST_WORK = 0
MEAN = 1
DEVIATION = 2
CHAIN = 3
"""Rows of `OneDesign.growth`."""


def line(xs: Reals, ys: Reals, first: Whole, at: Real) -> Real:
    """Linear interpolation through the points (xs, ys) at a number not before point `first`."""
    last = xs.shape[0] - 1
    if at <= xs[0]:
        return ys[0]
    if at >= xs[last]:
        return ys[last]
    j = first
    for _ in range(last):
        if xs[j + 1] > at:
            break
        j += 1
    return (ys[j + 1] - ys[j]) / (xs[j + 1] - xs[j]) * (at - xs[j]) + ys[j]


def by_lanes(ys: Reals, units: Real) -> Real:
    """Interpolate figures for 2^(i - 2) units at `units`."""
    at = min(max(log2(max(units, 1.0)) + 2.0, 0.0), ys.shape[0] - 1.0)
    low = min(whole(at), ys.shape[0] - 2)
    part = at - low
    return (ys[low + 1] - ys[low]) * part + ys[low]


def normal_share(m: Facts, at: Real) -> Real:
    """Probability of a normal variable below `at`."""
    last = m.normal_at.shape[0] - 1
    near = (at - m.normal_at[0]) * (last / (m.normal_at[last] - m.normal_at[0])) - 1.0
    return line(m.normal_at, m.normal_below, whole(min(max(near, 0.0), last - 1.0)), at)


def work_of(m: Facts, k: FigureTables, i: Whole, look: Real) -> Whole:
    """Start of the work figures for a tile of operand i, with words as arguments from 1 on: maxima, mean of the square,
    probability of any work, thresholds, and the shares reaching them."""
    k.argument[0] = look
    return figures(k, KINDS * m.operand[i] + WORK, 1 + shapes(m, m.operand[i]))


def growth_of(m: Facts, x: OneDesign, i: Whole) -> Whole:
    """1 + the rank along which the next part of operand i is a different piece; 0: the next part uses the same piece."""
    t = m.operand[i]
    return 1 + m.rank_of[t, x.grown] if x.grown >= 0 and m.relevant[t, x.grown] else 0


def loose(mean: Real, moment: Real, words: Real) -> Real:
    """1 - E[y^2] / E[y] of the share y of nonzeros, relative to the value for one nonzero in `words`: 1 - E[y] for
    uniform nonzeros, 0 for tiles either full or empty."""
    share = 1.0 - moment / positive(mean)
    return min(max(share / (1.0 - 1.0 / words if words > 1.0 else 1.0), 0.0), 1.0)


def maximum_at(m: Facts, k: FigureTables, start: Whole, units: Real) -> Real:
    """Expected maximum for a number of units, interpolated in the table; below the first column, in proportion to the
    units."""
    most = m.lanes - 1.000001  # there are more units in designs only that are invalid
    at = min(max(log2(max(units, FIRST_LANES)) + 2.0, 0.0), most)
    low = whole(at)
    part = at - low
    found = k.data[start + low] * (1.0 - part) + k.data[start + low + 1] * part
    return found * min(units / FIRST_LANES, 1.0)


def best_of_tails(x: OneDesign, count: Whole, scratch: Whole) -> Whole:
    """Keep the largest product among thresholds reached by about equally many units, and return the number kept. With
    several operands, all products of thresholds would otherwise be combined."""
    sums = count // TAILS + TAILS - 1
    for i in range(sums):
        x.threshold[PRODUCT, scratch + i] = -1.0
    for a in range(count):
        i = scratch + a // TAILS + a % TAILS
        if x.threshold[PRODUCT, a] > x.threshold[PRODUCT, i]:
            x.threshold[PRODUCT, i] = x.threshold[PRODUCT, a]
            x.threshold[REACHED, i] = x.threshold[REACHED, a]
    for i in range(sums):
        x.threshold[PRODUCT, i] = x.threshold[PRODUCT, scratch + i]
        x.threshold[REACHED, i] = x.threshold[REACHED, scratch + i]
    return sums


def in_order(m: Facts, k: FigureTables, x: OneDesign, last: Whole, count: Whole) -> Real:
    """Largest work of the last operand among units reaching a threshold of every other operand, for the best
    thresholds. `several` lists `count` operands with different parts, including the last."""
    x.threshold[PRODUCT, 0] = 1.0
    x.threshold[REACHED, 0] = x.lanes[last]
    size = 1
    place = 0
    for j in range(count):
        i = x.several[j]
        if i == last:
            continue
        start = x.known[i] + m.lanes + 2
        turns = x.lanes[i] / x.pairs[min(i, last), max(i, last)]
        for tail in range(TAILS):
            reaching = k.data[start + TAILS + tail]
            if tail > 0 and reaching == k.data[start + TAILS + tail - 1]:
                x.chance[tail] = x.chance[tail - 1]
            else:
                x.chance[tail] = 1.0 - power(1.0 - min(reaching, 1.0), turns)
        for a in range(size - 1, -1, -1):
            for tail in range(TAILS - 1, -1, -1):
                x.threshold[PRODUCT, a * TAILS + tail] = x.threshold[PRODUCT, a] * k.data[start + tail]
                x.threshold[REACHED, a * TAILS + tail] = x.threshold[REACHED, a] * x.chance[tail]
        size *= TAILS
        if place > 0 and place < count - 2:
            size = best_of_tails(x, size, x.threshold.shape[1] // 2)
        place += 1
    found = 0.0
    for a in range(size):
        again = a > 0 and x.threshold[REACHED, a] == x.threshold[REACHED, a - 1]
        if not (again and x.threshold[PRODUCT, a] <= x.threshold[PRODUCT, a - 1]):
            found = max(found, x.threshold[PRODUCT, a] * maximum_at(m, k, x.known[last], x.threshold[REACHED, a]))
    return found


def with_meetings(
    m: Facts, k: FigureTables, x: OneDesign, places: Real, chance: Real, excess: Real, share: Real, apart: Real
) -> Real:
    """`excess` increased by the random meeting of nonzero positions. `share`: freedom in the positions of the nonzeros;
    `apart`: share of positions beyond the `places`."""
    if not (apart > 0.0 and chance > 0.0 and chance < 1.0):
        return excess
    key = mixed(mixed(KINDS * m.T + MEETINGS, places), chance)
    start = seat(k, key | 1)
    if start < 0:
        start = own_figures(k, key, m.lanes)
        if start < 0:
            return excess
        meetings(places, chance, m.lanes, x.met, x.met_share, x.merged, k.data, start)
    deviation = maximum_at(m, k, start, x.crowd) - chance
    share = share / (1.0 - chance) * apart
    spread = max(sqrt(excess * excess + share * deviation * deviation), 1e-300)
    fuller = 1.0 + excess / chance * excess / spread
    return sqrt(excess * excess + share * fuller * (deviation * deviation))


def longest_work(m: Facts, k: FigureTables, x: OneDesign, grown: Real) -> Real:
    """Longest work of `grown` consecutive parts over the mean."""
    mean = 1.0
    alike = 1.0
    share = 1.0
    words = 1.0
    count = 0
    finite = 0
    single = 1
    lacking = 0
    for i in range(m.operand.shape[0]):
        if x.looks[i] == inf:
            continue
        own_words = grow_box(m, k, x, i, grown)
        start = work_of(m, k, i, x.looks[i])
        if start < 0:
            lacking = 1
            continue
        x.known[i] = start
        own = k.data[start + ONE]
        own_words = max(own_words, x.looks[i]) / x.unit_words[i]
        mean *= own
        share *= loose(own, k.data[start + m.lanes], own_words)
        words *= own_words
        finite += 1
        if x.looks[i] != x.unit_words[i]:
            single = 0
        if x.lanes[i] > 1.0:
            x.several[count] = i
            count += 1
        else:
            alike *= own
    if lacking:
        return 1.0
    most = mean
    for j in range(count):
        most = max(most, alike * in_order(m, k, x, x.several[j], count))
    if finite > 1 and single:
        places = x.volume * grown
        most = mean + with_meetings(m, k, x, places, mean, most - mean, share, 1.0 - min(places / words, 1.0))
    return max(most / positive(mean), 1.0)


def grow_box(m: Facts, k: FigureTables, x: OneDesign, i: Whole, grown: Real) -> Real:
    """Write the box of `grown` parts of operand i to the arguments from 1 on; return its words."""
    growth = growth_of(m, x, i)
    words = 1.0
    for r in range(shapes(m, m.operand[i])):
        own = x.box[i, r]
        if growth == r + 1 and grown > 1.0:
            own = max(own, x.least[i]) * grown
        k.argument[1 + r] = min(own, m.limits[i, r])
        words *= k.argument[1 + r]
    return words


def pace_of(m: Facts, x: OneDesign, count: Whole, units: Real) -> Real:
    """Cycles per part of units at most `depth` - 1 parts ahead of the slowest, over the cycles of the mean unit.

    Row LONGEST_WORK of `growth` has the expected maximum of the work of 1, 2, 4 .. consecutive parts over the mean.
    Solves E max over j of (X_j - (j + depth - 1) tau) = 0 for tau, with X_j as independent normal variables (Clark, The
    greatest of a finite set of random variables, 1961)."""
    least = 1.0
    grown = 1.0
    relative = by_lanes(m.deviations, units)
    for j in range(count):
        x.growth[CHAIN, j] = grown + x.depth - 1.0
        x.growth[MEAN, j] = x.growth[LONGEST_WORK, j] * grown
        x.growth[DEVIATION, j] = relative * (x.growth[LONGEST_WORK, j] - 1.0) * grown
        own = x.growth[MEAN, j] / x.growth[CHAIN, j]
        least = own if j == 0 and count == PARTS else max(least, own)
        grown *= 2.0
    if count < 2 or not x.growth[DEVIATION, 0] > 0.0:
        return least
    tau = least
    for _ in range(NEWTON):
        mid = x.growth[MEAN, 0] - x.growth[CHAIN, 0] * tau
        s = x.growth[DEVIATION, 0]
        slope = x.growth[CHAIN, 0]
        for j in range(1, count):
            deviation = x.growth[DEVIATION, j]
            other = x.growth[MEAN, j] - x.growth[CHAIN, j] * tau
            spread = sqrt(s * s + deviation * deviation)
            apart = (mid - other) / spread
            before = normal_share(m, apart)
            after = 1.0 - before
            bell = exp(-0.5 * (apart * apart)) / ROOT_OF_TWO_PI
            joint = mid * before + other * after + spread * bell
            square = (mid * mid + s * s) * before + (other * other + deviation * deviation) * after
            square += (mid + other) * spread * bell
            s = sqrt(max(square - joint * joint, 1e-18))
            mid = joint
            slope = slope * before + x.growth[CHAIN, j] * after
        tau = min(max(tau + mid / slope, least), x.growth[LONGEST_WORK, 0])
    return max(least, tau)


def work_ratio(m: Facts, k: FigureTables, x: OneDesign) -> Real:
    """Cycles of the run over the cycles of the mean unit, for the current waiting point."""
    thins = 0
    finite = 0
    units = x.crowd
    key = mixed(mixed(KINDS * m.T + RATIO, x.depth), min(x.parts, MOST_PARTS))
    key = mixed(mixed(key, x.crowd), x.volume)
    for i in range(m.operand.shape[0]):
        if x.looks[i] < inf:
            if x.lanes[i] > 1.0:
                thins = 1
            if finite == 0:
                units = x.lanes[i]
            finite += 1
            key = mixed(mixed(mixed(key, x.looks[i]), x.unit_words[i]), growth_of(m, x, i))
            key = mixed(mixed(key, x.least[i]), x.lanes[i])
            for r in range(shapes(m, m.operand[i])):
                key = mixed(key, x.box[i, r])
        else:
            key = mixed(key, inf)
    if not thins:
        return 1.0
    for i in range(m.operand.shape[0]):
        for j in range(i + 1, m.operand.shape[0]):
            key = mixed(key, x.pairs[i, j])
    start = seat(k, key | 1)
    if start >= 0:
        return k.data[start]
    lacked = k.lacking
    k.lacking = 0
    count = 0
    grown = 1.0
    for j in range(PARTS):
        if x.parts < grown or (j > 0 and x.depth == 1):
            break
        own = longest_work(m, k, x, grown)
        x.growth[LONGEST_WORK, j] = min(own, x.growth[LONGEST_WORK, j - 1]) if j > 0 else own
        grown *= 2.0
        count += 1
    found = pace_of(m, x, count, x.crowd if finite > 1 else units)
    if not k.lacking:
        start = own_figures(k, key, 1)
        if start >= 0:
            k.data[start] = found
    if lacked:
        k.lacking = 1
    return found
