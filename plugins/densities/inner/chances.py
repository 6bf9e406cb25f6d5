"""Hypergeometric probabilities (sections 5.1 and 5.5): of `total` words, `marked` are nonzero and `taken` are examined.

Rounding errors are carried along, so results are accurate to some units in the last place."""

from __future__ import annotations

from sparsemap.inner.numbers import add, exp, exp_wide, half_log, log1p, log_pair, product
from sparsemap.inner.primitives import whole
from sparsemap.inner.types import Pair, Real, Reals, Whole, Wholes

__all__ = ["none_many", "none_one", "none_real", "none_within", "peak", "real_within", "sampled_peak"]

UNDERFLOW = -800.0
"""e^-800 is 0 in double."""
INVISIBLE = -40.0
"""e^-40, 4e-18, leaves 1 as it is."""
TERMS = 15
"""Terms of the series of `excess`."""


def log_left(a: Real, b: Real, m: Real) -> Pair:
    """log(1 - m/b), a = b - m, to some 60 bits: log(a/b) = -2 artanh(m / (a+b))."""
    u, u_low = add(a, b)
    s = m / u
    if s > 0.17:
        high, low = log_pair(a)
        other, other_low = log_pair(b)
        top, lost = add(high, -other)
        return top, lost + (low - other_low)
    p, p_low = product(s, u)
    half, half_low = half_log(s, (((m - p) - p_low) - s * u_low) / u)
    return -2.0 * half, -2.0 * half_low


def ratio_times(high: Real, low: Real, over: Real, over_low: Real, under: Real, under_low: Real) -> Pair:
    """(high + low) over / under, each with its rounding error."""
    q = over / under
    p, lost = product(q, under)
    q_low = (((over - p) - lost) + over_low - q * under_low) / under
    p, lost = product(high, q)
    return add(p, lost + (high * q_low + low * q))


def excess(b: Real, m: Real) -> Pair:
    """m e(m/b), e(u) = 1 + (1-u) log(1-u) / u = sum u^j / (j (j+1)), without cancellation for small u."""
    if m >= 0.1 * b:
        high, low = log_left(b - m, b, m)
        p, lost = product(b - m, high)
        top, rest = add(m, p)
        return top, rest + (lost + (b - m) * low)
    u, u_low = ratio_times(1.0, 0.0, m, 0.0, b, 0.0)
    tail = 0.0
    for j in range(TERMS, 4, -1):
        tail = tail * u + 1.0 / (j * (j + 1.0))
    top, rest = onwards(tail, 0.0, u, u_low, 0.05, -2.7755575615628915e-18)
    top, rest = onwards(top, rest, u, u_low, 0.08333333333333333, 4.625929269271485e-18)
    top, rest = onwards(top, rest, u, u_low, 0.16666666666666666, 9.25185853854297e-18)
    top, rest = onwards(top, rest, u, u_low, 0.5, 0.0)
    p, lost = product(top, u)
    lost += top * u_low + rest * u
    top, rest = product(p, m)
    return top, rest + lost * m


def onwards(high: Real, low: Real, u: Real, u_low: Real, first: Real, first_low: Real) -> Pair:
    """first + (high + low) u: a step of Horner's scheme, each number with its rounding error."""
    p, lost = product(high, u)
    lost += high * u_low + low * u
    top, rest = add(first, p)
    return add(top, rest + (lost + first_low))


def none_far(left: Real, total: Real, marked: Real, taken: Real) -> Pair:
    """P(0) by the Euler-Maclaurin sum of log((N-M-i)/(N-i)) over i < m; `left` is N-M.

    With a = N-M+1/2 and b = N+1/2 the integral is m (log(1-M/b) + e(m/b) - e(m/a)): no differences of large numbers. The
    next terms are in 1/(a-m): their error is below 1e-19 where a-m >= 256."""
    a, b = left + 0.5, total + 0.5
    high, low = log_left(a, b, marked)
    p, lost = product(taken, high)
    lost += taken * low
    high, low = excess(b, taken)
    other, other_low = excess(a, taken)
    high, rest = add(high, -other)
    lost += rest + (low - other_low)
    top, rest = add(p, high)
    lost += rest
    first, second, third = 0.0, 0.0, 0.0
    for i in range(4):
        inverse = 1.0 / (a - taken if i == 0 else b - taken if i == 1 else a if i == 2 else b)
        inverse = inverse if i == 0 or i == 3 else -inverse
        square = inverse * inverse
        first += inverse
        second += inverse * square
        third += inverse * square * square
    top, rest = add(top, lost + (first / 24.0 - 7.0 * second / 2880.0 + 31.0 * third / 40320.0))
    return exp_wide(top, rest)


