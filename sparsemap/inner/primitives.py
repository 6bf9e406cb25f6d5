"""What the inner loops take from the machine. All are exact, so that CPython and the compiler agree; `C` has them compiled."""

from __future__ import annotations

import math
from math import inf, sqrt

from .types import Real, Whole

__all__ = ["ceil", "exponent", "floor", "inf", "mantissa", "sqrt", "two_to", "whole"]

RETURNS = dict.fromkeys(["ceil", "floor", "mantissa", "sqrt", "two_to"], "Real") | {
    "exponent": "Whole",
    "whole": "Whole",
}
"""What each gives."""


def floor(x: Real) -> Real:
    """The largest whole number up to x."""
    return float(math.floor(x)) if x - x == 0.0 else x


def ceil(x: Real) -> Real:
    """The smallest whole number from x on."""
    return float(math.ceil(x)) if x - x == 0.0 else x


def whole(x: Real) -> Whole:
    """Without what follows the point, |x| below 2^63."""
    return int(x)


def two_to(k: Real) -> Real:
    """2^k of a whole number k from -1022 to 1023."""
    return math.ldexp(1.0, int(k))


def exponent(x: Real) -> Whole:
    """k with x = m 2^k, 0.5 <= |m| < 1."""
    return math.frexp(x)[1]


def mantissa(x: Real) -> Real:
    """m with x = m 2^k, 0.5 <= |m| < 1."""
    return math.frexp(x)[0]


C = """
cimport cython
from libc.math cimport ceil, floor, sqrt
ctypedef (double, double) Pair
cdef extern from *:
    '''
    #include <math.h>
    #include <stdint.h>
    #include <string.h>
    /* Functions called from Python are compiled for two kinds of processor: no fused operations, the same numbers. */
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
    #define WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define WIDE
    #endif
    static inline long long whole_of(double x) { return (long long)x; }
    static inline double two_to_of(double k) { /* what the sum has in its last bits is the exponent of the result */
        double sum = k + 4503599627371519.0, found; /* 2^52 + 1023 */
        uint64_t bits;
        memcpy(&bits, &sum, sizeof bits);
        bits <<= 52;
        memcpy(&found, &bits, sizeof found);
        return found;
    }
    static inline long long exponent_of(double x) { int k; frexp(x, &k); return k; }
    static inline double mantissa_of(double x) { int k; return frexp(x, &k); }
    '''
    double inf "INFINITY"
    long long whole "whole_of"(double x) noexcept nogil
    double two_to "two_to_of"(double k) noexcept nogil
    long long exponent "exponent_of"(double x) noexcept nogil
    double mantissa "mantissa_of"(double x) noexcept nogil
"""
