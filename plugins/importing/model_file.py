"""An ONNX file as a graph with the shape of every tensor. Sizes are checked before reading or computing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from operator import is_not
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SpecError, shortened, unknown
from sparsemap.files import check_file, shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.spec.structuring import CONTROL
from sparsemap.writing import replacing

from .constants import WORDS, WORDS_PER_BYTE, Constants
from .folding import NODES, Folding, ImportChoices
from .onnx_package import FILE_BYTES, choice, dims_text, foreign, onnx_of, reported, shape_of, told

DEPTH = 24
"""Deepest nesting of functions, and of graphs within nodes."""
TERM = r"[A-Za-z]{0,40}(\.\.\.)?[A-Za-z]{0,40}"
NAMES = {"name", "op_type", "domain", "input", "output", "dim_param"}
"""Fields of ONNX messages whose texts a network repeats."""
EQUATION = re.compile(rf"{TERM}(,{TERM})*(->{TERM})?")


@attrs.frozen(kw_only=True)
class OnnxModel:
    """A graph with inferred shapes."""

    path: Path
    proto: Any
    """The model; external tensors are not read yet."""
    inputs: tuple[str, ...]
    """Input tensors of the graph, without constants."""
    batch: int
    """First dimension of all inputs with two or more dimensions; 1 if the inputs differ."""
    shapes: Mapping[str, tuple[int, ...]]
    """Shapes by tensor, only where the inputs determine all sizes."""
    types: Mapping[str, int]
    """ONNX's element type number by tensor, where known."""
    constants: Constants
    open: Mapping[str, tuple[Any, ...]]
    """Sizes by tensor, with a name or None for open sizes."""
    values: Mapping[str, Array]
    """Words by tensor, where determined by sizes and small constants."""

    @property
    def file(self) -> str:
        return shown(self.path)

    @property
    def open_batches(self) -> dict[str, Any]:
        """By input, the name of a first dimension without a size in the file."""
        inputs = [value for value in self.proto.graph.input if value.name in self.inputs]
        firsts = {x.name: (shape_of(x.type) or [1])[0] for x in inputs}
        return {name: first for name, first in firsts.items() if not isinstance(first, int) or first < 0}

    def shape(self, name: str, node: Any) -> tuple[int, ...]:
        """Shape of a tensor; SpecError if the inputs do not determine the shape, or if the tensor is empty."""
        if not name:
            raise SpecError.at(self.file, told(node), "lacks an input that it multiplies")
        if name not in self.shapes:
            where = self._unsized(name)
            why = "the inputs; export the model with fixed sizes"
            if where is not None and foreign(where):
                why = f"what {told(where)} of '{where.domain or 'ai.onnx'}' is given; state it in the file (value_info)"
            if where is not None and choice(where):
                why = f"the inputs, since data decide what {told(where)} runs; say it with {choice(where)}"
            for made in where.output if where is not None else ():
                axes = [axis for axis, size in enumerate(self.open.get(made, ())) if not isinstance(size, int)]
                if axes:
                    dims = " ".join(f"--dim {made}:{axis}=N" for axis in axes)
                    why = f"the inputs: data say how long '{made}' of {told(where)} is; choose it with {dims}"
            raise SpecError.at(self.file, told(node), f"the shape of tensor '{name}' does not follow from {why}")
        if min(self.shapes[name], default=1) < 1:
            raise SpecError.at(self.file, told(node), f"tensor '{name}' is {dims_text(self.shapes[name])}: no words")
        return self.shapes[name]

    def _unsized(self, name: str) -> Any:
        """The first node before a tensor with shaped inputs and unshaped outputs; None: no such node."""
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
        """The values of a constant; SpecError if too large to compute."""
        return self.constants.value(name, self.shapes)


