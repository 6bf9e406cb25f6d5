"""Divisors of sizes without small factors."""

from __future__ import annotations

from math import gcd


def _is_prime(number: int) -> bool:
    """Miller and Rabin's test; these bases make the test exact below 3.3 * 10^24 (Sorenson and Webster 2015)."""
    twos = (number - 1 & 1 - number).bit_length() - 1
    odd = number - 1 >> twos
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41):
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def divisor_of(number: int) -> int | None:
    """A divisor by Pollard's rho, in about 2^16 steps for a number below 2^63; None for a prime."""
    if _is_prime(number):
        return None
    for offset in range(1, number):
        slow = fast = 2
        divisor = 1
        while divisor == 1:
            slow = (slow * slow + offset) % number
            fast = (fast * fast + offset) % number
            fast = (fast * fast + offset) % number
            divisor = gcd(abs(slow - fast), number)
        if divisor != number:
            return divisor
    return None
