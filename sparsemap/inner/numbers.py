"""Exponentials, logarithms and powers, the same to the last bit on every processor.

NumPy and the C library choose other variants for other processors. These functions follow published methods: reduction
to small arguments and minimax polynomials as in FDLIBM (Sun Microsystems, 1993), products without error after Dekker
(1971). Errors are below one unit in the last place, below two for powers, below four for log1p and expm1; of log2 below
1e-16."""

from __future__ import annotations

from .primitives import exponent, floor, inf, mantissa, two_to
from .types import Pair, Real, Reals, Reals2

__all__ = ["dot", "exp2s", "expm1s", "exps", "log1ps", "log2s", "logs", "one_power", "powers", "products"]

LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
"""The logarithm of 2 in two parts; the high part has trailing zero bits, so products with exponents are exact."""
ROOT_HALF = 0.70710678118654752440


def exp_pair(high: Real, low: Real) -> Real:
    """exp(high + low), |low| far below |high| or 0."""
    if high != high:
        return high
    if high > 709.782712893384:
        return inf
    if high < -745.2:
        return 0.0
    k = floor(high / (LN2_HIGH + LN2_LOW) + 0.5)
    y = reduced_exp(high, low, k)
    if k > 1023.0:
        return y * 2.0 * two_to(k - 1.0)
    if k < -1021.0:
        return y * two_to(k + 200.0) * two_to(-200.0)
    return y * two_to(k)


def reduced_exp(high: Real, low: Real, k: Real) -> Real:
    """exp(high + low) over 2^k, from 0.7 to 1.5."""
    top = high - k * LN2_HIGH
    rest = k * LN2_LOW - low
    r = top - rest
    t = r * r
    c = 6.61375632143793436117e-05 + t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08)
    c = r - t * (1.66666666666666019037e-01 + t * (-2.77777777770155933842e-03 + t * c))
    return 1.0 - ((rest - (r * c) / (2.0 - c)) - top)


def decay(x: Real) -> Real:
    """e^-x for x from 0 to 700, and e^-700 beyond: a loop of this function has no branches."""
    x = -x if x < 700.0 else -700.0
    k = floor(x / (LN2_HIGH + LN2_LOW) + 0.5)
    return reduced_exp(x, 0.0, k) * two_to(k)


def exp(x: Real) -> Real:
    """e^x."""
    return exp_pair(x, 0.0)


