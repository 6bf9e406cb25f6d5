"""An ONNX file as its graph with the shape of every tensor. Sizes are checked before anything is read or computed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import SpecError, unknown
from sparsemap.files import check_file, shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.writing import replacing

from .constants import Constants
from .onnx_package import FILE_BYTES, dims_text, onnx_of, reported, told

NODES = 100_000
"""Of a graph, once its functions are written out."""
DEPTH = 24
"""Functions within functions, and graphs within nodes."""
SMALL = 1024
"""Words up to which constants take part in the inference of shapes, as those that say how a tensor is reshaped."""
TERM = r"[A-Za-z]{0,40}(\.\.\.)?[A-Za-z]{0,40}"
EQUATION = re.compile(rf"{TERM}(,{TERM})*(->{TERM})?")
LISTED = 1 << 16
"""Words of what is made of those: ONNX computes it while it infers shapes."""
WRITTEN = 1 << 22
"""Words of all tensors of one rank that nodes make or that are inputs: ONNX writes them out one by one, known or not."""


@attrs.frozen(kw_only=True)
class OnnxModel:
    """A graph whose shapes are known."""

    path: Path
    proto: Any
    """Tensors that lie in files of their own are not read yet."""
    inputs: tuple[str, ...]
    """Tensors that the graph is given; constants left out."""
    batch: int
    """The first dimension of all inputs that have two dimensions or more; 1 where they differ."""
    shapes: Mapping[str, tuple[int, ...]]
    """By tensor; those that do not follow from the inputs are missing."""
    types: Mapping[str, int]
    """By tensor, ONNX's number of its element type, as far as known."""
    constants: Constants

    @property
    def file(self) -> str:
        return shown(self.path)

    @property
    def open_batches(self) -> dict[str, str | None]:
        """By input, the name of its first dimension where that has no size in the file."""
        inputs = [value for value in self.proto.graph.input if value.name in self.inputs]
        return {x.name: first for x in inputs if not isinstance(first := (_shape(x) or [1])[0], int)}

    def shape(self, name: str, node: Any) -> tuple[int, ...]:
        """SpecError if it does not follow from the inputs, or if the tensor has no words."""
        if not name:
            raise SpecError.at(self.file, told(node), "lacks an input that it multiplies")
        if name not in self.shapes:
            where = self._unsized(name)
            why = "the inputs; export the model with fixed sizes"
            if where is not None and where.domain not in ("", "ai.onnx"):
                why = f"what {told(where)} of '{where.domain}' is given; state it in the file (value_info)"
            raise SpecError.at(self.file, told(node), f"the shape of tensor '{name}' does not follow from {why}")
        if min(self.shapes[name], default=1) < 1:
            raise SpecError.at(self.file, told(node), f"tensor '{name}' is {dims_text(self.shapes[name])}: no words")
        return self.shapes[name]

    def _unsized(self, name: str) -> Any:
        """The first node on the way to a tensor whose outputs have no shape though its inputs have one; None: there is none."""
        makers = {made: node for node in self.proto.graph.node for made in node.output}
        seen = set[str]()
        while (node := makers.get(name)) is not None and name not in seen:
            seen.add(name)
            missing = [given for given in node.input if given in makers and given not in self.shapes]
            if not missing:
                return node
            name = missing[0]
        return None

    def constant(self, name: str) -> Array:
        """The values of a constant; SpecError where it would be too large to compute."""
        return self.constants.value(name, self.shapes)


def read_model(path: Path, batch: int | None, dims: Mapping[str, int]) -> OnnxModel:
    """Reads a model and infers its shapes; `dims` has the sizes of named dimensions, the batch is 1 unless given.

    The batch is the first dimension of the inputs where it is open. SpecError for a file that is no model, is larger than
    the limits of this module, or has sizes without a value.
    """
    onnx, file = onnx_of(), shown(path)
    check_file(path, FILE_BYTES)
    with reported(file, "", "is not an ONNX model that can be read"):
        proto = onnx.load(path, load_external_data=False)
    proto = _inlined(proto, file)
    _check_order(proto.graph, file)
    if not proto.graph.node:
        raise SpecError.at(file, "", "is not an ONNX model: its graph has no nodes")
    with reported(file, "", "has a graph that is not valid"):
        constants = Constants.of(proto, path)
        _check_lists(proto.graph, constants.tensors, file)
        sized, size = _sized(proto, constants.tensors, batch, dims, file)
        _check_written(sized, constants.tensors, file)
        inferred = onnx.shape_inference.infer_shapes(sized, check_type=True, strict_mode=True, data_prop=True)
        shapes = {name: tuple(map(int, tensor.dims)) for name, tensor in constants.tensors.items()}
        types = {name: tensor.data_type for name, tensor in constants.tensors.items()}
        for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
            types.setdefault(value.name, value.type.tensor_type.elem_type)
            shape = _shape(value)
            if shape is not None and all(isinstance(item, int) for item in shape):
                shapes[value.name] = tuple(item for item in shape if isinstance(item, int))
    inputs = tuple(value.name for value in proto.graph.input if value.name not in constants.tensors)
    return OnnxModel(path=path, proto=proto, inputs=inputs, batch=size, shapes=shapes, types=types, constants=constants)