def none_near(left: Real, total: Real, count: Whole) -> Pair:
    """The product of `count` factors (N-M-i)/(N-i), from i = 0 on; `left` is N-M, not necessarily whole."""
    high, low = 1.0, 0.0
    for i in range(count):
        high, low = ratio_times(high, low, left - i, 0.0, total - i, 0.0)
    return high, low


def none(total: Whole, marked: Whole, taken: Whole) -> Pair:
    """P(0): the product of (N-M-i)/(N-i) over i < m; m is the smaller of `marked` and `taken`, M the larger."""
    few, many = min(marked, taken), max(marked, taken)
    if few <= 0:
        return 1.0, 0.0
    if few > total - many or few * log1p(-many / (1.0 * total)) < UNDERFLOW:
        return 0.0, 0.0
    if few <= total - many - 256:
        return none_far(1.0 * (total - many), 1.0 * total, 1.0 * many, 1.0 * few)
    return none_near(1.0 * (total - many), 1.0 * total, few)


def none_one(total: Whole, marked: Whole, taken: Whole) -> Real:
    """P(0) of whole numbers up to 2^62."""
    high, low = none(total, marked, taken)
    return high + low


def none_many(total: Wholes, marked: Wholes, taken: Wholes, out: Reals) -> None:
    """(n,) P(0) of n cases."""
    for i in range(out.shape[0]):
        out[i] = none_one(total[i], marked[i], taken[i])


def none_run(total: Whole, marked: Whole, first: Whole, count: Whole, out: Reals, at: Whole) -> None:
    """P(0) of `first`, first + 1 .. taken words, `count` values: a start, then the ratios (N-M-k)/(N-k)."""
    high, low = none(total, marked, first)
    for k in range(first, first + count):
        out[at + k - first] = high + low
        if total - marked <= k:
            high, low = 0.0, 0.0
        else:
            high, low = ratio_times(high, low, 1.0 * (total - marked - k), 0.0, 1.0 * (total - k), 0.0)


def none_within(subs: Wholes, words: Wholes, k: Reals, counts: Wholes, out: Reals) -> None:
    """P0(n'|n,k) of parts of n' `subs` (m,) in tiles of n `words` (m,), for k in `counts` (m,), consecutive as a run."""
    at = 0
    for i in range(subs.shape[0]):
        sub, word, last = subs[i], words[i], at + counts[i] - 1
        inside = sub > 1 and sub < word
        if inside and counts[i] > 1 and k[last] - k[at] == counts[i] - 1:
            none_run(word, sub, whole(k[at]), counts[i], out, at)
        else:
            for j in range(at, at + counts[i]):
                if inside:
                    out[j] = none_one(word, sub, whole(k[j]))
                elif sub >= word:
                    out[j] = 0.0 if k[j] > 0.0 else 1.0
                else:
                    out[j] = (word - k[j]) / word
        at = last + 1


def real_within(subs: Wholes, words: Wholes, k: Reals, out: Reals) -> None:
    """P0(n'|n,k) (m,) of real k (m,): (n-n')! (n-k)! / (n! (n-n'-k)!), and (n-k)/n for n' = 1."""
    for i in range(out.shape[0]):
        word = 1.0 * words[i]
        out[i] = (word - k[i]) / word if subs[i] == 1 else none_of_real(word, min(1.0 * subs[i], word), k[i])


