"""The nodes of an ONNX graph as the layers of a network.

Convolutions and products become workloads; pooling, concatenations, sums and products word by word operations; all else
passes on what it is given, and is counted. Of every tensor it is known whose output it is, and whether a ReLU has made
zeros in it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap.errors import SpecError

from . import counting, repeats
from .layers import ImportedLayer, both, window_of
from .model_file import OnnxModel
from .onnx_package import attributes_of, dims_text, has_graphs, onnx_of, reported, told, widths
from .products import CONVOLUTIONS, PRODUCTS, LabelledProduct, arranged, products_of

INPUT = "input"
SCOPES = re.compile(r"\.(weight|kernel)$")
NAMELESS = re.compile(r"(onnx::|_|/|val_|$)")
"""Names that exporters give weights which have none of their own."""


@attrs.define
class GraphWalk:
    """Goes over the nodes of a model in their order. Sizes of layers are those of all samples together."""

    model: OnnxModel
    layers: list[ImportedLayer] = attrs.field(factory=list)
    skipped: list[tuple[str, int | None]] = attrs.field(factory=list)
    """Nodes that cannot be searched, or would lose a layer, with their MACs where these are known."""
    passed: Counter[str] = attrs.field(factory=Counter)
    """Other nodes by type, such as Relu."""
    input: tuple[int, ...] = ()
    """Shape of the network's input with the batch."""
    layer_of: dict[str, str] = attrs.field(factory=dict)
    """By tensor, the layer that it comes from; constants have none."""
    rectified: set[str] = attrs.field(factory=set)
    """Tensors whose negative values became zeros, by a ReLU or the like."""
    _relus: set[str] = attrs.field(factory=set)
    """Tensors that a ReLU has made, or that follow from one of the same layer."""
    _read: set[str] = attrs.field(factory=set)
    """Tensors that layers read."""
    _axes: dict[str, tuple[repeats.Axis, ...]] = attrs.field(factory=dict)
    """Of tensors that repeat themselves."""
    _of_rows: dict[str, str] = attrs.field(factory=dict)
    """Tensors with a number for every row of another one, and what a row over it is."""
    _made: dict[str, int] = attrs.field(factory=dict)
    """By layer, the words of its output."""
    _names: set[str] = attrs.field(factory=lambda: {INPUT})
    _makers: dict[str, Any] = attrs.field(factory=dict)

    def run(self) -> None:
        model = self.model
        self.layer_of = dict.fromkeys(model.inputs, INPUT)
        shapes = [model.shapes[name] for name in model.inputs]
        self.input = next((shape for shape in shapes if len(shape) > 1), shapes[0])
        for node in model.proto.graph.node:
            self._makers.update(dict.fromkeys(node.output, node))
            given = [name for name in node.input if name in self.layer_of]
            if given or has_graphs(node) or not (node.input or node.op_type == "Constant"):
                with reported(model.file, told(node), "cannot be imported"):
                    self._take(node, given)

    def outputs(self) -> list[str]:
        """The layers whose outputs are the model's, although others read them."""
        read = {self.layer_of[name] for name in self._read}
        made = dict.fromkeys(self.layer_of.get(one.name, INPUT) for one in self.model.proto.graph.output)
        return [name for name in made if name in read and name != INPUT]

    def behind_relus(self) -> list[str]:
        """The layers that nobody reads but behind a ReLU."""
        read = self._read | {one.name for one in self.model.proto.graph.output if one.name in self.layer_of}
        bare = {self.layer_of[name] for name in read - self._relus}
        some = {self.layer_of[name] for name in self._relus}
        return [layer.name for layer in self.layers if layer.name in some - bare]

    def _take(self, node: Any, given: list[str]) -> None:
        foreign = node.domain not in ("", "ai.onnx")  # what a node of another domain does is not known
        layers = [] if foreign else self._layers_of(node, given)
        if layers:
            self.layers += layers
            self._read.update(given)
            self.layer_of.update(dict.fromkeys(filter(None, node.output), layers[-1].name))
            self._made[layers[-1].name] = self._words(node.output[0])
            if node.op_type in OPERATIONS and self._rectifies(node, given):
                self.rectified.add(node.output[0])
            return
        if node.op_type in ("Shape", "Size"):
            return
        if foreign or node.op_type in MULTIPLYING or has_graphs(node):
            self.skipped.append((told(node), None if foreign else counting.macs(node, self.model)))
        elif self._others(given):
            self.skipped.append((told(node), 0))
        else:
            self.passed[node.op_type] += 1
        self._pass(node, given)

    def _layers_of(self, node: Any, given: list[str]) -> list[ImportedLayer]:
        """What a node becomes: products, a convolution or an operation; none where no piece says it."""
        if node.op_type in PRODUCTS:
            return self._products(node)
        make = GraphWalk._convolution if node.op_type in CONVOLUTIONS else OPERATIONS.get(node.op_type)
        return [*filter(None, [make(self, node, given)])] if make else []

    def _pass(self, node: Any, given: list[str]) -> None:
        """The outputs of a node that is no layer are those of the layer that made its (largest) input."""
        layer = self._main(given)
        embeds = node.op_type == "Gather" and node.input[0] not in self.layer_of
        if embeds and layer == INPUT:  # what is embedded counts as the input
            self.input = self.model.shapes.get(node.output[0], self.input)
        self.layer_of.update(dict.fromkeys(filter(None, node.output), layer))
        if not self._relus.isdisjoint(given) or (node.op_type not in KEEPING and self._rectifies(node, given)):
            self._relus.update(node.output)
        if self._rectifies(node, given):
            self.rectified.update(node.output)
        self._sum_rows(node)
        axes = repeats.after(node, self.model, self._axes)
        if axes is not None and repeats.repeats(axes):
            self._axes[node.output[0]] = axes

    def _main(self, given: list[str]) -> str:
        """The layer that made the largest of these tensors."""
        return self.layer_of[max(given, key=self._words)] if given else INPUT

    def _others(self, given: list[str]) -> list[str]:
        """Tensors of other layers than that one: words, no places or conditions, and no scale of a whole tensor."""
        known, proto = (self._main(given), INPUT), onnx_of().TensorProto
        others = [name for name in given if self.layer_of[name] not in known]
        one = [self._words(name) == 1 != self._made[self.layer_of[name]] for name in others]
        places = [self.model.types.get(name) in (proto.INT64, proto.BOOL) for name in others]
        return [name for name, *left_out in zip(others, one, places, strict=True) if not any(left_out)]

    def _words(self, name: str) -> int:
        return math.prod(self.model.shapes.get(name, ()))

    def _sum_rows(self, node: Any) -> None:
        """Whether the output is a mean or a sum of every row, or follows from such numbers alone."""
        kind, rank = REDUCING.get(node.op_type, ""), len(self.model.shapes.get(node.input[0] if node.input else "", ()))
        if not kind:
            rows = [name for name in node.input if name in self._of_rows]
            kind = self._of_rows[rows[0]] if rows and self._words(node.output[0]) == max(map(self._words, rows)) else ""
        elif self._reduced(node, rank) != [rank - 1]:
            kind = ""
        if kind:
            self._of_rows[node.output[0]] = kind

    def _reduced(self, node: Any, rank: int) -> list[int]:
        """The axes that a node sums over; none where nobody knows them."""
        axes = attributes_of(node).get("axes")
        if axes is None and len(node.input) > 1 and node.input[1] in self.model.constants:
            axes = self.model.constant(node.input[1]).tolist()
        return sorted(axis % rank for axis in axes or ())

    def _rectifies(self, node: Any, given: list[str]) -> bool:
        if node.op_type == "Mul":  # a product is zero where one factor is
            return not self.rectified.isdisjoint(given)
        if node.op_type in KEEPING:
            return bool(given) and self.rectified.issuperset(given)
        if node.op_type != "Clip":
            return node.op_type in RECTIFYING
        if len(node.input) > 1 and node.input[1] and node.input[1] in self.model.constants:
            return float(self.model.constant(node.input[1])) == 0
        return attributes_of(node).get("min") == 0

    # -- layers

    def _convolution(self, node: Any, given: list[str]) -> ImportedLayer | None:
        operands = CONVOLUTIONS[node.op_type]
        names, zeros = operands.names(node), operands.zeros(node)
        image, weights = (self.model.shape(name, node) for name in names)
        found = self._shape(node, -1)
        if len(image) not in (3, 4) or names[1] not in self.model.constants or names[0] not in self.layer_of:
            return None
        attributes = attributes_of(node)
        if len(image) == 3 and self.layer_of[names[0]] == INPUT:  # rows of samples are images of one row
            self.input = (*image[:2], 1, image[2])
        groups, channels = attributes.get("group", 1), image[1]
        if groups < 1 or weights[1] * groups != channels or weights[0] % groups:
            text = f"takes {channels} channels in {groups} groups, and its weights are {dims_text(weights)}"
            raise SpecError.at(self.model.file, told(node), text)
        window = window_of(attributes, weights[2:], image[2:], found[2:])
        sizes = {"batch": image[0], "p": found[-2] if len(found) == 4 else 1, "q": found[-1]}
        dilation = both(attributes.get("dilations"))
        common = {**sizes, **window, **({"dilation": dilation} if dilation else {})}
        if groups == channels == weights[0] and groups > 1:
            table = {"type": "depthwise", "c": channels, **common}
        else:
            table = {"type": "conv2d", "k": weights[0], "c": channels, **common}
            table |= {"groups": groups} if groups > 1 else {}
        return self._workload(node, table, dict(zip("PQ", names, strict=True)), dict(zip("PQ", zeros, strict=True)))

    def _products(self, node: Any) -> list[ImportedLayer]:
        layers: list[ImportedLayer] = []
        for product in products_of(node, self.model, self._axes):
            first, second = product.first.name, product.second.name
            data = [name not in self.model.constants for name in (first, second)]
            if not any(data):  # a product of constants, to which something is added
                return []
            layers.append(self._product(node, product.swapped if data == [False, True] else product, all(data), layers))
            if product.part == "scores":
                inner = [layers[-1].name]
                layers.append(self._layer(node, {"type": "softmax"}, [], part="softmax", inner=inner))
        return layers

    def _product(
        self, node: Any, product: LabelledProduct, both_data: bool, before: Sequence[ImportedLayer]
    ) -> ImportedLayer:
        """A matmul of two inputs, or a linear layer with the second one as its weights."""
        sizes = product.sizes()
        h = sizes.pop("h")
        table = {"type": "matmul", "h": h, **sizes} if both_data else {"type": "linear", **sizes}
        table |= {"groups": h} if h > 1 and not both_data else {}
        operands = {"P": product.first.name, "Q": product.second.name}
        zeros = {"P": product.first.zero, "Q": product.second.zero}
        layer = self._workload(node, table, operands, zeros, product.part, [layer.name for layer in before])
        return attrs.evolve(layer, axes=() if both_data else arranged(product))

    # -- operations

    def _pool(self, node: Any, given: list[str]) -> ImportedLayer | None:
        image, found = self._shape(node, 0), self._shape(node, -1)
        if len(image) not in (3, 4):
            return None
        attributes = attributes_of(node)
        kind = "max-pool" if node.op_type == "MaxPool" else "average-pool"
        steps = attributes.get("dilations") or [1] * 2
        reach = [(size - 1) * dilation + 1 for size, dilation in zip(attributes["kernel_shape"], steps, strict=False)]
        attributes.pop("dilations", None)
        return self._layer(node, {"type": kind, **window_of(attributes, reach, image[2:], found[2:])}, given[:1])

    def _global(self, node: Any, given: list[str]) -> ImportedLayer | None:
        image = self._shape(node, 0)
        rows = len(image) == 3 and node.op_type == "ReduceMean" and self._reduced(node, 3) == [1]
        if rows and self.layer_of[given[0]] != INPUT:
            return self._layer(node, {"type": "global-average"}, given[:1])
        if len(image) != 4:
            return None
        if node.op_type == "GlobalMaxPool":
            return self._layer(node, {"type": "max-pool", "r": image[2], "s": image[3]}, given)
        if node.op_type == "ReduceMean" and self._reduced(node, 4) != [2, 3]:
            return None
        return self._layer(node, {"type": "global-average"}, given[:1])

    def _wordwise(self, node: Any, given: list[str]) -> ImportedLayer | None:
        """Of several layers, as where one is the gate of the other: what one layer has made is added up on its way out, as
        where positions are turned. Or of rows and a number for each: their sums or deviations, written as single steps."""
        layers = {self.layer_of[name] for name in given}
        kind = "multiply" if node.op_type in ("Mul", "Div") else "add"
        rows = [name for name in given if name not in self._of_rows]
        if kind == "multiply" and len(given) == 2 and len(layers) == len(rows) == 1:
            return self._layer(node, {"type": self._of_rows[next(name for name in given if name not in rows)]}, rows)
        if len({self.model.shapes.get(name) for name in given}) > 1 or len(rows) < len(given):  # some are broadcast
            whole = all(self._words(name) == self._made.get(self.layer_of[name], self._words(name)) for name in given)
            layers = layers if whole and self._others(given) else set()
        return self._layer(node, {"type": kind}, given) if len(layers) > 1 else None

    def _rows(self, node: Any, given: list[str]) -> ImportedLayer | None:
        """A softmax, or a normalisation. Rows along an axis that is not the last one of words or scores are told as all
        axes together, which is no less."""
        shape = self._shape(node, -1)
        usual = {"InstanceNormalization": 2, "GroupNormalization": 1}
        axis = usual.get(node.op_type, attributes_of(node).get("axis", -1))
        last = len(shape) - axis % max(1, len(shape))
        kind = "softmax" if node.op_type.endswith("Softmax") else "norm"
        fits = last == 1 and (len(shape) < 4 or kind == "softmax")
        return self._layer(node, {"type": kind, **({} if fits else {"axes": 3})}, given[:1])

    def _concat(self, node: Any, given: list[str]) -> ImportedLayer | None:
        """Channels or rows one behind the other; or rows behind those of earlier steps, which are an input, or behind a
        class token, which is constant."""
        found = self.model.shapes.get(node.output[0], ())
        if len(found) < 2:
            return None
        axis = attributes_of(node)["axis"] % len(found)
        new = [name for name in given if self.layer_of[name] != INPUT]
        kept = [name for name in node.input if name not in new]
        if len(new) == 1 and kept and all(name in self.model.inputs or name not in given for name in kept):
            rows = sum(self.model.shape(name, node)[axis] for name in kept)
            return self._layer(node, {"type": "prepend", "rows": rows}, new) if len(found) in (3, 4) else None
        if axis != 1 or len(given) < 2 or len(given) < len(node.input):
            return None
        return self._layer(node, {"type": "concat"}, given)

    def _take_rows(self, node: Any, given: list[str]) -> ImportedLayer | None:
        """Of a sequence, as the class token is taken."""
        data, found = (self.model.shapes.get(name, ()) for name in (node.input[0], node.output[0]))
        wanted = len(data) == 3 and attributes_of(node).get("axis", 0) % 3 == 1 and found[-1:] == data[-1:]
        if not wanted or self.layer_of.get(node.input[0], INPUT) == INPUT or len(found) not in (2, 3):
            return None
        rows = found[1] if len(found) == 3 else 1
        return self._layer(node, {"type": "take", **({"rows": rows} if rows > 1 else {})}, given[:1])

    # -- parts

    def _workload(
        self, node: Any, table: dict[str, Any], operands: Mapping[str, str], zeros: Mapping[str, str], part: str = "",
        before: Sequence[str] = (),
    ) -> ImportedLayer:  # fmt: skip
        """A layer that is searched: P comes from layers, Q may be weights. An operand without a tensor is the product
        before this one."""
        constants = self.model.constants
        weights = operands["Q"] if operands["Q"] in constants else ""
        given = {role: name for role, name in operands.items() if name and name not in constants}
        layer = self._layer(node, table, list(given.values()), weights, part, [] if operands["P"] else before[-1:])
        widths = tuple(self._width(name) for name in operands.values() if name)
        widest = max((width or 32 for width in widths), default=32)
        return attrs.evolve(
            layer,
            table={**layer.table, **({"word_bits": widest} if widest <= 8 else {})},
            operands=given,
            rectified=tuple(role for role, name in given.items() if name in self.rectified),
            weights=weights,
            zeros={role: name for role, name in zeros.items() if name and name in constants},
            widths=widths,
        )

    def _layer(
        self, node: Any, table: dict[str, Any], given: Sequence[str], weights: str = "", part: str = "",
        inner: Sequence[str] = (),
    ) -> ImportedLayer:  # fmt: skip
        """The layer with a name and the layers before it."""
        inputs = [*inner, *(self.layer_of.get(name, INPUT) for name in given)]
        last = inner[-1] if inner else self.layers[-1].name if self.layers else INPUT
        told = {"inputs": inputs} if inputs and inputs != [last] else {}
        return ImportedLayer(table={"name": self._name(node, weights, part), **table, **told}, node=node)

    def _name(self, node: Any, weights: str, part: str) -> str:
        """The module of the weights, or else of the node: "/layer1/layer1.0/conv1/Conv" is layer1.0.conv1."""
        scopes = [part for part in node.name.split("/") if part]
        found = scopes[0] if scopes else ""
        for scope in scopes[1:-1]:
            found = scope if scope.startswith(f"{found}.") else f"{found}.{scope}"
        last, kind = (scopes[-1] if scopes else ""), node.op_type.lower()
        if weights and SCOPES.search(weights) and not NAMELESS.match(weights):
            found = SCOPES.sub("", weights)
        elif len(scopes) > 1 and not weights and not part and not found.rpartition(".")[2].lower().startswith(kind):
            found = f"{found}.{last.lower()}"
        found = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{found or kind}.{part}").strip("-.") or kind
        names = itertools.chain([found], (f"{found}-{count}" for count in itertools.count(2)))
        self._names.add(name := next(name for name in names if name not in self._names))
        return name

    def _width(self, name: str) -> int | None:
        """Bits of the words of a tensor: those of the whole numbers that it is made of, where it was dequantised."""
        makers, types = self._makers, self.model.types
        while (node := makers.get(name)) is not None and node.op_type in MOVING:
            name = node.input[0]
            if node.op_type == "DequantizeLinear":
                break
        return widths().get(types.get(name, 0))

    def _shape(self, node: Any, place: int) -> tuple[int, ...]:
        """Of an input, or with -1 of the output."""
        return self.model.shape(node.output[0] if place < 0 else node.input[place], node)


