"""The nodes of an ONNX graph as the layers of a network.

Convolutions and products become workloads, pooling, additions and concatenations operations; all else passes on what it
is given, and is counted. Of every tensor it is known whose output it is, and whether a ReLU has made zeros in it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from sparsemap.errors import SpecError

from .layers import WORKLOADS, Layer
from .model_file import Model, onnx_of, told

INPUT = "input"
SCOPES = re.compile(r"\.(weight|kernel)$")
NAMELESS = re.compile(r"(onnx::|_|/|val_|\d|$)")
"""Names that exporters give weights which have none of their own."""


@attrs.define
class Walk:
    """Goes over the nodes of a model in their order."""

    model: Model
    layers: list[Layer] = attrs.field(factory=list)
    skipped: list[tuple[str, int | None]] = attrs.field(factory=list)
    """Nodes that cannot be searched, with their MACs where these are known."""
    passed: Counter[str] = attrs.field(factory=Counter)
    """Other nodes by type, such as Relu."""
    input: tuple[int, ...] = ()
    """Shape of the network's input without the batch."""
    layer_of: dict[str, str] = attrs.field(factory=dict)
    """By tensor, the layer that it comes from; constants have none."""
    rectified: set[str] = attrs.field(factory=set)
    """Tensors whose negative values became zeros, by a ReLU or the like."""

    def run(self) -> None:
        model = self.model
        self.layer_of = dict.fromkeys(model.inputs, INPUT)
        self.input = model.shapes[model.inputs[0]][1:]
        for node in model.proto.graph.node:
            given = [name for name in node.input if name in self.layer_of]
            if given or _has_graphs(node):
                self._take(node, given)

    def _take(self, node: Any, given: list[str]) -> None:
        foreign = node.domain not in ("", "ai.onnx")  # what a node of another domain does is not known
        handler = None if foreign else HANDLERS.get(node.op_type)
        layer = handler(self, node, given) if handler else None
        if layer is not None:
            self.layers.append(layer)
            self.layer_of[node.output[0]] = layer.name
            if node.op_type in KEEPING and self.rectified.issuperset(given):
                self.rectified.add(node.output[0])
            return
        if node.op_type in ("Shape", "Size"):
            return
        if foreign or node.op_type in MULTIPLYING or _has_graphs(node):
            self.skipped.append((told(node), _macs(self.model, node)))
        else:
            self.passed[node.op_type] += 1
        self._pass(node, given)

    def _pass(self, node: Any, given: list[str]) -> None:
        """The outputs of a node that is no layer are those of the layer that made its (largest) input."""
        sizes = self.model.shapes
        main = max(given, key=lambda name: math.prod(sizes.get(name, ())), default="")
        layer = self.layer_of[main] if main else INPUT
        embeds = node.op_type == "Gather" and node.input[0] not in self.layer_of
        if embeds and layer == INPUT:  # what is embedded counts as the input
            self.input = sizes.get(node.output[0], self.input)[1:]
        self.layer_of.update(dict.fromkeys(node.output, layer))
        if self._rectifies(node, given):
            self.rectified.update(node.output)

    def _rectifies(self, node: Any, given: list[str]) -> bool:
        if node.op_type == "Mul":  # a product is zero where one factor is
            return not self.rectified.isdisjoint(given)
        if node.op_type in KEEPING:
            return bool(given) and self.rectified.issuperset(given)
        return node.op_type in RECTIFYING or self._clips_at_zero(node)

    def _clips_at_zero(self, node: Any) -> bool:
        if node.op_type != "Clip":
            return False
        if len(node.input) > 1 and node.input[1] and self.model.is_constant(node.input[1]):
            return float(self.model.constant(node.input[1])) == 0
        return _attributes(node).get("min") == 0

    # -- layers

    def _convolution(self, node: Any, given: list[str]) -> Layer | None:
        image, weights = self._shape(node, 0), self._shape(node, 1)
        found = self._shape(node, -1)
        if len(image) not in (3, 4):
            return None
        attributes = _attributes(node)
        if len(image) == 3 and self.layer_of[node.input[0]] == INPUT:  # rows of samples are images of one row
            self.input = (image[1], 1, image[2])
        groups, channels = attributes.get("group", 1), image[1]
        if groups < 1 or weights[1] * groups != channels or weights[0] % groups:
            text = f"takes {channels} channels in {groups} groups, and its weights are {' x '.join(map(str, weights))}"
            raise SpecError.at(self.model.file, told(node), text)
        window = self._window(node, weights[2:], image[2:], found[2:])
        sizes = {"p": found[-2] if len(found) == 4 else 1, "q": found[-1]}
        dilation = _both(attributes.get("dilations"))
        common = {**sizes, **window, **({"dilation": dilation} if dilation else {})}
        if groups == channels == weights[0] and groups > 1:
            table = {"type": "depthwise", "c": channels, **common}
        else:
            table = {"type": "conv2d", "k": weights[0], "c": channels, **common}
            table |= {"groups": groups} if groups > 1 else {}
        return self._layer(node, table, [node.input[0]], node.input[1])

    def _product(self, node: Any, given: list[str]) -> Layer | None:
        """Of MatMul and Gemm; the latter may transpose its inputs."""
        attributes = _attributes(node)
        turned_a, turned_b = bool(attributes.get("transA")), bool(attributes.get("transB"))
        a, b = self._shape(node, 0), self._shape(node, 1)
        a, b = (a if len(a) > 1 else (1, *a)), (b if len(b) > 1 else (*b, 1))
        a, b = (_turned(a) if turned_a else a), (_turned(b) if turned_b else b)
        first, second = (name in self.layer_of for name in node.input[:2])
        if second and not first and len(a) == len(b) == 2:  # W X is the transpose of X' W'
            return self._linear(node, b[1], b[0], a[0], node.input[1], node.input[0], not turned_a)
        if first and not second and len(b) == 2:
            return self._linear(node, math.prod(a[:-1]), a[-1], b[-1], node.input[0], node.input[1], turned_b)
        count = max(math.prod(a[:-2]), math.prod(b[:-2]))
        table = {"type": "matmul", **self._per_sample("h", count), "m": a[-2], "k": a[-1], "n": b[-1]}
        given = [name for name in node.input[:2] if name in self.layer_of]
        constants = [name for name in node.input[:2] if name not in self.layer_of]
        return self._layer(node, table, given, constants[-1] if constants else "")

    def _linear(self, node: Any, rows: int, k: int, n: int, data: str, weights: str, turned: bool) -> Layer:
        table = {"type": "linear", **self._per_sample("m", rows), "k": k, "n": n}
        return attrs.evolve(self._layer(node, table, [data], weights), turned=turned)

    def _per_sample(self, key: str, count: int) -> dict[str, int]:
        """The number of rows or heads of a sample; where a batch is not a factor of them, the layer has a batch of one."""
        batch = self.model.batch
        if count % batch:
            return {"batch": 1, key: count}
        return {key: count // batch} if count > batch else {}

    # -- operations

    def _pool(self, node: Any, given: list[str]) -> Layer | None:
        image, found = self._shape(node, 0), self._shape(node, -1)
        if len(image) not in (3, 4):
            return None
        attributes = _attributes(node)
        kind = "max-pool" if node.op_type == "MaxPool" else "average-pool"
        reach = [
            (size - 1) * dilation + 1
            for size, dilation in zip(attributes["kernel_shape"], attributes.get("dilations") or [1] * 2, strict=False)
        ]
        return self._layer(
            node, {"type": kind, **self._window(node, reach, image[2:], found[2:], pool=True)}, given[:1]
        )

    def _global(self, node: Any, given: list[str]) -> Layer | None:
        image = self._shape(node, 0)
        if len(image) != 4:
            return None
        if node.op_type == "GlobalMaxPool":
            return self._layer(node, {"type": "max-pool", "r": image[2], "s": image[3]}, given)
        if node.op_type == "ReduceMean":
            axes = _attributes(node).get("axes")
            if axes is None and len(node.input) > 1 and self.model.is_constant(node.input[1]):
                axes = self.model.constant(node.input[1]).tolist()
            if sorted(axis % 4 for axis in axes or ()) != [2, 3]:
                return None
        return self._layer(node, {"type": "global-average"}, given[:1])

    def _add(self, node: Any, given: list[str]) -> Layer | None:
        shapes = {self._shape(node, place) for place in range(len(node.input))}
        if len(given) < 2 or len(given) < len(node.input) or len(shapes) > 1:
            return None
        return self._layer(node, {"type": "add"}, given)

    def _concat(self, node: Any, given: list[str]) -> Layer | None:
        if len(given) < 2 or len(given) < len(node.input) or len(self._shape(node, -1)) < 2:
            return None
        return self._layer(node, {"type": "concat"}, given)

    # -- parts

    def _layer(self, node: Any, table: dict[str, Any], given: Sequence[str], weights: str = "") -> Layer:
        """The layer with a name, the layers before it, and where its operands come from."""
        inputs = [self.layer_of[name] for name in given]
        constant = weights if weights and self.model.is_constant(weights) else ""
        operands = {} if table["type"] not in WORKLOADS else dict(zip("PQ", [*given, weights], strict=False))
        operands = {role: name for role, name in operands.items() if name and name != constant}
        before = self.layers[-1].name if self.layers else INPUT
        named = {"name": self._name(node, constant), **table, **({"inputs": inputs} if inputs != [before] else {})}
        rectified = tuple(role for role, name in operands.items() if name in self.rectified)
        return Layer(table=named, operands=operands, rectified=rectified, weights=constant)

    def _name(self, node: Any, weights: str) -> str:
        """The module of the weights, or else of the node: "/layer1/layer1.0/conv1/Conv" is layer1.0.conv1."""
        scopes = [part for part in node.name.split("/") if part]
        found = scopes[0] if scopes else ""
        for part in scopes[1:-1]:
            found = part if part.startswith(f"{found}.") else f"{found}.{part}"
        last, kind = (scopes[-1] if scopes else ""), node.op_type.lower()
        if weights and SCOPES.search(weights) and not NAMELESS.match(weights):
            found = SCOPES.sub("", weights)
        elif len(scopes) > 1 and not weights and not found.rpartition(".")[2].lower().startswith(kind):
            found = f"{found}.{last.lower()}"
        found = re.sub(r"[^A-Za-z0-9_.-]+", "-", found).strip("-.") or kind
        names = {layer.name for layer in self.layers} | {INPUT}
        several = (f"{found}-{count}" for count in itertools.count(2))
        return next(name for name in itertools.chain([found], several) if name not in names)

    def _window(self, node: Any, window: Sequence[int], given: Sequence[int], found: Sequence[int], pool: bool = False):
        """Window, stride and padding of a layer; the padding behind is what the size of the output needs."""
        attributes, count = _attributes(node), len(window)
        strides = attributes.get("strides") or [1] * count
        dilations = [1] * count if pool else attributes.get("dilations") or [1] * count
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
        stride = {"stride": _both(strides)} if _both(strides) else {}
        same = sides[0][0] if all(side == [sides[0][0]] * 2 for side in sides) else sides
        return {"r": r, "s": s, **stride, **({"padding": same} if same else {})}

    def _shape(self, node: Any, place: int) -> tuple[int, ...]:
        """Of an input, or with -1 of the output."""
        return self.model.shape(node.output[0] if place < 0 else node.input[place], node)


HANDLERS: dict[str, Any] = {
    "Conv": Walk._convolution,
    "Gemm": Walk._product,
    "MatMul": Walk._product,
    "MaxPool": Walk._pool,
    "AveragePool": Walk._pool,
    "GlobalAveragePool": Walk._global,
    "GlobalMaxPool": Walk._global,
    "ReduceMean": Walk._global,
    "Add": Walk._add,
    "Sum": Walk._add,
    "Concat": Walk._concat,
}
RECTIFYING = ("Relu", "ThresholdedRelu")
KEEPING = (
    *(
        "Identity",
        "Dropout",
        "Reshape",
        "Flatten",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "Cast",
        "Slice",
        "Split",
        "Pad",
    ),
    *("QuantizeLinear", "DequantizeLinear", "MaxPool", "GlobalMaxPool", "Concat"),
)
"""What leaves zeros zero, and makes none."""
MULTIPLYING = (
    *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv"),
    *("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "Einsum", "Attention", "LSTM", "GRU", "RNN"),
)
"""What multiplies and accumulates; where no workload can say it, it is reported as skipped."""


def _macs(model: Model, node: Any) -> int | None:
    """Multiplications of a node that is not searched; None if they do not follow from its shapes."""
    sizes = [model.shapes.get(name) for name in node.input]
    found = model.shapes.get(node.output[0])
    place = 3 if node.op_type.startswith("QLinear") else 1
    data, weights = (sizes[0], sizes[place]) if len(sizes) > place else (None, None)
    if found is None or data is None or weights is None:
        return None
    if node.op_type == "ConvTranspose":
        return math.prod(data) * math.prod(weights[1:])
    if "Conv" in node.op_type:
        return math.prod(found) * math.prod(weights[1:])
    if "MatMul" in node.op_type:
        return math.prod(found) * data[-1]
    if node.op_type in ("LSTM", "GRU", "RNN") and (state := sizes[2]) is not None:
        return data[0] * data[1] * (math.prod(weights) + math.prod(state))
    return None


def _has_graphs(node: Any) -> bool:
    """Whether a node runs graphs of its own, as If and Loop do."""
    return any(attribute.HasField("g") for attribute in node.attribute)


def _attributes(node: Any) -> dict[str, Any]:
    return {item.name: onnx_of("onnx.helper").get_attribute_value(item) for item in node.attribute}


def _both(values: Sequence[int] | None) -> int | list[int]:
    """One number for rows and columns if they are alike; 0 for ones."""
    rows, columns = (1, 1, *(values or ()))[-2:]
    return [rows, columns] if rows != columns else rows if rows > 1 else 0


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])
