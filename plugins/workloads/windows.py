"""Windows sliding over an image: stride, dilation and padding in the form of specs, and the size of the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sparsemap.pieces.contracts import Shape

Pair = tuple[int, int]
Sides = tuple[Pair, Pair] | Literal["same", "valid"]
"""Zeros before and after the rows, and before and after the columns."""


def pair(value: Any, least: int = 1) -> Pair:
    """A number for both, or a number for rows and another for columns."""
    both = value if isinstance(value, list | tuple) else (value, value)
    if len(both) != 2 or any(isinstance(item, bool) or not isinstance(item, int) or item < least for item in both):
        raise ValueError(f"expected a whole number from {least} on, or two of them, found {value!r}")
    return (both[0], both[1])


def sides(value: Any) -> Sides:
    """A number for all sides, numbers for rows and columns, pairs of numbers, "same" or "valid"."""
    if value in ("same", "valid"):
        return value
    if isinstance(value, str):
        raise ValueError(f"expected 'same', 'valid' or numbers, found {value!r}")
    rows, columns = value if isinstance(value, list | tuple) and len(value) == 2 else (value, value)
    return (pair(rows, 0), pair(columns, 0))


def one_of(inputs: Sequence[Shape]) -> Shape:
    if len(inputs) != 1:
        raise ValueError(f"expected one input, found {len(inputs)}")
    return inputs[0]


def windows(given: Shape, window: Pair, stride: Pair, dilation: Pair, padding: Sides) -> Pair:
    """Rows and columns of the output for an image (channels, height, width), or for frames of images.

    "same" keeps the size, divided by the stride and rounded up; an incomplete last window is left out."""
    if len(given) not in (3, 4):
        raise ValueError("expected an image: channels x height x width")
    found = []
    for axis in range(2):
        size, step = given[axis - 2], stride[axis]
        if padding == "same":
            found.append(-(-size // step))
            continue
        before, after = (0, 0) if isinstance(padding, str) else padding[axis]
        reach = (window[axis] - 1) * dilation[axis] + 1
        found.append((size + before + after - reach) // step + 1)
    if min(found) < 1:
        raise ValueError(f"a window of {window[0]} x {window[1]} does not fit")
    return (found[0], found[1])