def read_model(path: Path, choices: ImportChoices) -> OnnxModel:
    """Read a model and infer its shapes; the batch is 1 unless chosen.

    The batch is an open first dimension of the inputs. SpecError for a file that is no model, exceeds the limits of
    this module, or has sizes without a value."""
    onnx, file = onnx_of(), shown(path)
    check_file(path, FILE_BYTES)
    with reported(file, "", "is not an ONNX model that can be read"):
        proto = onnx.load(path, load_external_data=False)
    _check_texts(proto, file)
    proto = _inlined(proto, file)
    _write_out(proto, path)
    if not proto.graph.node:
        raise SpecError.at(file, "", "is not an ONNX model: its graph has no nodes")
    _check_order(proto.graph, file)
    with reported(file, "", "has a graph that is not valid"):
        constants = Constants.of(proto, path)
    given = [value for value in proto.graph.input if value.name not in constants.tensors]
    sized, size = _size_inputs(given, choices, file)
    names = {
        dim: known
        for value in given
        for dim, known in zip(shape_of(value.type) or (), shape_of(sized[value.name]) or (), strict=True)
        if isinstance(dim, str) and isinstance(known, int)
    }
    folding = Folding(file, proto, constants, choices, dict(sized), _stated(proto.graph, names))
    with reported(file, "", "has a graph that is not valid"):
        folding.run()
    _check_choices(choices, given, folding, file)
    shapes = {name: tuple(found) for name, kind in folding.types.items() if (found := shape_of(kind)) is not None}
    if len(folding.nodes) != len(proto.graph.node) or any(map(is_not, folding.nodes, proto.graph.node)):
        del proto.graph.node[:], proto.graph.initializer[:]
        proto.graph.node.extend(folding.nodes)
        for name, tensor in constants.tensors.items():
            proto.graph.initializer.add().CopyFrom(tensor)
            proto.graph.initializer[-1].name = name
    return OnnxModel(
        path=path, proto=proto, inputs=tuple(value.name for value in given), batch=size, constants=constants,
        shapes={name: found for name, found in shapes.items() if all(isinstance(item, int) for item in found)},
        open=shapes, types={name: kind.tensor_type.elem_type for name, kind in folding.types.items()},
        values=folding.values,
    )  # fmt: skip


def write_zeros(path: Path, out: Path, zeros: Mapping[str, Array]) -> None:
    """Write a copy of the model with zeros at flat positions `zeros`, by tensor; the tensors must be constants of the
    graph."""
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
    """The model with its functions written out. Nodes are counted first, since nested calls can grow exponentially."""
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


def _write_out(proto: Any, path: Path) -> None:
    """Replace sparse tensors by dense tensors of the graph."""
    onnx, graph, room = onnx_of(), proto.graph, WORDS + WORDS_PER_BYTE * path.stat().st_size
    values = [(node, one) for node in graph.node for one in node.attribute if one.name == "sparse_value"]
    named = [(node.output[0], one.sparse_tensor) for node, one in values]
    for name, sparse in (*((one.values.name, one) for one in graph.sparse_initializer), *named):
        dims, place = tuple(sparse.dims), f"tensor '{name}'"
        if min(dims, default=0) < 0 or math.prod(dims) > room:
            text = f"is {dims_text(dims)}, expected sizes from 0 on and no more than {room:,} words"
            raise SpecError.at(shown(path), place, text)
        room -= math.prod(dims)
        with reported(shown(path), place, "cannot be read"):
            found, places = map(onnx.numpy_helper.to_array, (sparse.values, sparse.indices))
            flat = places if places.ndim < 2 else np.ravel_multi_index(tuple(places.T), dims)
            words = np.zeros(dims, found.dtype)
            words[np.unravel_index(flat, dims)] = found
            graph.initializer.append(onnx.numpy_helper.from_array(words, name))
    del graph.sparse_initializer[:]
    for node, _ in values:
        graph.node.remove(node)


def _check_texts(message: Any, file: str) -> None:
    """Raise SpecError for a text that is not UTF-8, and for a name that no spec may hold."""
    for field, found in message.ListFields():
        if field.type not in (field.TYPE_MESSAGE, field.TYPE_STRING) or field.name == "doc_string":
            continue
        for value in found if hasattr(found, "extend") else [found]:
            if field.type == field.TYPE_MESSAGE:
                _check_texts(value, file)
            elif isinstance(value, bytes):  # what protobuf gives in place of text
                raise SpecError.at(file, field.full_name, f"is {shortened(value)}, expected text in UTF-8")
            elif field.name in NAMES and CONTROL.search(value):
                raise SpecError.at(file, field.full_name, f"{shortened(value)} holds a control character")