def write_zeros(path: Path, out: Path, zeros: Mapping[str, Array]) -> None:
    """The model again with zeros at these flat places of its tensors by name, which have to be constants of the graph."""
    onnx, file = onnx_of(), shown(path)
    with reported(file, "", "cannot be read"):
        proto = onnx.load(path)
    tensors = {tensor.name: tensor for tensor in proto.graph.initializer}
    values = [node for node in proto.graph.node if node.op_type == "Constant" and node.attribute[0].name == "value"]
    tensors |= {node.output[0]: node.attribute[0].t for node in values}
    for name, places in zeros.items():
        if name not in tensors:
            raise SpecError.at(file, f"tensor '{name}'", "is computed from others; its zeros cannot be written")
        array = onnx.numpy_helper.to_array(tensors[name]).copy()
        array.reshape(-1)[places] = 0
        tensors[name].CopyFrom(onnx.numpy_helper.from_array(array, name))
    with replacing(out) as temporary:
        onnx.save(proto, temporary)


# ------------------------------------------------------------------------------------------------------------ functions


def _inlined(proto: Any, file: str) -> Any:
    """The model with its functions written out. They are counted before: some can call each other twice at each step."""
    bodies = {(function.domain, function.name): function.node for function in proto.functions}
    counted: dict[Any, int] = {}

    def count(nodes: Any, within: tuple[Any, ...]) -> int:
        if len(within) > DEPTH:
            raise SpecError.at(file, "", f"nests functions or graphs more than {DEPTH} deep")
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in within:
                raise SpecError.at(file, told(node), "calls the function that it is part of")
            if key in bodies and key not in counted:
                counted[key] = count(bodies[key], (*within, key))
            for item in node.attribute if node.op_type == "Einsum" else ():  # ONNX's inference does not end for some
                if item.name == "equation" and not EQUATION.fullmatch(item.s.decode("latin-1").replace(" ", "")):
                    text = f"has the equation {item.s!r:.60}, expected a form such as 'ij,jk->ik'"
                    raise SpecError.at(file, told(node), text)
            graphs = [graph for item in node.attribute for graph in (item.g, *item.graphs) if graph.node]
            total += counted.get(key, 1) + sum(count(graph.node, (*within, None)) for graph in graphs)
        if total > NODES:
            raise SpecError.at(file, "", f"has more than {NODES:,} nodes, counting those of its functions at each call")
        return total

    count(proto.graph.node, ())
    with reported(file, "", "has functions that cannot be written out"):
        return onnx_of("onnx.inliner").inline_local_functions(proto) if proto.functions else proto


def _check_order(graph: Any, file: str) -> None:
    """SpecError for a node that reads what a later one makes, as no ONNX file may have it."""
    later = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if name := next((name for name in node.input if name in later), ""):
            text = f"reads tensor '{name}', which a later node makes: nodes have to be in the order in which they run"
            raise SpecError.at(file, told(node), text)
        later -= set(node.output)


# ---------------------------------------------------------------------------------------------------------------- sizes


def _check_lists(graph: Any, constants: Mapping[str, Any], file: str) -> None:
    """SpecError where sizes are joined to lists of any length, which ONNX would write out."""
    integers = [(name, each) for name, each in constants.items() if each.data_type in (each.INT32, each.INT64)]
    words = {name: math.prod(each.dims) for name, each in integers if math.prod(each.dims) <= SMALL}
    for node in graph.node:
        given = [words.get(name, -1) for name in node.input if name]
        if node.op_type in ("Shape", "Size"):
            words.update(dict.fromkeys(node.output, SMALL))
        elif given and min(given) >= 0:
            count = sum(given) if node.op_type == "Concat" else max(given)
            if count > LISTED:
                raise SpecError.at(file, told(node), f"makes a list of {count:,} sizes, at most {LISTED:,} are read")
            words.update(dict.fromkeys(node.output, count))


