"""Hypergeometric probabilities, for totals up to 2^62 (sections 5.1 and 5.5).

Notation: of `total` words, `marked` are nonzero and `taken` are examined. `none(N, r, n)` is P(0), symmetric in
`marked` and `taken`. The conditional P0(n'|n,k) is `none(n, n', k)`: of the n words of a tile, n' form the sub-tile and
k are nonzero."""

from __future__ import annotations

import math

import numpy as np

from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

from .inner import functions

WHOLE = 256
"""Supports up to this many occupancies are tabulated completely."""
LONGEST = 1 << 11
"""Largest number of occupancies in a complete table; wider windows are sampled at equal steps."""
SAMPLES = 1 << 10
"""Largest number of samples of a window."""
EXPONENT = 55.0
"""exp(-55) = 1e-24 bounds the probability left out on each side of a window."""


def none(total: int, marked: int, taken: int) -> float:
    """Probability of no marked word among `taken` words."""
    return functions.none_one(total, marked, taken)


def none_many(total: Array | int, marked: Array | int, taken: Array | int) -> Array:
    """`none` for arrays of equal length, float64."""
    given = np.broadcast_arrays(*(np.asarray(x, np.int64) for x in (total, marked, taken)))
    out = np.empty(given[0].shape)
    functions.none_many(*map(np.ascontiguousarray, given), out)
    return out


def none_real(total: Array, marked: Array, taken: Array) -> Array:
    """`none` for arrays of equal length, with real `taken`; results below e^-40 may be 0."""
    out = np.empty(total.shape)
    functions.none_real(*(np.ascontiguousarray(x, np.float64) for x in (total, marked, taken)), out)
    return out


def none_within(subs: Array, words: Array, k: Array, counts: Array) -> Array:
    """P0(n'|n,k) of parts in tiles, n' `subs` and n `words` (m,), for `counts` (m,) values k each; float64."""
    given = [np.ascontiguousarray(x, kind) for x, kind in ((k, np.float64), (counts, np.int64))]
    out = np.empty(len(given[0]))
    functions.none_within(subs, words, *given, out)
    return out


def real_within(subs: Array, words: Array, k: Array) -> Array:
    """As `none_within`, for one real k (m,) each; results below e^-40 may be 0."""
    out = np.empty(len(k))
    functions.real_within(subs, words, np.ascontiguousarray(k, np.float64), out)
    return out


def table(total: int, marked: int, taken: int) -> tuple[Nonzeros, Probabilities]:
    """Possible numbers k of marked words among the taken words, ascending, and P(k) = C(r,k) C(N-r,n-k) / C(N,n).

    Ratios P(k+1)/P(k) = (r-k)(n-k) / ((k+1)(N-r-n+k+1)) run outwards from the mode, then P is normalised. With more
    than 256 possible k, only k within t of the mode are listed, exp(-t^2 / (2 (variance + t/3))) = 1e-24 (Bernstein's
    bound of the omitted probability). A window of more than 2048 k (variance above 9000) is sampled at equal steps s,
    each k standing for its neighbours:

        log P(k+s) - log P(k) = sum of the s log ratios between = s f(mid) + (s^3 - s)/24 f''(mid)

    The equal-step sum over so smooth a peak is exact to rounding, and a single P to about 1e-9."""
    least, most = max(0, taken + marked - total), min(taken, marked)
    if least == most:
        return np.array([least]), np.ones(1)
    mode = min(max((taken + 1) * (marked + 1) // (total + 2), least), most)
    step = 1
    if most - least >= WHOLE:
        share = taken / total
        variance = marked * share * (1 - share) * ((total - marked) / max(total - 1, 1))
        reach = math.ceil(EXPONENT / 3 + math.sqrt(EXPONENT**2 / 9 + 2 * EXPONENT * variance)) + 1
        step = (1 + 2 * reach // SAMPLES) | 1 if 2 * reach > LONGEST else 1  # odd: samples on both sides of all edges
        least, most = max(least, mode - reach // step * step), min(most, mode + reach // step * step)
    below, above = (mode - least) // step, (most - mode) // step
    k = mode + step * np.arange(-below, above + 1)
    p, given = np.empty(len(k)), (total, marked, taken, k, below)
    if step > 1:
        functions.sampled_peak(*given, step, np.empty(len(k)), p)
    else:
        functions.peak(*given, np.empty(len(k)), p)
    kept = p > 0
    return k[kept], p[kept]
