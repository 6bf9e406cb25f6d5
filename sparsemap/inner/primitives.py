"""Machine primitives of the inner loops. All are exact, so CPython and the compiler agree; `C` has the compiled
versions."""

from __future__ import annotations

import math
import struct
from math import inf, sqrt

from .types import Real, Whole

__all__ = ["ceil", "exponent", "floor", "hashed", "inf", "mantissa", "mixed", "sqrt", "two_to", "whole", "wrapped"]

RETURNS = {
    **dict.fromkeys(["ceil", "floor", "mantissa", "sqrt", "two_to"], "Real"),
    **dict.fromkeys(["exponent", "hashed", "mixed", "whole", "wrapped"], "Whole"),
}
"""Return type of each primitive."""


def floor(x: Real) -> Real:
    """The largest whole number up to x."""
    return math.copysign(math.floor(x), x) if x - x == 0.0 else x


def ceil(x: Real) -> Real:
    """The smallest whole number from x on."""
    return math.copysign(math.ceil(x), x) if x - x == 0.0 else x


def whole(x: Real) -> Whole:
    """x without its fraction, |x| below 2^63."""
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


def wrapped(a: Whole, b: Whole, c: Whole) -> Whole:
    """a + b c modulo 2^64, from -2^63 on."""
    return (int(a) + int(b) * int(c) + (1 << 63)) % (1 << 64) - (1 << 63)


def hashed(key: Whole, bits: Whole) -> Whole:
    """A hash below 2^bits: the first bits of a key times 2^64 over the golden ratio (Knuth, volume 3, 6.4)."""
    return int(key) * 0x9E3779B97F4A7C15 % (1 << 64) >> (64 - bits)


def mixed(key: Whole, x: Real) -> Whole:
    """A key from another key and all bits of a number."""
    bits = int.from_bytes(struct.pack("<d", x), "little")
    found = ((int(key) ^ bits) & ((1 << 64) - 1)) * 0x9E3779B97F4A7C15 % (1 << 64)
    found ^= found >> 32
    return (found + (1 << 63)) % (1 << 64) - (1 << 63)


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
    static inline long long exponent_of(double x) {
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        int k = (int)(bits >> 52 & 2047);
        if (k == 0 || k == 2047) frexp(x, &k);
        else k -= 1022;
        return k;
    }
    static inline long long wrapped_of(long long a, long long b, long long c) {
        return (long long)((uint64_t)a + (uint64_t)b * (uint64_t)c);
    }
    static inline long long hashed_of(long long key, long long bits) {
        return (long long)((uint64_t)key * 0x9E3779B97F4A7C15u >> (64 - bits));
    }
    static inline long long mixed_of(long long key, double x) {
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        bits = ((uint64_t)key ^ bits) * 0x9E3779B97F4A7C15u;
        return (long long)(bits ^ bits >> 32);
    }
    static inline double mantissa_of(double x) {
        uint64_t bits;
        int k;
        memcpy(&bits, &x, sizeof bits);
        k = (int)(bits >> 52 & 2047);
        if (k == 0 || k == 2047) return frexp(x, &k);
        bits = (bits & ~((uint64_t)2047 << 52)) | (uint64_t)1022 << 52;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    '''
    double inf "INFINITY"
    long long whole "whole_of"(double x) noexcept nogil
    long long wrapped "wrapped_of"(long long a, long long b, long long c) noexcept nogil
    long long hashed "hashed_of"(long long key, long long bits) noexcept nogil
    long long mixed "mixed_of"(long long key, double x) noexcept nogil
    double two_to "two_to_of"(double k) noexcept nogil
    long long exponent "exponent_of"(double x) noexcept nogil
    double mantissa "mantissa_of"(double x) noexcept nogil
"""
