"""MACs and weight words of a node, from the shapes of its tensors alone.

The module shares no code with `products`. A node with different counts in the two is refused."""

from __future__ import annotations

from math import prod
from typing import Any

from .model_file import OnnxModel
from .onnx_package import attributes_of

WEIGHTS = {"QLinearConv": (3,), "QLinearMatMul": (0, 3), "LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2)}
"""Positions of inputs with possible weights, if not the first two."""


def macs(node: Any, model: OnnxModel) -> int | None:
    """Multiplications of a node: words of the output times the products summed in each. None if unknown."""
    kind = node.op_type
    shapes = [model.shapes.get(name, ()) for name in node.input]
    out = next((prod(model.shapes[name]) for name in node.output if name in model.shapes), None)
    places = (0, 3) if kind.startswith("QLinear") else (0, 1)
    if out is None or any(place >= len(shapes) or not shapes[place] for place in places):
        return None
    if kind in ("Conv", "ConvInteger", "QLinearConv"):
        return out * prod(shapes[places[1]][1:])
    if kind in ("MatMul", "MatMulInteger", "QLinearMatMul"):
        return out * shapes[0][-1]
    if kind == "Gemm":
        return out * shapes[0][0 if attributes_of(node).get("transA") else 1]
    if kind == "Einsum":
        return _einsum_macs(attributes_of(node)["equation"].decode().replace(" ", ""), shapes)
    if kind == "ConvTranspose":
        return prod(shapes[0]) * prod(shapes[1][1:])
    if kind in ("LSTM", "GRU", "RNN"):
        return shapes[0][0] * shapes[0][1] * (prod(shapes[1]) + prod(shapes[2]))
    if kind == "Attention" and len(shapes[1]) > 2:
        past = shapes[4][2] if len(shapes) > 4 and shapes[4] else 0
        queries = prod(shapes[0]) * (shapes[1][-2] + past)  # each word of Q meets every key
        return queries + out * (shapes[1][-2] + past)
    return None


def _einsum_macs(equation: str, shapes: list[tuple[int, ...]]) -> int:
    """Product of the sizes of all indices."""
    sizes: dict[str, int] = {}
    for term, shape in zip(equation.partition("->")[0].split(","), shapes, strict=True):
        free = len(shape) - len(term.replace("...", ""))
        spread = term.replace("...", "".join(chr(0x3B1 - free + place) for place in range(free)))
        for label, size in zip(spread, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    return prod(sizes.values())


def weights(node: Any, model: OnnxModel) -> int:
    """Words of the constant factors of a node."""
    places = WEIGHTS.get(node.op_type, (0, 1))
    names = [node.input[place] for place in places if place < len(node.input)]
    return sum(prod(model.shapes[name]) for name in names if name in model.constants)