def none_of_real(total: Real, marked: Real, taken: Real) -> Real:
    """P(0) with real `taken`: gamma functions for factorials; results below e^-40 may be 0."""
    few, many = min(marked, taken), max(marked, taken)
    left = total - few - many
    if not few > 0.0:
        return 1.0
    if not (left >= 0.0 and few * log1p(-many / total) > INVISIBLE):
        return 0.0
    if left >= 64.0:
        high, low = none_far(total - many, total, many, few)
    else:
        high, low = none_near(total - taken, total, whole(marked))
    return high + low


def none_real(total: Reals, marked: Reals, taken: Reals, out: Reals) -> None:
    """(n,) P(0) of n cases with real `taken`."""
    for i in range(out.shape[0]):
        out[i] = none_of_real(total[i], marked[i], taken[i])


def times(a: Whole, b: Whole) -> Pair:
    """Product of whole numbers up to 2^62."""
    x, y = 1.0 * a, 1.0 * b
    p, lost = product(x, y)
    return add(p, lost + (x * (b - whole(y)) + y * (a - whole(x))))


def peak(total: Whole, marked: Whole, taken: Whole, k: Wholes, mode: Whole, low: Reals, p: Reals) -> None:
    """P (n,) of consecutive k (n,), normalised, by ratios P(k+1)/P(k) = (r-k)(n-k) / ((k+1)(N-r-n+k+1)) from `mode`."""
    top, rest, none = 1.0, 0.0, total - marked - taken + 1
    p[mode] = 1.0
    low[mode] = 0.0
    for i in range(mode, k.shape[0] - 1):
        up, up_low = times(marked - k[i], taken - k[i])
        down, down_low = times(k[i] + 1, k[i] + none)
        top, rest = ratio_times(top, rest, up, up_low, down, down_low)
        p[i + 1] = top
        low[i + 1] = rest
    top, rest = 1.0, 0.0
    for i in range(mode - 1, -1, -1):
        up, up_low = times(marked - k[i], taken - k[i])
        down, down_low = times(k[i] + 1, k[i] + none)
        top, rest = ratio_times(top, rest, down, down_low, up, up_low)
        p[i] = top
        low[i] = rest
    share(p, low)


def sampled_peak(
    total: Whole, marked: Whole, taken: Whole, k: Wholes, mode: Whole, step: Whole, slope: Reals, p: Reals
) -> None:
    """As `peak`, for k at equal, odd steps s: log P(k+s) - log P(k) = s f(mid) + (s^3 - s)/24 f''(mid), f(k) =
    log(P(k+1) / P(k)). Scratch: `slope` (n,)."""
    last = k.shape[0] - 1
    for i in range(last):
        near = k[i] + (step - 1) // 2
        # up - down, which are alike: (r+1)(n+1) - (k+1)(N+2)
        high, high_low = times(marked + 1, taken + 1)
        other, other_low = times(near + 1, total + 2)
        down = (near + 1.0) * (near + (total - marked - taken + 1))
        slope[i] = step * log1p(((high - other) + (high_low - other_low)) / down)
    bend = (1.0 - 1.0 / (1.0 * step * step)) / 24.0
    for i in range(last):
        curve = slope[i - 1] - 2.0 * slope[i] + slope[i + 1] if i > 0 and i < last - 1 else 0.0
        p[i] = slope[i] + bend * curve
    for i in range(last):
        slope[i] = p[i]
    log = 0.0
    for i in range(mode - 1, -1, -1):
        log -= slope[i]
        p[i] = exp(log)
    p[mode] = 1.0
    log = 0.0
    for i in range(mode, last):
        log += slope[i]
        p[i + 1] = exp(log)
    for i in range(last + 1):
        slope[i] = 0.0
    share(p, slope)


def share(p: Reals, low: Reals) -> None:
    """Divide p + low (n,) by the sum, in place."""
    total, rest = 0.0, 0.0
    for i in range(p.shape[0]):
        total, lost = add(total, p[i])
        rest += lost + low[i]
    total, rest = add(total, rest)
    for i in range(p.shape[0]):
        high, lost = ratio_times(1.0, 0.0, p[i], low[i], total, rest)
        p[i] = high + lost
