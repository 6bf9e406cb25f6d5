"""Repetition along axes of a tensor, as of the keys of grouped queries expanded to all heads.

An axis is a list of factors, outer to inner, each marked as varying or repeating. Expand creates repeating factors;
reshaping and transposing moves factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .model_file import OnnxModel
from .onnx_package import attributes_of

Factor = tuple[int, bool]
"""Size of a factor, and whether the words differ along it."""
Axis = tuple[Factor, ...]

ALIKE = frozenset(("Identity", "Cast", "Dropout", "Relu", "Neg", "Sqrt", "Exp", "Tanh", "Sigmoid", "QuantizeLinear"))
"""Operators with the same effect on every word of the first input."""
SCALING = frozenset(("Mul", "Div", "Add", "Sub", "DequantizeLinear"))
"""Operators with the same effect on every word, as long as the other inputs are single words."""


def plain(shape: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of a tensor without known repetition."""
    return tuple(((size, True),) for size in shape)


def repeats(axes: Sequence[Axis]) -> bool:
    return any(not varies and size > 1 for axis in axes for size, varies in axis)


def after(node: Any, model: OnnxModel, known: Mapping[str, tuple[Axis, ...]]) -> tuple[Axis, ...] | None:
    """The axes of a node's output; None without known repetition."""
    name, shape = (node.input[0] if node.input else ""), model.shapes.get(node.output[0])
    given = model.shapes.get(name)
    if shape is None or given is None or 0 in given:
        return None
    axes, kind = known.get(name) or plain(given), node.op_type
    if kind == "Expand":
        missing = len(shape) - len(given)
        old = (*plain([1] * missing), *axes)
        before = (*[1] * missing, *given)
        return tuple(((new, False),) if size == 1 else axis for axis, size, new in zip(old, before, shape, strict=True))
    if kind == "Tile":
        return tuple(((new // old, False), *axis) for axis, old, new in zip(axes, given, shape, strict=True))
    if name not in known:
        return None
    if kind in ("Reshape", "Flatten", "Squeeze", "Unsqueeze"):
        return reshaped(axes, shape)
    if kind == "Transpose":
        order = attributes_of(node).get("perm") or range(len(given))[::-1]
        return tuple(axes[place] for place in order)
    others = [model.shapes.get(text) for text in node.input[1:] if text]
    if kind in ALIKE or (kind in SCALING and all(other is not None and set(other) <= {1} for other in others)):
        return axes if shape == given else None
    return None


def reshaped(axes: Sequence[Axis], shape: Sequence[int]) -> tuple[Axis, ...] | None:
    """The axes with new sizes and the same order of words; None if a factor would be split across two axes."""
    factors = [factor for axis in axes for factor in axis if factor[0] != 1]
    found: list[Axis] = []
    for size in reversed(shape):
        axis: list[Factor] = []
        while size > 1:
            if not factors:
                return None
            whole, varies = factors.pop()
            if size % whole and whole % size:
                return None
            part = min(size, whole)
            axis.insert(0, (part, varies))
            size //= part
            if whole > part:
                factors.append((whole // part, varies))
        found.insert(0, tuple(axis) or ((1, True),))
    return tuple(found) if not factors else None


def common(first: Axis, second: Axis) -> list[tuple[int, bool, bool]]:
    """Common factors of two axes, inner factors last: size, and whether the first and the second tensor vary along the
    factor.

    An axis of one word broadcasts."""
    sizes = [math.prod(size for size, _ in axis) for axis in (first, second)]
    if 1 in sizes:
        longer, swap = (second, True) if sizes[0] == 1 else (first, False)
        return [(size, not swap and varies, swap and varies) for size, varies in longer if size > 1]
    left, right = ([factor for factor in axis if factor[0] > 1] for axis in (first, second))
    found: list[tuple[int, bool, bool]] = []
    while left and right:
        (one, here), (two, there) = left.pop(), right.pop()
        if one % two and two % one:
            return [(sizes[0], True, True)]
        part = min(one, two)
        found.insert(0, (part, here, there))
        left += [(one // part, here)] if one > part else []
        right += [(two // part, there)] if two > part else []
    return found
