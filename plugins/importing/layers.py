"""A layer on its way from a file to a network, and how its weights lie: in the file, in Q, and as patterns see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from sparsemap.pieces.contracts.base import Array

WORKLOADS = ("conv2d", "depthwise", "linear", "matmul")


@attrs.frozen(kw_only=True)
class Layer:
    """A layer of the network, before it has densities."""

    table: dict[str, Any]
    """As a network has it."""
    operands: Mapping[str, str] = attrs.field(factory=dict)
    """The ONNX tensors of P and Q that are not constant."""
    rectified: tuple[str, ...] = ()
    """Those of P and Q that a ReLU has made."""
    weights: str = ""
    """The ONNX tensor of Q, if it is constant."""
    turned: bool = False
    """Whether the weights are outputs x inputs where Q is inputs x outputs."""

    @property
    def name(self) -> str:
        return self.table["name"]

    def tensor(self, weights: Array) -> Array:
        """The weights with the ranks of Q."""
        table = self.table
        if table["type"] == "linear":
            return weights.T if self.turned else weights
        if table["type"] == "matmul":
            return weights.reshape(-1, *weights.shape[-2:]) if table.get("h", 1) > 1 else weights
        window = (table.get("r", 1), table.get("s", 1))
        if table["type"] == "depthwise":
            return weights.reshape(table["c"], *window)
        groups = table.get("groups", 1)
        grouped = (groups,) if groups > 1 else ()
        return weights.reshape(*grouped, table["k"] // groups, table["c"] // groups, *window)

    def view(self, tensor: Array) -> Array:
        """Q as outputs x reduced inputs x taps."""
        kind = self.table["type"]
        if kind in ("linear", "matmul"):
            return tensor.reshape(-1, *tensor.shape[-2:]).swapaxes(-1, -2).reshape(-1, tensor.shape[-2], 1)
        taps = tensor.shape[-2] * tensor.shape[-1]
        inputs = 1 if kind == "depthwise" else tensor.shape[-3]
        return tensor.reshape(-1, inputs, taps)

    def block(self, block: tuple[int, int, int], tensor: Array) -> tuple[int, ...] | None:
        """A block of the view in the order of the ranks of Q; None where it would reach over two groups."""
        rows, columns, taps = block
        kind, shape = self.table["type"], tensor.shape
        if kind in ("linear", "matmul"):
            return None if tensor.ndim > 2 and shape[-1] % rows else (columns, rows)
        window = shape[-2:] if taps > 1 else (1, 1)
        if kind == "depthwise":
            return (rows, *window)
        return None if tensor.ndim > 4 and shape[1] % rows else (rows, columns, *window)