def log(x: Real) -> Real:
    """The natural logarithm; minus infinity of 0, NaN below."""
    if x != x or x == inf:
        return x
    if x <= 0.0:
        return -inf if x == 0.0 else inf - inf
    k, m = exponent(x), mantissa(x)
    if m < ROOT_HALF:
        k, m = k - 1, 2.0 * m
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    even = z * (
        6.666666666666735130e-01
        + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    return k * LN2_HIGH - ((half - (s * (half + (odd + even)) + k * LN2_LOW)) - f)


def exp2(x: Real) -> Real:
    """2^x, |x| below 1000; exact for whole numbers."""
    k = floor(x)
    return exp((x - k) * (LN2_HIGH + LN2_LOW)) * two_to(k)


def log1p(x: Real) -> Real:
    """log(1 + x): the slope of the logarithm corrects the rounding of 1 + x."""
    u = 1.0 + x
    if u == inf or u <= 0.0:
        return log(u)
    return log(u) - ((u - 1.0) - x) / u


def expm1(x: Real) -> Real:
    """e^x - 1 (Kahan): the error of e^x equals the error of its logarithm."""
    u = exp(x)
    if u == 1.0:
        return x
    y = u - 1.0
    if y == -1.0 or u == inf:
        return y
    return y * (x / log(u))


def log2(x: Real) -> Real:
    """The logarithm to the base 2; exact for powers of two."""
    if x <= 0.0 or x != x or x == inf:
        return log(x)
    return exponent(x) - 1.0 + log(2.0 * mantissa(x)) / (LN2_HIGH + LN2_LOW)


def product(a: Real, b: Real) -> Pair:
    """a b and its rounding error; |a|, |b| below 1e150."""
    p = a * b
    c = 134217729.0 * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = 134217729.0 * b
    b_high = c - (c - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def add(a: Real, b: Real) -> Pair:
    """a + b and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def half_log(s: Real, s_low: Real) -> Pair:
    """s + s^3 / 3 + s^5 / 5 .. = artanh s, |s| up to 0.17: half the logarithm of (1 + s) / (1 - s)."""
    z, z_low = product(s, s)
    z_low = z_low + 2.0 * s * s_low
    c, c_low = product(s, z)
    c_low = c_low + s * z_low + s_low * z
    third, third_low = product(c, 0.33333333333333331483)
    third_low = third_low + c_low * 0.33333333333333331483 + c * 1.85037170770859413132e-17
    tail = 1.0 / 17.0 + z * (1.0 / 19.0 + z * (1.0 / 21.0 + z * (1.0 / 23.0 + z * (1.0 / 25.0 + z / 27.0))))
    tail = 1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0 + z * (1.0 / 15.0 + z * tail))))
    rest = s * z * z * (0.2 + z * tail)
    total, lost = add(s, third)
    return total, lost + s_low + third_low + rest


def log_pair(x: Real) -> Pair:
    """The logarithm of a normal number above 0, with some 65 bits: 2 artanh s of s = (m - 1) / (m + 1)."""
    k, m = exponent(x), mantissa(x)
    if m < ROOT_HALF:
        k, m = k - 1, 2.0 * m
    f = m - 1.0
    u, u_low = add(m, 1.0)
    s = f / u
    p, p_low = product(s, u)
    s_low = (((f - p) - p_low) - s * u_low) / u
    total, low = half_log(s, s_low)
    top, lost = add(k * LN2_HIGH, 2.0 * total)
    return top, lost + (2.0 * low + k * LN2_LOW)


def exp_wide(high: Real, low: Real) -> Pair:
    """exp(high + low) and its rounding error, to some 60 bits, from the logarithm of the rounded result."""
    y = exp_pair(high, low)
    if y < 1e-290 or y == inf or y != y:
        return y, 0.0
    top, rest = log_pair(y)
    off, lost = add(high, -top)
    return y, y * (off + (lost + (low - rest)))


def power(x: Real, y: Real) -> Real:
    """x^y for x from 0 on."""
    if y == 0.0 or x == 1.0:
        return 1.0
    if y == 1.0:
        return x
    if x != x or y != y or x < 0.0:
        return inf - inf
    if x == 0.0 or x == inf:
        return inf if (x == 0.0) == (y < 0.0) else 0.0
    scale = 0.0
    if x < 2.3e-308:
        x, scale = x * two_to(60.0), 60.0
    high, low = log_pair(x)
    if scale > 0.0:
        high = high - scale * (LN2_HIGH + LN2_LOW)
    if high * y > 800.0 or high * y < -800.0:
        return inf if high * y > 0.0 else 0.0
    p, lost = product(high, y)
    return exp_pair(p, lost + low * y)


def exps(x: Reals, out: Reals) -> None:
    """e^x of each of n numbers, (n,)."""
    for i in range(x.shape[0]):
        out[i] = exp(x[i])


def logs(x: Reals, out: Reals) -> None:
    """The natural logarithm of each of n numbers, (n,)."""
    for i in range(x.shape[0]):
        out[i] = log(x[i])


def powers(x: Reals, y: Reals, out: Reals) -> None:
    """x^y of each of n numbers from 0 on, with an exponent each, (n,)."""
    for i in range(x.shape[0]):
        out[i] = power(x[i], y[i])


def one_power(x: Real, y: Real) -> Real:
    """x^y for x from 0 on, for Python."""
    return power(x, y)


def exp2s(x: Reals, out: Reals) -> None:
    """2^x of each of n numbers, (n,)."""
    for i in range(x.shape[0]):
        out[i] = exp2(x[i])


def log2s(x: Reals, out: Reals) -> None:
    """The logarithm to the base 2 of each of n numbers, (n,)."""
    for i in range(x.shape[0]):
        out[i] = log2(x[i])


def log1ps(x: Reals, out: Reals) -> None:
    """log(1 + x) of each of n numbers, (n,)."""
    for i in range(x.shape[0]):
        out[i] = log1p(x[i])


def expm1s(x: Reals, out: Reals) -> None:
    """e^x - 1 of each of n numbers, (n,)."""
    for i in range(x.shape[0]):
        out[i] = expm1(x[i])


def dot(x: Reals, y: Reals) -> Real:
    """The sum of the products of n pairs, (n,) each, in order from the first."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


def products(x: Reals2, y: Reals2, out: Reals2) -> None:
    """Adds the matrix product of x (n, k) and y (k, m) to `out` (n, m); each sum in order of k."""
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            for j in range(y.shape[1]):
                out[i, j] += x[i, k] * y[k, j]