OPERATIONS: dict[str, Any] = {
    "MaxPool": GraphWalk._pool,
    "AveragePool": GraphWalk._pool,
    "GlobalAveragePool": GraphWalk._global,
    "GlobalMaxPool": GraphWalk._global,
    "ReduceMean": GraphWalk._global,
    **dict.fromkeys(("Add", "Sub", "Sum", "Mul", "Div"), GraphWalk._wordwise),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization"), GraphWalk._rows),
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization"), GraphWalk._rows),
    "Concat": GraphWalk._concat,
    "Gather": GraphWalk._take_rows,
}
REDUCING = {"ReduceSum": "softmax", **dict.fromkeys(("ReduceMean", "ReduceL2", "ReduceSumSquare"), "norm")}
"""What makes a number of every row, and what the row over it is."""
RECTIFYING = ("Relu", "ThresholdedRelu")
MOVING = (
    *("Identity", "Dropout", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Slice"),
    *("MaxPool", "DequantizeLinear"),
)
"""What leaves words as they are; words of whole numbers that are dequantised need no more bits than those."""
KEEPING = (*MOVING, "Cast", "Split", "Pad", "QuantizeLinear", "GlobalMaxPool", "Concat")
"""What leaves zeros zero, and makes none."""
MULTIPLYING = (
    *CONVOLUTIONS,
    *PRODUCTS,
    *("DeformConv", "CausalConvWithState", "LinearAttention", "DFT", "STFT", "Det", "AffineGrid"),
)
"""What multiplies and accumulates; where no workload can say it, it is reported as skipped."""
