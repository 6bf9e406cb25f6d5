"""The elementary functions of `numbers.py` for whole arrays, of any shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

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


def powers(x: Array, y: float) -> Array:
    """x^y of x from 0 on."""
    return _of(UNIT.powers, x, y)


def _of(function: Callable[..., None], x: Array, *others: Any) -> Array:
    given = np.ascontiguousarray(x, dtype=np.float64)
    found = np.empty_like(given)
    function(given.reshape(-1), *others, found.reshape(-1))
    return found
