"""Distributions of whole numbers: sums of independent values, exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .inner import functions

Atoms = tuple[Array, Array]
"""Values (n,) int64 and probabilities (n,)."""


def added(first: Atoms, second: Atoms) -> Atoms:
    """Distribution of the sum of two independent values."""
    if len(first[0]) == 1 or len(second[0]) == 1:
        return first[0] + second[0], first[1] * second[1]
    return merged(np.add.outer(first[0], second[0]).ravel(), np.multiply.outer(first[1], second[1]).ravel())


NEVER: float = functions.NEVER
"""A probability counted as zero."""


def merged(x: Array, p: Array) -> Atoms:
    dense = np.bincount(x, p)
    found = np.flatnonzero(dense > NEVER)
    return found, dense[found]


def repeated(value: Any, count: int, joined: Callable[[Any, Any], Any], none: Any) -> Any:
    """`count` copies of a value, joined by squaring; `none` is the result for zero copies."""
    found = none
    while count:
        if count & 1:
            found = joined(found, value)
        count >>= 1
        value = joined(value, value) if count else value
    return found
