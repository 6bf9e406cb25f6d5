"""Word bits of a model's tensors: as a layer reads them, and as it hands them on.

Words of at most 8 bits and sums of 32-bit whole numbers keep their bits; other words have the hardware's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .layers import WORKLOADS, ImportedLayer
from .onnx_package import onnx_of, widths
from .tracing import Tracing, copies

MOVING = (
    *("Identity", "Dropout", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice"),
    *("MaxPool", "DequantizeLinear"),
)
"""Operators that keep words unchanged; dequantised words need no more bits than their whole numbers."""
NARROW = 8


def bits_read(name: str, types: Mapping[str, int], makers: Mapping[str, Any]) -> tuple[int | None, float]:
    """Word bits of a tensor; for a dequantised tensor, bits of its whole numbers, and of the scale of each block of words,
    by word. `makers` has the node of each tensor."""
    scale: float = 0
    while (node := makers.get(name)) is not None and (node.op_type in MOVING or copies(node)):
        name = node.input[0]
        if node.op_type == "DequantizeLinear":
            block = next((a.i for a in node.attribute if a.name == "block_size"), 0)
            scale = (widths().get(types.get(node.input[1], 0)) or 32) / block if block else 0
            break
    return widths().get(types.get(name, 0)), scale


def with_outputs(walk: Tracing) -> list[ImportedLayer]:
    """The layers after a walk, with the bits of Z where a layer hands on words of other bits than the hardware's."""
    graph, readers = walk.model.proto.graph, dict[str, list[Any]]()
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for output in graph.output:
        readers.setdefault(output.name, []).append(None)
    found = []
    for layer in walk.layers:
        name = next(filter(None, layer.node.output), "") if layer.table["type"] in WORKLOADS else ""
        bits = _bits_handed_on(name, walk, readers) if name and walk.layer_of(name) == layer.name else 0
        more = {"word_bits": {**layer.table.get("word_bits", {}), "Z": bits}} if bits else {}
        found.append(attrs.evolve(layer, table={**layer.table, **more}))
    return found


def _bits_handed_on(first: str, walk: Tracing, readers: Mapping[str, list[Any]]) -> int:
    """Bits of a layer's output: its own, or those of the QuantizeLinear nodes before all its readers; 0 for the words of
    the hardware. A reader None is the user of the model."""
    types, left, seen, most = walk.model.types, [first], {first}, 0
    own = widths().get(kind := types.get(first, 0), 0)
    while left and own > NARROW >= most:
        for node in readers.get(left.pop(), ()):
            out = node.output[0] if node else ""
            if node and node.op_type == "QuantizeLinear":
                most = max(most, widths().get(types.get(out, 0), 32))
            elif not node or (walk.roots.get(out) != walk.roots[first] and node.op_type not in ("Shape", "Size")):
                most = 32
            elif out not in seen and out in walk.roots:
                seen.add(out)
                left.append(out)
    if own > NARROW and 0 < most <= NARROW:
        return most
    return own if own <= NARROW or kind == onnx_of().TensorProto.INT32 else 0
