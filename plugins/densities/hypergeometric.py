"""Hypergeometric probabilities in extended precision, for totals up to 2^62 (Sparseloop model, sections 5.1 and 5.5).

Notation: `total` words of which `marked` are nonzero, `taken` words are looked at. `none(N, r, n)` is P(0). It is
symmetric in `marked` and `taken`, and the conditional P0(n'|n,k) is `none(n, n', k)`: of the n words of a tile, n' form
the sub-tile and k are nonzero.

Everything is formed in `np.longdouble` and rounded once, so results are (nearly always) the correctly rounded doubles
where longdouble has 64 bits of mantissa. Where it is a plain double, errors are around 1e-13.
"""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray
Long = np.longdouble

WHOLE = 256
"""Supports up to this many occupancies are tabulated completely."""
LONGEST = 1 << 16
"""The most occupancies in a table; wider windows are sampled at equal steps .."""
SAMPLES = 1 << 14
""".. with this many samples."""
FACTORS = 512
"""Up to this many factors are multiplied; beyond, the closed form is cheaper and more accurate."""
EXPONENT = 55.0
"""exp(-55) = 1e-24 bounds the probability left out on each side of a window."""
_SERIES = np.array([1 / (Long(j) * (j + 1)) for j in range(20, 0, -1)])
_UNDERFLOW = -800.0  # exp of this is 0 in double


def _excess(u):
    """1 + (1-u) log(1-u) / u = sum u^j / (j(j+1)), without cancellation for small u; scalars or arrays, 0 < u < 1."""
    series = _SERIES[0]
    for factor in _SERIES[1:]:
        series = series * u + factor
    return np.where(u < 0.1, series * u, 1 + (1 - u) * np.log1p(-u) / u)


def _log_none(total, marked, taken):
    """log of `none` by the Euler-Maclaurin sum of log((N-M-i)/(N-i)) over i < m.

    With a = N-M+1/2 and b = N+1/2 the integral is m (log(1-M/b) + e(m/b) - e(m/a)), e = `_excess`: no differences of
    large numbers. The next terms are in 1/(a-m): their error is below 1e-19 where a-m >= 256.
    """
    a, b = total - marked + Long(0.5), total + Long(0.5)
    inside = taken * (np.log1p(-marked / b) + _excess(taken / b) - _excess(taken / a))
    first = second = third = Long(0)
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
    if few + many > total or few * math.log1p(-many / total) < _UNDERFLOW:
        return Long(0)
    if few <= FACTORS or total - few - many < 256:
        i = np.arange(few)
        return ((total - many - i) / (total - i).astype(Long)).prod()
    return np.exp(_log_none(Long(total), Long(many), Long(few)))


def none_many(total: int, marked: Array | int, taken: Array | int) -> Array:
    """`none` for arrays of equal length, float64."""
    marked, taken = np.broadcast_arrays(np.asarray(marked, np.int64), np.asarray(taken, np.int64))
    few, many = np.minimum(marked, taken), np.maximum(marked, taken)
    closed = (few > 0) & (few + many <= total - 256)
    result = np.where(few > 0, 0.0, 1.0)
    result[closed] = np.exp(_log_none(Long(total), many[closed].astype(Long), few[closed].astype(Long)))
    for i in np.flatnonzero(~closed & (few > 0) & (few + many <= total)):
        result[i] = none(total, int(many[i]), int(few[i]))
    return result


def none_run(total: int, marked: int, first: int, count: int) -> Array:
    """`none(total, marked, k)` for k = first, first+1, ..: a start and the ratios (N-M-k)/(N-k), float64."""
    k = np.arange(first, first + count - 1)
    ratios = np.empty(count, Long)
    ratios[0] = none(total, marked, first)
    np.divide(np.maximum(total - marked - k, 0), (total - k).astype(Long), out=ratios[1:])
    return np.cumprod(ratios, out=ratios).astype(np.float64)


def table(total: int, marked: int, taken: int) -> tuple[Array, Array]:
    """Numbers k of marked words among the taken ones, ascending, and P(k) = C(r,k) C(N-r,n-k) / C(N,n).

    Ratios P(k+1)/P(k) = (r-k)(n-k) / ((k+1)(N-r-n+k+1)) outwards from the mode, normalised. More than 256 possible k:
    only those within t of the mode, exp(-t^2 / (2 (variance + t/3))) = 1e-24 (Bernstein's bound of what is left out). A
    window of more than 65536 k (variance above 1e7) is sampled at equal steps, each k standing for its neighbours; the
    equal-step sum over so smooth a peak is exact to rounding, and a single P to about 1e-9.
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
        step = 1 + 2 * reach // SAMPLES if 2 * reach > LONGEST else 1
        least, most = max(least, mode - reach // step * step), min(most, mode + reach // step * step)
    below, above = (mode - least) // step, (most - mode) // step
    k = mode + step * np.arange(-below, above + 1)
    p = np.empty(len(k), Long)
    p[below] = 1
    near = k[:-1] + Long(step - 1) / 2 if step > 1 or total >= 1 << 31 else k[:-1]
    up = (marked - near) * (taken - near)
    down = (near + 1) * (near + (total - marked - taken + 1))
    if step > 1:
        ratio = np.exp(step * np.log(up / down))
        np.cumprod(ratio[below:], out=p[below + 1 :])
        p[:below] = np.cumprod(1 / ratio[:below][::-1])[::-1]
    else:
        np.cumprod(up[below:] / down[below:].astype(Long), out=p[below + 1 :])
        p[:below] = np.cumprod(down[:below][::-1] / up[:below][::-1].astype(Long))[::-1]
    probability = (p / p.sum()).astype(np.float64)
    if probability[0] == 0 or probability[-1] == 0:
        kept = probability > 0
        return k[kept], probability[kept]
    return k, probability