def _check_written(sized: Any, constants: Mapping[str, Any], file: str) -> None:
    """SpecError where tensors of one rank have more words than can be written out; constants are no more than the file."""
    graph = onnx_of("onnx.shape_inference").infer_shapes(sized).graph
    words = {
        value.name: int(value.type.tensor_type.shape.dim[0].dim_value)
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.name not in constants and len(value.type.tensor_type.shape.dim) == 1
    }
    total = 0
    for node in graph.node:
        total += sum(words.get(name, 0) for name in (*node.input, *node.output))
        if total > WRITTEN:
            text = f"tensors of one rank have {total:,} words up to here, at most {WRITTEN:,} are read"
            raise SpecError.at(file, told(node), text)


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
    graph.node.extend(x for x in proto.graph.node if x.op_type != "Constant" or x.output[0] not in constants)
    for value in proto.graph.output:  # sizes of outputs are inferred: those in the file may be names
        graph.output.add().CopyFrom(value)
        graph.output[-1].type.tensor_type.ClearField("shape")
    size = _size_inputs(graph, [value for value in proto.graph.input if value.name not in constants], batch, dims, file)
    _size_unknown(graph, proto.graph)
    for name, tensor in constants.items():
        if math.prod(tensor.dims) <= SMALL and tensor.data_location != tensor.EXTERNAL:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
        else:
            graph.input.append(onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims))
    return sized, size


def _size_unknown(graph: Any, given: Any) -> None:
    """Adds the shapes that the file gives of what operators make that ONNX does not know, as far as their sizes follow."""
    has = onnx_of("onnx.defs").has
    domains = {"ai.onnx": ""}
    strange = [node for node in graph.node if not has(node.op_type, domains.get(node.domain, node.domain))]
    made = {name for node in strange for name in node.output}
    before = {value.name: _shape(value) for value in given.input}
    sizes: dict[Any, Any] = {}
    for value in graph.input:
        pairs = zip(before.get(value.name) or (), _shape(value) or (), strict=False)
        sizes |= {name: size for name, size in pairs if isinstance(name, str)}
    for value in (*given.value_info, *given.output):
        shape = [size if isinstance(size, int) else sizes.get(size) for size in _shape(value) or ()]
        if value.name not in made or not shape or not all(isinstance(size, int) and size >= 1 for size in shape):
            continue
        known = next((each for each in graph.output if each.name == value.name), None) or graph.value_info.add()
        known.CopyFrom(value)
        for dim, size in zip(known.type.tensor_type.shape.dim, shape, strict=True):
            dim.dim_value = size


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
    opened = False
    for value in inputs:
        sized = graph.input.add(name=value.name, type=value.type)
        for axis, dim in enumerate(shapes[value.name]):
            opened = opened or (axis == 0 and isinstance(dim, str))
            size = dims.get(dim, (batch or 1) if axis == 0 else None) if isinstance(dim, str) else dim
            place = f"input '{value.name}', dimension {axis}"
            if size is None:
                raise SpecError.at(file, place, f"has no size, its name is '{dim}'; give it one with --dim {dim}=N")
            if size < 1:
                raise SpecError.at(file, place, f"is {size}, expected at least 1")
            sized.type.tensor_type.shape.dim[axis].dim_value = size
            shapes[value.name][axis] = size
    if not any(shapes.values()):
        raise SpecError.at(file, "", "has no input with dimensions, so no batch")
    firsts = {name: shape[0] for name, shape in shapes.items() if len(shape) > 1 or len(shapes) == 1}
    for name, first in firsts.items():
        if batch is not None and not opened and first != batch:
            raise SpecError.at(file, f"input '{name}'", f"has a batch of {first}, and --batch is {batch}")
    return int(next(iter(firsts.values()))) if len(set(firsts.values())) == 1 else 1


def _shape(value: Any) -> list[int | str | None] | None:
    """Size, name or None for every dimension of an input or output; None if it has no shape."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    return [item.dim_value if item.HasField("dim_value") else item.dim_param or None for item in kind.shape.dim]