def _check_order(graph: Any, file: str) -> None:
    """Raise SpecError if a node reads a tensor made later or never, against the ONNX standard."""
    later, known = {name for node in graph.node for name in node.output if name}, set[str]()
    known |= {each.name for each in (*graph.input, *graph.initializer)}
    for node in graph.node:
        if name := next((name for name in node.input if name in later), ""):
            text = f"reads tensor '{name}', which a later node makes: nodes have to be in the order in which they run"
            raise SpecError.at(file, told(node), text)
        if name := next((name for name in node.input if name and name not in known), ""):
            raise SpecError.at(file, told(node), f"reads what nothing makes: {unknown('tensor', name, known)}")
        later -= set(node.output)
        known |= {name for name in node.output if name}
    for value in graph.output:
        if value.name not in known:
            raise SpecError.at(file, "output of the graph", unknown("tensor", value.name, known))


# ---------------------------------------------------------------------------------------------------------------- sizes


def _size_inputs(inputs: Any, choices: ImportChoices, file: str) -> tuple[dict[str, Any], int]:
    """The types of the inputs with all sizes, and the batch."""
    shapes: dict[str, list[Any]] = {}
    types, sizes, missing = dict[str, Any](), dict[str, int](), dict[str, Any]()
    opened = False
    named = {dim for value in inputs for dim in shape_of(value.type) or () if isinstance(dim, str)}
    for name in choices.dims:
        if name not in named and ":" not in name:
            raise SpecError.at(file, "", f"--dim: {unknown('dimension', name, named)}")
    for value in inputs:
        shape = shape_of(value.type)
        if shape is None:
            raise SpecError.at(file, f"input '{value.name}'", "has no shape, expected one, with names or sizes")
        types[value.name] = sized = onnx_of().TypeProto()
        sized.CopyFrom(value.type)
        shapes[value.name] = shape
        for axis, dim in enumerate(shape):
            free, own = not isinstance(dim, int) or dim < 0, f"{value.name}:{axis}"
            opened = opened or (axis == 0 and free)
            size = choices.dims.get(own, choices.dims.get(str(dim)) if isinstance(dim, str) else None) if free else dim
            size = (choices.batch or 1) if size is None and axis == 0 else size
            place = f"input '{value.name}', dimension {axis}"
            if size is None:
                called = isinstance(dim, str) and re.fullmatch(r"[\w./-]+", dim) and shape.count(dim) == 1
                name = dim if called else own
                about = f", its name is '{dim}'" if dim and isinstance(dim, str) else ""
                text = f"has no size{about}; give it one with --dim {name}=N"
                missing.setdefault(name, *SpecError.at(file, place, text).mistakes)
                continue
            if size < 1:
                raise SpecError.at(file, place, f"is {size}, expected at least 1")
            sized.tensor_type.shape.dim[axis].dim_value = shape[axis] = size
            sizes |= {dim: size} if isinstance(dim, str) else {}
    if missing:
        raise SpecError(missing.values())
    if not any(shapes.values()):
        raise SpecError.at(file, "", "has no input with dimensions; export it with one")
    firsts = {name: shape[0] for name, shape in shapes.items() if len(shape) > 1 or len(shapes) == 1}
    for name, first in firsts.items():
        if choices.batch is not None and not opened and first != choices.batch:
            raise SpecError.at(file, f"input '{name}'", f"has a batch of {first}, and --batch is {choices.batch}")
    return types, int(next(iter(firsts.values()))) if len(set(firsts.values())) == 1 else 1


def _stated(graph: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
    """By tensor, the type stated in the file, with the sizes of named dimensions."""
    found = {}
    for value in (*graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim if shape_of(value.type) is not None else ():
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
        found[value.name] = value.type
    return found


def _check_choices(choices: ImportChoices, inputs: Any, folding: Folding, file: str) -> None:
    """Raise SpecError for a choice without a matching place in the file."""
    places = {f"{value.name}:{axis}" for value in inputs for axis, _ in enumerate(shape_of(value.type) or ())}
    for name in choices.dims:
        if ":" in name and name not in places | folding.used:
            raise SpecError.at(file, "", f"--dim: {unknown('open dimension', name, places)}")
    graphs = {
        kind: [node.name or node.output[0] for node in folding.nodes if node.op_type == kind] for kind in ("If", "Loop")
    }
    for option, kind, given in (("branch", "If", choices.branches), ("loop", "Loop", choices.loops)):
        for name in given:
            if name not in folding.used:
                raise SpecError.at(file, "", f"--{option}: {unknown(f'{kind} without a choice', name, graphs[kind])}")
