"""Types of the inner loops by their names in annotations. The numeral in a name counts the axes of a contiguous array."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = float
Whole: TypeAlias = int
Pair: TypeAlias = tuple[float, float]
Reals: TypeAlias = NDArray[np.float64]
Reals2: TypeAlias = NDArray[np.float64]
Reals3: TypeAlias = NDArray[np.float64]
Floats2: TypeAlias = NDArray[np.float32]
Wholes: TypeAlias = NDArray[np.int64]
Wholes2: TypeAlias = NDArray[np.int64]
Wholes3: TypeAlias = NDArray[np.int64]
Small2: TypeAlias = NDArray[np.int8]
Small3: TypeAlias = NDArray[np.int8]
Flags: TypeAlias = NDArray[np.uint8]
Flags2: TypeAlias = NDArray[np.uint8]

COMPILED = {
    "Real": "cython.double",
    "Whole": "cython.longlong",
    "Pair": "Pair",
    "Reals": "cython.double[::1]",
    "Reals2": "cython.double[:, ::1]",
    "Reals3": "cython.double[:, :, ::1]",
    "Floats2": "cython.float[:, ::1]",
    "Wholes": "cython.longlong[::1]",
    "Wholes2": "cython.longlong[:, ::1]",
    "Wholes3": "cython.longlong[:, :, ::1]",
    "Small2": "cython.schar[:, ::1]",
    "Small3": "cython.schar[:, :, ::1]",
    "Flags": "cython.uchar[::1]",
    "Flags2": "cython.uchar[:, ::1]",
    "None": "cython.void",
}
"""Cython's type for each."""
