"""The nodes of an ONNX graph as the layers of a network.

Convolutions and products become workloads. Pooling, concatenations, and elementwise sums and products become
operations. Other nodes pass their input on and are counted. For every tensor, the producing layer is recorded, and
whether a ReLU set words to zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap.errors import SpecError
from sparsemap.problem.network import INPUT

from . import counting, onnx_package, repeats
from .foreign import why_not
from .layers import ImportedLayer, both, of_axes, window_of
from .onnx_package import (
    Skipped,
    attributes_of,
    choice,
    dims_text,
    has_graphs,
    inner_nodes,
    onnx_of,
    reported,
    told,
)  # fmt: skip
from .products import CONVOLUTIONS, GATES, PRODUCTS, STATES, LabelledProduct, arranged, products_of, steps_of
from .tracing import SELECTING, Tracing, copies
from .word_bits import MOVING, NARROW, bits_read, with_outputs


@attrs.define
class GraphWalk(Tracing):
    """Walk over the nodes of a model in order. Sizes of layers cover all samples together."""

    skipped: list[Skipped] = attrs.field(factory=list)
    cut: list[str] = attrs.field(factory=list)
    """Inputs of unknown nodes."""
    passed: Counter[str] = attrs.field(factory=Counter)
    """Number of other nodes by type, such as Relu."""
    rectified: set[str] = attrs.field(factory=set)
    """Tensors with negative values set to zero, by a ReLU or similar."""
    _relus: set[str] = attrs.field(factory=set)
    """Outputs of a ReLU, and tensors derived from them within the same layer."""
    _makers: dict[str, Any] = attrs.field(factory=dict)

    def run(self) -> None:
        model = self.model
        self.begin()
        for node in model.proto.graph.node:
            self._makers.update(dict.fromkeys(node.output, node))
            given = [name for name in node.input if name in self.roots]
            data = node.op_type in MULTIPLYING and any(name not in model.constants for name in node.input if name)
            if given or data or has_graphs(node) or not (node.input or node.op_type == "Constant"):
                with reported(model.file, told(node), "cannot be imported"):
                    self._take(node, given)
        self.layers = with_outputs(self)

    def outputs(self) -> list[str]:
        """Layers with outputs of the model that other layers read too."""
        read = {self.layer_of(name) for name in self._read}
        made = dict.fromkeys(self.layer_of(name) for name in (*self._results, *self.cut))
        return [name for name in made if name in read and name != INPUT]

    def behind_relus(self) -> list[str]:
        """Layers read only behind a ReLU."""
        read = self._read.union(name for name in self._results if name in self.roots)
        bare, some = ({self.layer_of(name) for name in names} for names in (read - self._relus, self._relus))
        return [layer.name for layer in self.layers if layer.name in some - bare]

    @property
    def _results(self) -> list[str]:
        return [one.name for one in self.model.proto.graph.output]

    def _take(self, node: Any, given: list[str]) -> None:
        model = self.model
        given = [name for name in given if 0 not in model.shapes.get(name, ())]
        unknown = onnx_package.foreign(node) or has_graphs(node)
        outputs = [name for name in node.output if name]
        sized = node.op_type in MULTIPLYING or any(name in self.model.shapes for name in outputs)
        layers = self._layers_of(node, given) if sized and not unknown else []  # else data say how much it makes
        if layers:
            self.layers += layers
            for name in outputs:
                self._started(name, self.roots.get(name, name), layers[-1].name)
            if node.op_type in OPERATIONS and self._rectifies(node, given):
                self.rectified.add(node.output[0])
            return
        if node.op_type in ("Shape", "Size"):
            return
        multiplies = _multiplies(node) or any(map(_multiplies, inner_nodes(node)))
        if multiplies:
            macs = None if unknown else counting.macs(node, model)
            reason = why_not(node, model.constants.tensors, model.shapes)
            self.skipped.append(Skipped(told(node), macs, choice(node), reason))
        else:
            self.passed[node.op_type] += 1
        if multiplies or unknown:
            self.cut += given
            self.parts |= {name: ("outside", node, []) for name in outputs}
        self._pass(node, given)

    def _layers_of(self, node: Any, given: list[str]) -> list[ImportedLayer]:
        """Layers of a node: products, a convolution or an operation; empty if the node passes its input on."""
        if node.op_type in PRODUCTS:
            return self._products(node)
        make = GraphWalk._convolution if node.op_type in CONVOLUTIONS else OPERATIONS.get(node.op_type)
        found = make(self, node, given) if make else None
        if found is None and node.op_type not in (*MULTIPLYING, *JOINING, *SELECTING, "Concat", "Shape", "Size"):
            several = self._counted(node, given)
            if len(several) > 1 and len(node.output) == 1:
                layer = self._layer(node, {"type": "transform"}, several)
                found = attrs.evolve(layer, made=self._shaped(node.output[0], node))
        return [found] if found else []

    def _pass(self, node: Any, given: list[str]) -> None:
        """Assign the outputs of a node without a layer to the layer of its (largest) input."""
        embeds = node.op_type == "Gather" and node.input[0] not in self.roots
        embeds = embeds and self.layer_of(self._main(given)) == INPUT
        if embeds and self._first in self.model.inputs:  # what is embedded counts as the input
            self._first = node.output[0]
            self.input = self.model.shapes.get(self._first, self.input)
        for name in filter(None, node.output):
            self._trace(node, name, [] if embeds else given)
        if not self._relus.isdisjoint(given) or (not _keeps(node) and self._rectifies(node, given)):
            self._relus.update(node.output)
        if self._rectifies(node, given):
            self.rectified.update(node.output)
        self._sum_rows(node)
        axes = repeats.after(node, self.model, self._axes)
        if axes is not None and repeats.repeats(axes):
            self._axes[node.output[0]] = axes

    def _rectifies(self, node: Any, given: list[str]) -> bool:
        if node.op_type == "Mul":  # a product is zero where one factor is
            return not self.rectified.isdisjoint(given)
        if _keeps(node):
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
        if len(image) not in (3, 4, 5) or names[1] not in self.model.constants or names[0] not in self.roots:
            return None
        attributes = attributes_of(node)
        if len(image) == 3 and self._first in self.model.inputs and self._source(names[0]) == INPUT:  # rows of samples
            self.input = (*image[:2], 1, image[2])
        groups, channels = attributes.get("group", 1), image[1]
        if groups < 1 or weights[1] * groups != channels or weights[0] % groups:
            text = f"takes {channels} channels in {groups} groups, and its weights are {dims_text(weights)}"
            raise SpecError.at(self.model.file, told(node), text)
        count = len(image) - 2
        plane = of_axes(attributes, slice(-2, None), count)
        window = window_of(plane, weights[2:][-2:], image[2:][-2:], found[2:][-2:])
        sizes = {"batch": image[0], "p": found[-2] if count > 1 else 1, "q": found[-1]}
        dilation = both(plane.get("dilations"))
        common = {**sizes, **window, **({"dilation": dilation} if dilation else {})}
        several = {"groups": groups} if groups > 1 else {}
        if count == 3:
            time = of_axes(attributes, slice(0, 1), count)
            along = window_of(time, weights[2:3], image[2:3], found[2:3])
            own = {"stride_t": both(time.get("strides")), "dilation_t": both(time.get("dilations"))}
            own = {key: value[1] if isinstance(value, list) else value for key, value in own.items()}
            own["padding_t"] = along.get("padding", [[0, 0]])[-1] if isinstance(along.get("padding"), list) else 0
            common |= {"d": found[2], "t": along["s"], **{key: value for key, value in own.items() if value}}
            table = {"type": "conv3d", "k": weights[0], "c": channels, **several, **common}
        elif groups == channels == weights[0] and groups > 1:
            table = {"type": "depthwise", "c": channels, **common}
        else:
            table = {"type": "conv2d", "k": weights[0], "c": channels, **common, **several}
        return self._workload(node, table, dict(zip("PQ", names, strict=True)), dict(zip("PQ", zeros, strict=True)))

    def _products(self, node: Any) -> list[ImportedLayer]:
        layers: list[ImportedLayer] = []
        self._earlier(node)
        for product in products_of(node, self.model, self._axes):
            first, second = product.first.name, product.second.name
            data = [name not in self.model.constants for name in (first, second)]
            if not any(data):  # a product of constants, to which something is added
                return []
            product = product.swapped if data == [False, True] else product
            if product.part == "state":
                layers += [self._states(node, part, place) for part, place in STATES[node.op_type]]
            layers.append(self._product(node, product, all(data), layers))
            if product.part == "scores":
                inner = [layers[-1].name]
                layers.append(self._layer(node, {"type": "softmax"}, [], part="softmax", inner=inner))
        if node.op_type in GATES:
            read = [layers[0], layers[-1], *([layers[1]] if node.op_type != "RNN" else [])]
            layers.append(self._states(node, "gates", of=[layer.name for layer in read]))
            whole = node.output[0] or f"{layers[-1].name}/steps"
            self._started(whole, whole, layers[-1].name)
            for name in filter(None, node.output[1:]):  # after the last step, some of the words of all steps
                self._started(name, name, layers[-1].name)
                self.parts[name] = "view", node, [whole]
        elif node.op_type == "ConvTranspose":
            layer = self._layer(node, {"type": "transform"}, [], part="sums", inner=[layers[-1].name])
            layers.append(attrs.evolve(layer, made=self._shaped(node.output[0], node)))
        return layers

    def _earlier(self, node: Any) -> None:
        """Register earlier keys and values, an input of attention, before its own: a decoder outputs both."""
        for place in (1, 2) if node.op_type == "Attention" and len(node.input) > 5 and node.input[4] else ():
            own, past = (self.model.shape(node.input[at], node) for at in (place, place + 3))
            name = next(filter(None, node.output[place : place + 1]), f"{node.output[0]}/{place}")
            self._longer[node.output[0], node.input[place]] = name
            self._made[name] = (*past[:2], past[2] + own[-2], past[3])
            self._started(name, name, self.layer_of(node.input[place]))
            self.parts[name] = "view", node, [node.input[place]]

    def _states(self, node: Any, part: str, place: int = -1, of: Sequence[str] = ()) -> ImportedLayer:
        """Result of a recurrent node's gates at every step.

        The result goes to other layers, or stays in place for the next step, with an input as the initial state."""
        (steps, samples), state = steps_of(node, self.model), self.model.shape(node.input[2], node)
        given = [name for name in node.input[place : place + 1] if place > 0 and name in self.roots]
        table = {"type": "transform", **({"factor": steps} if place > 0 and steps > 1 else {})}
        layer = self._layer(node, table, given, part=part, inner=of)
        return attrs.evolve(layer, made=(steps, state[0], samples, state[2]))

    def _product(
        self, node: Any, product: LabelledProduct, both_data: bool, before: Sequence[ImportedLayer]
    ) -> ImportedLayer:
        """A matmul of two inputs, or a linear layer with the second tensor as its weights."""
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
        if node.op_type == "GlobalMaxPool" and len(image) == 4:
            return self._layer(node, {"type": "max-pool", "r": image[2], "s": image[3]}, given)
        whole = len(image) == 4 and node.op_type == "GlobalAveragePool"
        axes = {3: [1], 4: [2, 3]}.get(len(image)) if node.op_type == "ReduceMean" else None
        averages = whole or (axes is not None and self._reduced(node, len(image)) == axes)
        return self._layer(node, {"type": "global-average"}, given[:1]) if averages else None

    def _wordwise(self, node: Any, given: list[str]) -> ImportedLayer | None:
        """An elementwise operation of several layers, such as a gate; or of rows with a number for each.

        Terms of a single layer are added on the layer's way out, as in rotary positions. A number per row makes a
        softmax or a norm out of single steps."""
        kind = "multiply" if node.op_type in ("Mul", "Div") else "add"
        rows = [name for name in given if name not in self._of_rows]
        if kind == "multiply" and len(given) == 2 and len(rows) == 1:
            other = next(name for name in given if name not in rows)
            if self.layer_of(other) == self.layer_of(rows[0]):
                return self._layer(node, {"type": self._of_rows[other]}, rows)
        several = self._counted(node, given)
        return self._layer(node, {"type": kind}, several) if len(several) > 1 else None

    def _rows(self, node: Any, given: list[str]) -> ImportedLayer | None:
        """A softmax or a normalisation.

        An axis other than the last axis of words or scores counts as all axes together, no less work."""
        shape = self._shape(node, -1)
        usual = {"InstanceNormalization": 2, "GroupNormalization": 1}
        axis = usual.get(node.op_type, attributes_of(node).get("axis", -1))
        last = len(shape) - axis % max(1, len(shape))
        kind = "softmax" if node.op_type.endswith("Softmax") else "norm"
        fits = last == 1 and (len(shape) < 4 or kind == "softmax")
        return self._layer(node, {"type": kind, **({} if fits else {"axes": 3})}, given[:1])

    def _concat(self, node: Any, given: list[str]) -> ImportedLayer | None:
        """Concatenated channels or rows; or rows behind earlier steps (an input) or a class token (a constant)."""
        found = self.model.shapes.get(node.output[0], ())
        if len(found) < 2:
            return None
        axis = attributes_of(node)["axis"] % len(found)
        if self._joined(node, given):
            return None
        new = [name for name in given if self.layer_of(name) != INPUT or self.roots[name] in self.parts]
        kept = [name for name in node.input if name not in new]
        if len(new) == 1 and kept and all(name in self.model.inputs or name not in given for name in kept):
            rows = sum(self.model.shape(name, node)[axis] for name in kept)
            if len(found) in (3, 4) and axis == len(found) - 2:
                return self._layer(node, {"type": "prepend", "rows": rows}, new)
        if not given or self.model.types.get(node.output[0]) == onnx_of().TensorProto.INT64:
            return None
        channels = axis == 1 and found[0] in (1, self.model.batch)
        if channels and len(given) > 1 and len(given) == sum(self._words(name) > 0 for name in node.input):
            return self._layer(node, {"type": "concat"}, given)
        return attrs.evolve(self._layer(node, {"type": "view"}, given), made=self._shaped(node.output[0], node))

    def _take_rows(self, node: Any, given: list[str]) -> ImportedLayer | None:
        """Rows of a sequence, such as the class token."""
        data, found = (self.model.shapes.get(name, ()) for name in (node.input[0], node.output[0]))
        wanted = len(data) == 3 and attributes_of(node).get("axis", 0) % 3 == 1 and found[-1:] == data[-1:]
        if not wanted or self.layer_of(node.input[0]) == INPUT or len(found) not in (2, 3):
            return None
        rows = found[1] if len(found) == 3 else 1
        return self._layer(node, {"type": "take", **({"rows": rows} if rows > 1 else {})}, given[:1])

    # -- parts

    def _workload(
        self, node: Any, table: dict[str, Any], operands: Mapping[str, str], zeros: Mapping[str, str], part: str = "",
        before: Sequence[str] = (),
    ) -> ImportedLayer:  # fmt: skip
        """A searched layer: P comes from layers, Q may be weights; a missing operand is the preceding product."""
        constants = self.model.constants
        weights = operands["Q"] if operands["Q"] in constants else ""
        given = {role: name for role, name in operands.items() if name and name not in constants}
        layer = self._layer(node, table, list(given.values()), weights, part, [] if operands["P"] else before[-1:])
        words = {role: bits_read(name, self.model.types, self._makers) for role, name in operands.items() if name}
        narrow = {role: bits + scale for role, (bits, scale) in words.items() if bits and bits <= NARROW}
        own = {role: name for role, name in zeros.items() if name and name in constants}
        rectified = tuple(role for role, name in given.items() if name in self.rectified)
        table = {**layer.table, **({"word_bits": narrow} if narrow else {})}
        more: Any = {"table": table, "operands": given, "rectified": rectified, "weights": weights}
        return attrs.evolve(layer, zeros=own, widths=tuple(bits for bits, _ in words.values()), **more)

    def _shape(self, node: Any, place: int) -> tuple[int, ...]:
        """Shape of an input, or with -1 of the output."""
        return self.model.shape(node.output[0] if place < 0 else node.input[place], node)


JOINING = ("Add", "Sub", "Sum", "Mul", "Div")
"""Elementwise sums and products."""
OPERATIONS: dict[str, Any] = {
    "MaxPool": GraphWalk._pool,
    "AveragePool": GraphWalk._pool,
    "GlobalAveragePool": GraphWalk._global,
    "GlobalMaxPool": GraphWalk._global,
    "ReduceMean": GraphWalk._global,
    **dict.fromkeys(JOINING, GraphWalk._wordwise),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization"), GraphWalk._rows),
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization"), GraphWalk._rows),
    "Concat": GraphWalk._concat,
    "Gather": GraphWalk._take_rows,
}
RECTIFYING = ("Relu", "ThresholdedRelu")
KEEPING = (*MOVING, "Cast", "Split", "Pad", "QuantizeLinear", "GlobalMaxPool", "Concat")
"""Operators that keep zeros and make none, as copies do."""
MULTIPLYING = (
    *CONVOLUTIONS,
    *PRODUCTS,
    *("DeformConv", "CausalConvWithState", "LinearAttention", "DFT", "STFT", "Det", "AffineGrid"),
)
"""Multiply-accumulate operators, reported as skipped without a matching workload."""


def _keeps(node: Any) -> bool:
    return node.op_type in KEEPING or copies(node)


def _multiplies(node: Any) -> bool:
    """Whether a node may multiply and accumulate; unknown nodes may."""
    alone = node.op_type == "Einsum" and len(node.input) < 2
    return (node.op_type in MULTIPLYING and not alone) or onnx_package.foreign(node)
