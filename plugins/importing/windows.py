"""Windows of ONNX's convolutions and pools as the keys of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def window_of(
    attributes: Mapping[str, Any], window: Sequence[int], given: Sequence[int], found: Sequence[int]
) -> dict[str, Any]:
    """Window, stride and padding of a layer; the padding behind is what the size of the output needs.

    `window` has the taps, `given` and `found` the pixels of input and output along one or two axes.
    """
    count = len(window)
    strides = attributes.get("strides") or [1] * count
    dilations = attributes.get("dilations") or [1] * count
    pads = attributes.get("pads") or [0] * (2 * count)
    mode = attributes.get("auto_pad", b"NOTSET").decode()
    sides = []
    for axis in range(count):
        reach = (window[axis] - 1) * dilations[axis] + 1
        needed = (found[axis] - 1) * strides[axis] + reach - given[axis]
        before, after = pads[axis], pads[count + axis]
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            before, after = (max(needed, 0) + (mode == "SAME_LOWER")) // 2, 0
        sides.append([before, max(after, needed - before)])
    if count == 1:
        sides, strides, window = [[0, 0], *sides], [1, *strides], [1, *window]
    r, s = (int(size) for size in window)
    stride = {"stride": both(strides)} if both(strides) else {}
    same = sides[0][0] if all(side == [sides[0][0]] * 2 for side in sides) else sides
    return {"r": r, "s": s, **stride, **({"padding": same} if same else {})}


def both(values: Sequence[int] | None) -> int | list[int]:
    """One number for rows and columns if they are alike; 0 for ones."""
    rows, columns = (1, 1, *(values or ()))[-2:]
    return [rows, columns] if rows != columns else rows if rows > 1 else 0
