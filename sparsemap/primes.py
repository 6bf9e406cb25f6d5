"""Prime factors of any 64-bit size within milliseconds, so no size in a spec can stall the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

TRIED = 1000
"""Limit of trial division; covers the prime factors of layer sizes."""


@cache
def prime_factors(size: int) -> tuple[int, ...]:
    """The prime factors of a size in ascending order: 48 -> (2, 2, 2, 2, 3); 1 has none."""
    factors, divisor = [], 2
    while divisor * divisor <= size and divisor < TRIED:
        while size % divisor == 0:
            factors.append(divisor)
            size //= divisor
        divisor += 1 if divisor == 2 else 2
    rest = [size] if size > 1 else []
    while rest:
        number, part = rest.pop(), None
        if number >= TRIED**2:
            from .large_primes import divisor_of

            part = divisor_of(number)
        if part is None:
            factors.append(number)
        else:
            rest += [part, number // part]
    return tuple(sorted(factors))


def is_prime(size: int) -> bool:
    return len(prime_factors(size)) == 1


def divisors(size: int) -> list[int]:
    """All divisors, ascending: 12 -> [1, 2, 3, 4, 6, 12]."""
    found = {1}
    for prime in prime_factors(size):
        found |= {divisor * prime for divisor in found}
    return sorted(found)


class Divisors(NamedTuple):
    """Divisors of a size as arrays: all n divisors (n,) float64, ascending; the exponent of each of the P primes in
    each divisor (P, n); and for each prime, ascending, the list of its powers from 0 on."""

    numbers: Any
    exponents: Any
    powers: list[Any]

    @classmethod
    @cache
    def of(cls, size: int) -> Divisors:
        numbers, exponents, powers = np.ones(1), np.zeros((0, 1), dtype=np.int64), []
        for prime, count in Counter(prime_factors(size)).items():
            powers.append(np.cumprod([1.0, *[float(prime)] * count]))
            exponents = np.vstack([exponents.repeat(count + 1, axis=1), np.tile(np.arange(count + 1), len(numbers))])
            numbers = np.outer(numbers, powers[-1]).ravel()
        order = numbers.argsort()
        return cls(numbers[order], exponents[:, order], powers)

    def within(self, numbers: Any) -> Any:
        """(P, ...) exponent of each prime in `numbers`, divisors of the size in an array of any shape."""
        return self.exponents[:, np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)]


def largest_product(limits: Iterable[int], sizes: Iterable[int]) -> float:
    """Largest product of one divisor per limit, each at most its limit; the product divides the product of the sizes."""
    total, limits = prod(sizes), list(limits)
    options = divisors(total)
    if len(options) > 3000:  # many different primes: settle for the limits themselves
        return float(min(prod(limits), total))
    reached = {1}
    for limit in limits:
        usable = [d for d in options if d <= limit]
        reached = {r * d for r in reached for d in usable if total % (r * d) == 0}
    return float(max(reached))
