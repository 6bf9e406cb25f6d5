"""An ONNX file as its graph with the shape of every tensor, and the values of constants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import SpecError, need, shortened, unknown
from sparsemap.files import check_file, shown
from sparsemap.pieces.contracts.base import Array

FILE_BYTES = 64 << 30
SMALL = 1024
"""Words up to which constants take part in the inference of shapes, as those that say how a tensor is reshaped."""


def onnx_of(module: str = "onnx") -> Any:
    """The package `onnx`, or one of its modules."""
    return need(module, "import of ONNX models", "onnx")


@attrs.frozen(kw_only=True)
class Model:
    """A graph whose shapes are known."""

    file: str
    proto: Any
    inputs: tuple[str, ...]
    """Tensors that the graph is given; constants left out."""
    batch: int
    shapes: Mapping[str, tuple[int, ...]]
    """By tensor; those that do not follow from the inputs are missing."""
    _constants: dict[str, Any]
    """By tensor: as in the file, or as arrays once they were asked for."""
    _makers: Mapping[str, Any]
    """The node that makes a tensor, for those that are computed from constants."""

    def is_constant(self, name: str) -> bool:
        return name in self._constants or name in self._makers

    def constant(self, name: str) -> Array:
        """The values of a constant. Those of nodes between constants, as where weights are dequantised, are computed."""
        found = self._constants.get(name)
        if found is None:
            node = self._makers[name]
            with reported(self.file, told(node)):
                run = onnx_of("onnx.reference").ReferenceEvaluator(_single(node, self.proto))
                given = {text: self.constant(text) for text in node.input if text}
                self._constants.update(zip(node.output, run.run(None, given), strict=True))
            found = self._constants[name]
        if hasattr(found, "data_type"):
            with reported(self.file, f"tensor '{name}'"):
                found = onnx_of("onnx.numpy_helper").to_array(found)
        return found

    def shape(self, name: str, node: Any) -> tuple[int, ...]:
        """SpecError if it does not follow from the inputs."""
        if name not in self.shapes:
            text = f"the shape of tensor '{name}' does not follow from the inputs; export the model with fixed sizes"
            raise SpecError.at(self.file, told(node), text)
        return self.shapes[name]


def told(node: Any) -> str:
    """A node in messages."""
    return f"{node.op_type} '{node.name or node.output[0]}'"


def read_model(path: Path, batch: int | None, dims: Mapping[str, int]) -> Model:
    """Reads a model and infers its shapes; `dims` has the sizes of named dimensions, the batch is 1 unless given.

    The batch is the first dimension of every input. SpecError for a file that is no model, or has sizes without a value.
    """
    onnx = onnx_of()
    check_file(path, FILE_BYTES)
    with reported(shown(path), "", "is not an ONNX model that can be read"):
        proto = onnx.load(path)
        proto = onnx_of("onnx.inliner").inline_local_functions(proto) if proto.functions else proto
    if not proto.graph.node:
        raise SpecError.at(shown(path), "", "is not an ONNX model: its graph has no nodes")
    with reported(shown(path), "", "has a graph that is not valid"):
        constants = {tensor.name: tensor for tensor in proto.graph.initializer}
        makers = _makers(proto.graph, constants)
        sized, size = _sized(proto, constants, batch, dims, shown(path))
        inferred = onnx.shape_inference.infer_shapes(sized, check_type=True, strict_mode=True, data_prop=True)
        shapes = {name: tuple(map(int, tensor.dims)) for name, tensor in constants.items()}
        for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
            shape = _shape(value)
            if shape is not None and all(isinstance(item, int) for item in shape):
                shapes[value.name] = tuple(item for item in shape if isinstance(item, int))
    inputs = tuple(value.name for value in proto.graph.input if value.name not in constants)
    return Model(
        file=shown(path), proto=proto, inputs=inputs, batch=size, shapes=shapes, constants=constants, makers=makers
    )


@contextmanager
def reported(file: str, place: str, text: str = "cannot be computed") -> Iterator[None]:
    """What the package raises inside becomes a SpecError at this place; it has many classes of errors."""
    try:
        yield
    except SpecError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = shortened(" ".join(lines[:2]) or type(error).__name__, 300)
        raise SpecError.at(file, place, f"{text}: {why}") from error


def _makers(graph: Any, constants: dict[str, Any]) -> dict[str, Any]:
    """The nodes between constants, by output; those named Constant are in `constants` afterwards."""
    makers: dict[str, Any] = {}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
        elif (node.op_type == "Constant" or node.input) and all(
            name in constants or name in makers for name in node.input if name
        ):
            makers |= dict.fromkeys(node.output, node)
    return makers


def _single(node: Any, proto: Any) -> Any:
    """A model of one node, of the version of the model that it is from."""
    onnx = onnx_of()
    inputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = onnx.helper.make_graph([node], "node", inputs, outputs)
    versions = proto.opset_import
    if node.op_type == "DequantizeLinear":  # the reference begins with version 19, and older ones compute the same
        versions = [onnx.helper.make_opsetid("", max(19, *(item.version for item in versions)))]
    return onnx.helper.make_model(graph, opset_imports=versions, ir_version=max(proto.ir_version, 9))


# ---------------------------------------------------------------------------------------------------------------- sizes


def _sized(
    proto: Any, constants: Mapping[str, Any], batch: int | None, dims: Mapping[str, int], file: str
) -> tuple[Any, int]:
    """A model with the graph of this one, the size of every dimension of its inputs, and without large constants."""
    onnx = onnx_of()
    sized = onnx.ModelProto()
    sized.ir_version = max(proto.ir_version, 4)  # before, constants had to be inputs as well
    sized.opset_import.extend(proto.opset_import)
    graph = sized.graph
    graph.name = proto.graph.name or "graph"
    graph.node.extend(
        node for node in proto.graph.node if node.op_type != "Constant" or node.output[0] not in constants
    )
    for value in proto.graph.output:  # sizes of outputs are inferred: those in the file may be names
        graph.output.add().CopyFrom(value)
        graph.output[-1].type.tensor_type.ClearField("shape")
    size = _size_inputs(graph, [value for value in proto.graph.input if value.name not in constants], batch, dims, file)
    for name, tensor in constants.items():
        if math.prod(tensor.dims) <= SMALL:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
        else:
            graph.input.append(onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims))
    return sized, size


def _size_inputs(graph: Any, inputs: Any, batch: int | None, dims: Mapping[str, int], file: str) -> int:
    """Adds the inputs with all their sizes; the batch."""
    shapes: dict[str, list[int | str]] = {}
    for value in inputs:
        shape = _shape(value)
        if shape is None:
            raise SpecError.at(file, f"input '{value.name}'", "has no shape, expected one, with names or sizes")
        shapes[value.name] = [f"{value.name}:{axis}" if size is None else size for axis, size in enumerate(shape)]
    free = {size for shape in shapes.values() for size in shape if isinstance(size, str)}
    for name in dims:
        if name not in free:
            raise SpecError.at(file, "", f"--dim: {unknown('dimension', name, free)}")
    first: dict[str, int] = {}
    for value in inputs:
        value = graph.input.add(name=value.name, type=value.type)
        for axis, dim in enumerate(shapes[value.name]):
            size = dims.get(dim, (batch or 1) if axis == 0 else None) if isinstance(dim, str) else dim
            if size is None:
                text = f"has no size, its name is '{dim}'; give it one with --dim {dim}=N"
                raise SpecError.at(file, f"input '{value.name}', dimension {axis}", text)
            value.type.tensor_type.shape.dim[axis].dim_value = size
            if axis == 0:
                first[value.name] = size
    if not first:
        raise SpecError.at(file, "", "has no input with dimensions, so no batch")
    for name, size in first.items():
        if batch is not None and size != batch:
            raise SpecError.at(file, f"input '{name}'", f"has a batch of {size}, and --batch is {batch}")
    return next(iter(first.values()))


def _shape(value: Any) -> list[int | str | None] | None:
    """Size, name or None for every dimension of an input or output; None if it has no shape."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    return [item.dim_value if item.HasField("dim_value") else item.dim_param or None for item in kind.shape.dim]
