"""The elementary functions of `numbers.py` for whole arrays, of any shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from . import room

Array: TypeAlias = np.ndarray[Any, Any]
UNIT = room(__package__)


def exps(x: Array) -> Array:
    """e^x."""
    return _of(UNIT.exps, x)


def logs(x: Array) -> Array:
    """Natural logarithms; minus infinity of 0, NaN below."""
    return _of(UNIT.logs, x)


def powers(x: Array | float, y: Array | float) -> Array:
    """x^y for x from 0 on; both are broadcast."""
    found = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)))
    UNIT.powers(*(np.full(found.shape, part, dtype=np.float64).reshape(-1) for part in (x, y)), found.reshape(-1))
    return found


def dot(x: Array, y: Array) -> float:
    """Sum of the products of two arrays (n,), in their order."""
    found: float = UNIT.dot(*(np.ascontiguousarray(part, dtype=np.float64) for part in (x, y)))
    return found


def product(x: Array, y: Array) -> Array:
    """Matrix product of x (n, k) and y (k, m), each sum in order of k."""
    found = np.zeros((len(x), y.shape[1]))
    UNIT.products(*(np.ascontiguousarray(part, dtype=np.float64) for part in (x, y)), found)
    return found


def power(x: float, y: float) -> float:
    """x^y of a single number from 0 on."""
    found: float = UNIT.one_power(x, y)
    return found


def exp2s(x: Array) -> Array:
    """2^x, |x| below 1000; exact for whole numbers."""
    return _of(UNIT.exp2s, x)


def log2s(x: Array) -> Array:
    """Logarithms to the base 2; exact for powers of two."""
    return _of(UNIT.log2s, x)


def log1ps(x: Array) -> Array:
    """log(1 + x)."""
    return _of(UNIT.log1ps, x)


def expm1s(x: Array) -> Array:
    """e^x - 1."""
    return _of(UNIT.expm1s, x)


def _of(function: Callable[..., None], x: Array) -> Array:
    given = np.asarray(x, dtype=np.float64)
    found = np.empty(given.shape)
    function(np.ascontiguousarray(given).reshape(-1), found.reshape(-1))
    return found if given.ndim else float(found)  # type: ignore[return-value]


exp, log, log2, log1p, expm1 = cast(list[Callable[[float], float]], (exps, logs, log2s, log1ps, expm1s))
"""Of single numbers."""
