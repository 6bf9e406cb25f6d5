"""Hypergeometric probabilities in extended precision, for totals up to 2^62 (sections 5.1 and 5.5).

Notation: `total` words of which `marked` are nonzero, `taken` words are looked at. `none(N, r, n)` is P(0). It is
symmetric in `marked` and `taken`, and the conditional P0(n'|n,k) is `none(n, n', k)`: of the n words of a tile, n' form
the sub-tile and k are nonzero.

Everything but `none_real` and very wide tables is formed in `np.longdouble` and rounded once, so results are (nearly
always) the correctly rounded doubles where longdouble has 64 bits of mantissa. Where it is a plain double, errors are
around 1e-13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from sparsemap.native import loaded
from sparsemap.pieces.contracts.base import Array, Nonzeros, Probabilities

Long = np.longdouble
COMPILED: Any = loaded(__package__, "chances")
"""`chances.c`, or None."""
LOOPS = np.exp, np.log1p

WHOLE = 256
"""Supports up to this many occupancies are tabulated completely."""
LONGEST = 1 << 11
"""The most occupancies in a table; wider windows are sampled at equal steps .."""
SAMPLES = 1 << 10
""".. with up to this many samples."""
FACTORS = 512
"""Up to this many factors are multiplied; beyond, the closed form is cheaper and more accurate."""
EXPONENT = 55.0
"""exp(-55) = 1e-24 bounds the probability left out on each side of a window."""
_SERIES = {
    np.dtype(Long): np.array([1 / (Long(j) * (j + 1)) for j in range(20, 0, -1)]),
    np.dtype(float): np.array([1 / (j * (j + 1)) for j in range(15, 0, -1)]),
}
UNDERFLOW = -800.0  # exp of this is 0 in double


def _excess(u):
    """1 + (1-u) log(1-u) / u = sum u^j / (j(j+1)), without cancellation for small u; scalars or arrays, 0 < u < 1."""
    factors = _SERIES[u.dtype]
    series = factors[0]
    for factor in factors[1:]:
        series = series * u
        series += factor
    small = u < 0.1
    return series * u if small.all() else np.where(small, series * u, 1 + (1 - u) * np.log1p(-u) / u)


def log_none(total, marked, taken):
    """log of `none` by the Euler-Maclaurin sum of log((N-M-i)/(N-i)) over i < m; longdouble or float64.

    With a = N-M+1/2 and b = N+1/2 the integral is m (log(1-M/b) + e(m/b) - e(m/a)), e = `_excess`: no differences of
    large numbers. The next terms are in 1/(a-m): their error is below 1e-19 where a-m >= 256.
    """
    a, b = total - marked + 0.5, total + 0.5
    upper, lower = _excess(np.stack([taken / b, taken / a]))
    inside = taken * (np.log1p(-marked / b) + upper - lower)
    first = second = third = 0.0
    for sign, y in ((1, a - taken), (-1, b - taken), (-1, a), (1, b)):
        inverse = sign / y
        square = inverse * inverse
        first, second, third = first + inverse, second + inverse * square, third + inverse * square * square
    return inside + first / 24 - 7 * second / 2880 + 31 * third / 40320


def none(total: int, marked: int, taken: int) -> np.longdouble:
    """Probability that none of `taken` words is marked: prod of (N-M-i)/(N-i), i < m; m the smaller, M the larger."""
    few, many = (marked, taken) if marked < taken else (taken, marked)
    if few <= 0:
        return Long(1)
    if few + many > total or few * math.log1p(-many / total) < UNDERFLOW:
        return Long(0)
    if few <= FACTORS or total - few - many < 256:
        i = np.arange(few)
        return ((total - many - i) / (total - i).astype(Long)).prod()
    return np.exp(log_none(Long(total), Long(many), Long(few)))


def none_many(total: Array | int, marked: Array | int, taken: Array | int) -> Array:
    """`none` for arrays of equal length, float64."""
    given = np.broadcast_arrays(*(np.asarray(x, np.int64) for x in (total, marked, taken)))
    return _found("many", given, given[0].shape)


def none_real(total: Array, marked: Array, taken: Array) -> Array:
    """`none` in double for arrays of equal length, where `taken` need not be whole: gamma functions for factorials.

    Relative error below 1e-12; what is below e^-40 may be 0.
    """
    return _found("real", (total, marked, taken), total.shape)


def none_runs(total: Array, marked: Array, first: Array, count: Array) -> Array:
    """`none(total, marked, k)` for k = first, first+1, .., `count` of them, run after run in one array; float64.

    Each run is a start and its ratios P0(k+1)/P0(k) = (N-M-k)/(N-k).
    """
    count = np.asarray(count, np.int64)
    return _found("runs", (total, marked, first, count), (int(count.sum()),))


def _found(name: str, given: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """By `chances.c`, or in NumPy with the same numbers."""
    out = np.empty(shape)
    if COMPILED is None or getattr(COMPILED, name)(*map(np.ascontiguousarray, given), LOOPS, out) is None:
        out[...] = getattr(import_module(f"{__package__}.chances_numpy"), name)(*given)
    return out


def table(total: int, marked: int, taken: int) -> tuple[Nonzeros, Probabilities]:
    """Numbers k of marked words among the taken ones, ascending, and P(k) = C(r,k) C(N-r,n-k) / C(N,n).

    Ratios P(k+1)/P(k) = (r-k)(n-k) / ((k+1)(N-r-n+k+1)) outwards from the mode, normalised. More than 256 possible k:
    only those within t of the mode, exp(-t^2 / (2 (variance + t/3))) = 1e-24 (Bernstein's bound of what is left out). A
    window of more than 2048 k (variance above 9000) is sampled at equal steps s, each k standing for its neighbours:

        log P(k+s) - log P(k) = sum of the s log ratios between = s f(mid) + (s^3 - s)/24 f''(mid)

    The equal-step sum over so smooth a peak is exact to rounding, and a single P to about 1e-9.
    """
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
    near = k[:-1] + Long(step - 1) / 2 if step > 1 or total >= 1 << 31 else k[:-1]
    up = (marked - near) * (taken - near)
    down = (near + 1) * (near + (total - marked - taken + 1))
    if step > 1:
        slope = step * np.log1p(((up - down) / down).astype(np.float64))
        slope[1:-1] += (1 - step**-2) / 24 * np.diff(slope, 2)
        p = np.exp(np.concatenate([-np.cumsum(slope[:below][::-1])[::-1], [0.0], np.cumsum(slope[below:])]))
    else:
        p = np.empty(len(k), Long)
        p[below] = 1
        np.cumprod(up[below:] / down[below:].astype(Long), out=p[below + 1 :])
        p[:below] = np.cumprod(down[:below][::-1] / up[:below][::-1].astype(Long))[::-1]
    probability = (p / p.sum()).astype(np.float64)
    kept = probability > 0
    return k[kept], probability[kept]
