"""Sizes that factorise well: the nearest one above a size."""

from __future__ import annotations

from functools import cache

from sparsemap.problem.primes import is_prime, prime_factors

__all__ = ["is_prime", "next_composite", "next_smooth", "prime_factors"]


def next_composite(size: int, threshold: int) -> int:
    """The paper's padding (Section IV-B): a prime above the threshold becomes the next composite number."""
    if size <= threshold or not is_prime(size):
        return size
    return size + 1 if size > 2 else 4


def next_smooth(size: int, largest: int) -> int:
    """The smallest number from `size` on that has no prime factor above `largest`."""
    return _next_smooth(size, tuple(p for p in range(2, largest + 1) if is_prime(p)))


@cache
def _next_smooth(size: int, primes: tuple[int, ...]) -> int:
    """The same for a set of primes: the largest of them divides the answer once more, or not at all."""
    if size <= 1:
        return 1
    if len(primes) == 1:
        power = 1
        while power < size:
            power *= primes[0]
        return power
    return min(_next_smooth(size, primes[:-1]), primes[-1] * _next_smooth(-(-size // primes[-1]), primes))
