"""A layer between file and network: its window, and weight layouts of the file, of Q and of patterns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap.pieces.contracts.base import Array

WORKLOADS = ("conv2d", "conv3d", "depthwise", "linear", "matmul")

SAMPLES = {"conv2d": "batch", "conv3d": "batch", "depthwise": "batch", "linear": "m", "matmul": "h"}
"""By type of layer, the key multiplied by the samples of a batch."""


@attrs.frozen(kw_only=True)
class ImportedLayer:
    """A layer of the network, before it has densities."""

    table: dict[str, Any]
    """Table of the layer in a network file."""
    node: Any = None
    """ONNX node of the layer; a node may have several layers."""
    inputs: tuple[str, ...] = ()
    reads: tuple[tuple[int, ...], ...] = ()
    """Shapes of the inputs in the model; empty for an input without a tensor there."""
    turned: tuple[int, ...] = ()
    """Positions of inputs with words in an order other than the producer's."""
    made: tuple[int, ...] = ()
    """Output shape in the model, for an operation with an explicit shape."""
    operands: Mapping[str, str] = attrs.field(factory=dict)
    """Non-constant ONNX tensors by operand, P and Q."""
    rectified: tuple[str, ...] = ()
    """Operands made by a ReLU."""
    weights: str = ""
    """ONNX tensor of Q, if constant."""
    zeros: Mapping[str, str] = attrs.field(factory=dict)
    """ONNX tensor of the zero point by operand, P and Q."""
    axes: tuple[tuple[str, int], ...] = ()
    """Axes of a product's weights in the file: role h, k or n, and size."""
    widths: tuple[int | None, ...] = ()
    """Word bits of P and Q in the model, where known."""

    @property
    def name(self) -> str:
        return self.table["name"]

    def divides(self, batch: int) -> bool:
        """Whether the layer does the same work for each of `batch` samples."""
        key = SAMPLES.get(self.table["type"], "")
        return not self.table.get(key, batch) % batch if key != "batch" else self.table[key] == batch

    def per_sample(self, batch: int) -> dict[str, Any]:
        """The table with sizes per sample, for a network of `batch` samples."""
        table = dict(self.table)
        key = SAMPLES.get(table["type"], "")
        if key == "batch":
            return table if table[key] != batch else {name: size for name, size in table.items() if name != key}
        if key and not self.divides(batch):
            return {**table, "batch": 1}
        size = table.pop(key, 1) // batch if key else 1
        return {**table, key: size} if size > 1 else table

    def tensor(self, weights: Array) -> Array:
        """The weights with the ranks of Q."""
        table = self.table
        if table["type"] == "linear":
            sizes = [size for _, size in self.axes]
            order = sorted(range(len(sizes)), key=lambda axis: "hkn".index(self.axes[axis][0]))
            words = [math.prod(size for role, size in self.axes if role == name) for name in "hkn"]
            return weights.reshape(sizes).transpose(order).reshape(words if words[0] > 1 else words[1:])
        window = self.window
        if table["type"] == "depthwise":
            return weights.reshape(table["c"], *window)
        groups = table.get("groups", 1)
        grouped = (groups,) if groups > 1 else ()
        return weights.reshape(*grouped, table["k"] // groups, table["c"] // groups, *window)

    @property
    def window(self) -> tuple[int, ...]:
        """Taps of a convolution."""
        frames = (self.table["t"],) if "t" in self.table else ()
        return (*frames, self.table.get("r", 1), self.table.get("s", 1))

    def torch(self, tensor: Array) -> Array | None:
        """Q in the order of PyTorch's weights; None for grouped layers."""
        kind = self.table["type"]
        if self.table.get("groups", 1) > 1 or (kind == "linear" and tensor.ndim > 2):
            return None
        return tensor.T if kind == "linear" else tensor[:, None] if kind == "depthwise" else tensor

    def view(self, tensor: Array) -> Array:
        """Q as outputs x reduced inputs x taps."""
        kind = self.table["type"]
        if kind == "linear":
            return tensor.reshape(-1, *tensor.shape[-2:]).swapaxes(-1, -2).reshape(-1, tensor.shape[-2], 1)
        taps = math.prod(self.window)
        inputs = 1 if kind == "depthwise" else tensor.shape[-len(self.window) - 1]
        return tensor.reshape(-1, inputs, taps)

    def block(self, block: tuple[int, int, int], tensor: Array) -> tuple[int, ...] | None:
        """A block of the view in the order of the ranks of Q; None if the block would span two groups."""
        rows, columns, taps = block
        kind, shape = self.table["type"], tensor.shape
        if kind == "linear":
            return None if tensor.ndim > 2 and shape[-1] % rows else (columns, rows)
        window = self.window if taps > 1 else (1,) * len(self.window)
        if kind == "depthwise":
            return (rows, *window)
        grouped = tensor.ndim > 2 + len(window)
        return None if grouped and shape[1] % rows else (rows, columns, *window)


def window_of(
    attributes: Mapping[str, Any], window: Sequence[int], given: Sequence[int], found: Sequence[int]
) -> dict[str, Any]:
    """Window, stride and padding of a layer; the padding behind follows from the size of the output.

    `window` has the taps, `given` and `found` the pixels of input and output along one or two axes."""
    count = len(window)
    strides, dilations = (attributes.get(key) or [1] * count for key in ("strides", "dilations"))
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


def of_axes(attributes: Mapping[str, Any], axes: slice, count: int) -> dict[str, Any]:
    """The attributes of a window along some of its axes."""
    found = {key: attributes[key][axes] for key in ("strides", "dilations") if attributes.get(key)}
    if pads := attributes.get("pads"):
        found["pads"] = [*pads[:count][axes], *pads[count:][axes]]
    return {**found, **{key: attributes[key] for key in ("auto_pad",) if key in attributes}}


def both(values: Sequence[int] | None) -> int | list[int]:
    """A single number if rows and columns are equal, else both; 0 if both are 1."""
    rows, columns = (1, 1, *(values or ()))[-2:]
    return [rows, columns] if rows != columns else rows if rows > 1 else 0


def unlike(name: str, taken: set[str]) -> str:
    """A name not in `taken`, added to it."""
    names = itertools.chain([name], (f"{name}-{count}" for count in itertools.count(2)))
    taken.add(found := next(each for each in names if each not in taken))
    return found
