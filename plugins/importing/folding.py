"""A pass over a graph, node by node: shapes of all tensors, words of small tensors, branches and loops written out.

The package `onnx` infers the shapes of a node at a time, with the words of the node's small inputs. Results that follow
from sizes (Shape, Gather, Range, Where ...) are thus known to the next node, and nothing large is computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array

from .constants import COMPUTED, Constants
from .foreign import standard
from .onnx_package import attributes_of, has_graphs, onnx_of, reported, shape_of, told

NODES = 100_000
"""Most nodes of a graph after writing out functions, branches and loops."""
SMALL = 1024
"""Most words of float tensors with known values."""
LISTED = 1 << 16
"""Most words of whole-number tensors with known values."""
FOLDED = 20_000
"""Most nodes with computed words."""
WRITTEN = 1 << 30
"""Most words in all tensors of one rank, since ONNX may write out each word."""
MODERN = 23
"""Operator version of nodes generated for other domains and loops."""


@attrs.frozen(kw_only=True)
class ImportChoices:
    """User choices for sizes and graphs left open by the file."""

    batch: int | None = None
    dims: Mapping[str, int] = attrs.field(factory=dict)
    """Sizes by the name of a dimension, or by TENSOR:AXIS."""
    branches: Mapping[str, str] = attrs.field(factory=dict)
    """"then" or "else", by If node."""
    loops: Mapping[str, int] = attrs.field(factory=dict)
    """Number of steps, by Loop node."""


@attrs.define
class Folding:
    """The pass and its results."""

    file: str
    proto: Any
    constants: Constants
    choices: ImportChoices
    types: dict[str, Any]
    """ONNX type by tensor, with the inferred sizes."""
    stated: Mapping[str, Any]
    """Type stated in the file by tensor, with sizes if stated."""
    values: dict[str, Array] = attrs.field(factory=dict)
    nodes: list[Any] = attrs.field(factory=list)
    used: set[str] = attrs.field(factory=set)
    """Keys of the choices used."""
    _seen: set[str] = attrs.field(factory=set)
    _folded: int = 0
    _listed: int = 0

    def run(self) -> None:
        for name, tensor in self.constants.tensors.items():
            self._known(name, tensor)
        self._seen = {*self.types}
        self._nodes(self.proto.graph.node, {}, "")

    def _known(self, name: str, tensor: Any) -> None:
        self.types[name] = onnx_of("onnx.helper").make_tensor_type_proto(tensor.data_type, tensor.dims)
        whole = tensor.data_type in (tensor.INT32, tensor.INT64, tensor.BOOL)
        if math.prod(tensor.dims) <= (LISTED if whole else SMALL) and self.constants.readable(name):
            self.values[name] = self.constants.read(name)

    def _nodes(self, nodes: Sequence[Any], scope: dict[str, str], prefix: str) -> None:
        """Process the nodes of a graph; `scope` maps names of an inner graph to tensors of the whole graph."""
        for each in nodes:
            node = each
            if prefix:
                node = onnx_of().NodeProto()
                node.CopyFrom(each)
                node.name = prefix + (each.name or each.output[0])
                node.input[:] = [scope.get(name, name) for name in each.input]
                scope.update({name: prefix + name for name in each.output if name})
                node.output[:] = [name and prefix + name for name in each.output]
            if node.op_type in WRITTEN_OUT and WRITTEN_OUT[node.op_type](self, node, scope):
                continue
            with reported(self.file, told(node)):
                made = standard(node, self)
            for one in made or [node]:
                self._take(one, scope, MODERN if made else 0)

    def make(self, kind: str, given: Sequence[str], out: str | Sequence[str], like: Any = None, **about: Any) -> Any:
        """A replacement node with attributes `about` and the name of `like`."""
        outputs = [out] if isinstance(out, str) else list(out)
        name = like.name or like.output[0] if like is not None else outputs[0]
        return onnx_of("onnx.helper").make_node(kind, list(given), outputs, name=name, **about)

    def constant(self, name: str, value: Any) -> str:
        """Add a constant that is not in the file, and return its name."""
        tensor = value if hasattr(value, "data_type") else onnx_of("onnx.numpy_helper").from_array(value, name)
        self.constants.tensors[name] = tensor
        self._known(name, tensor)
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor; empty if unknown."""
        found = shape_of(self.types[name]) if name in self.types else None
        return tuple(found) if found is not None and all(isinstance(size, int) for size in found) else ()

    # -- one node

    def _take(self, node: Any, scope: Mapping[str, str] | None = None, version: int = 0) -> None:
        """Append a node, and set the types and words of its outputs."""
        self._room(node, 1)
        for name in filter(None, node.output):
            if name in self._seen:
                raise SpecError.at(self.file, told(node), f"makes tensor '{name}', which is there already")
            self._seen.add(name)
        self.nodes.append(node)
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].HasField("t"):
            self.constants.add(node.output[0], node.attribute[0].t)
            self._known(node.output[0], node.attribute[0].t)
            return
        self.constants.made(node)
        self._infer(node, scope or {}, version)
        shapes = [self.shape(name) for name in (*node.input, *node.output) if name not in self.constants.tensors]
        self._listed += sum(shape[0] for shape in shapes if len(shape) == 1)
        if self._listed > WRITTEN:
            text = f"tensors of one rank have {self._listed:,} words up to here, at most {WRITTEN:,} are read"
            raise SpecError.at(self.file, told(node), text)
        self._compute(node)

    def _room(self, node: Any, more: int) -> None:
        """Raise SpecError if `more` further nodes exceed the limit."""
        if len(self.nodes) + more > NODES:
            text = f"is more than the {NODES:,} nodes that are read, loops written out"
            raise SpecError.at(self.file, told(node), text)

    def _infer(self, node: Any, scope: Mapping[str, str], version: int) -> None:
        """Set the types of a node's outputs."""
        onnx = onnx_of()
        inner = {name: scope.get(name, name) for name in _captured(node)}
        given = {name: name for name in node.input if name} | inner
        found: dict[str, Any] = {}
        known = onnx.defs.has(node.op_type, *([node.domain] * (node.domain not in ("", "ai.onnx"))))
        if known and all(name in self.types for name in given.values()):
            single = onnx.ModelProto(ir_version=max(10, self.proto.ir_version))
            for item in self.proto.opset_import:
                least = version if item.domain in ("", "ai.onnx") else 0
                single.opset_import.add(domain=item.domain, version=max(item.version, least))
            graph = single.graph
            graph.name = "node"
            graph.node.append(node)
            for name, outer in given.items():
                if outer in self.values:
                    graph.initializer.add().CopyFrom(onnx.numpy_helper.from_array(self.values[outer], name))
                else:
                    graph.input.add(name=name).type.CopyFrom(self.types[outer])
            for name in filter(None, node.output):
                graph.output.add(name=name)
            try:
                with reported(self.file, told(node), "does not fit what it is given"):
                    inferred = onnx.shape_inference.infer_shapes(single, check_type=True, strict_mode=True)
            except SpecError:
                if not inner and not has_graphs(node):
                    raise
                inferred = onnx.ModelProto()  # nobody knows yet what it runs
            found = {value.name: value.type for value in inferred.graph.output if value.type.WhichOneof("value")}
        for name in filter(None, node.output):
            if (kind := found.get(name) or self.stated.get(name)) is not None:
                kinds = [each.tensor_type.elem_type for each in (kind, self.stated.get(name, kind))]
                if all(kinds) and kinds[0] != kinds[1]:
                    names = " and ".join(onnx.TensorProto.DataType.Name(one) for one in kinds)
                    raise SpecError.at(self.file, told(node), f"makes '{name}' of {names}, as follows and as is stated")
                self.types[name] = self._sized(name, kind)

    def _sized(self, name: str, known: Any) -> Any:
        """A type with open sizes filled in from the user's choices or the file."""
        sizes = shape_of(known)
        if sizes is None:
            stated = self.stated.get(name)
            return known if stated is None or shape_of(stated) is None else stated
        stated = shape_of(self.stated[name]) if name in self.stated else None
        for axis, size in enumerate(sizes):
            if isinstance(size, int):
                continue
            own = f"{name}:{axis}"
            chosen = self.choices.dims.get(own)
            if chosen is not None:
                self.used.add(own)
            elif stated is not None and len(stated) == len(sizes) and isinstance(stated[axis], int):
                chosen = stated[axis]
            if chosen is not None:
                known.tensor_type.shape.dim[axis].dim_value = chosen
        return known

    def _compute(self, node: Any) -> None:
        """Set the words of a node's outputs, if few and determined by sizes and constants."""
        if node.op_type in ("Shape", "Size"):
            shape = self.types.get(node.input[0])
            sizes = shape_of(shape) if shape is not None else None
            if sizes is not None and all(isinstance(size, int) for size in sizes):
                ends = attributes_of(node)
                found = sizes[ends.get("start", 0) : ends.get("end")] if node.op_type == "Shape" else math.prod(sizes)
                self.values[node.output[0]] = np.array(found, np.int64)
            return
        if node.op_type not in COMPUTED or node.domain not in ("", "ai.onnx") or has_graphs(node):
            return
        if not all(name in self.values for name in node.input if name):
            return
        outputs = [name for name in node.output if name]
        if any(name not in self.types or shape_of(self.types[name]) is None for name in outputs):
            return
        words = max(math.prod(self.shape(name)) for name in outputs)
        listed = node.op_type == "Concat" and len(self.shape(outputs[0])) == 1
        if listed and words > LISTED:
            text = f"makes a list of {words:,} sizes, at most {LISTED:,} are read"
            raise SpecError.at(self.file, told(node), text)
        kinds = {self.types[name].tensor_type.elem_type for name in outputs}
        whole = kinds <= {onnx_of().TensorProto.INT32, onnx_of().TensorProto.INT64, onnx_of().TensorProto.BOOL}
        if words > (LISTED if whole else SMALL):
            return
        self._folded += 1
        if self._folded > FOLDED:
            text = f"is more than the {FOLDED:,} nodes whose words are computed for sizes"
            raise SpecError.at(self.file, told(node), text)
        given = {name: self.values[name] for name in node.input if name}
        for name, value in zip(node.output, self.constants.computed(node, given), strict=True):
            self.values[name] = np.asarray(value)
            kind = self.types[name].tensor_type.elem_type
            self.types[name] = onnx_of("onnx.helper").make_tensor_type_proto(kind, self.values[name].shape)

    # -- graphs within nodes

    def _branch(self, node: Any, scope: Mapping[str, str]) -> bool:
        """Write out the executed branch of an If; False if the branch is unknown."""
        name = node.name or node.output[0]
        condition, chosen = self.values.get(node.input[0]), self.choices.branches.get(name)
        if chosen is not None:
            self.used.add(name)
        elif condition is None or condition.size != 1:
            return False
        else:
            chosen = "then" if condition.reshape(-1)[0] else "else"
        branch = attributes_of(node).get(f"{chosen}_branch")
        if branch is None:
            return False
        made = self._graph(branch, (), scope, f"{name}/")
        for out, name in zip(node.output, made, strict=False):
            if out:
                self._take(self.make("Identity", [name], out))
        return True

    def _graph(self, graph: Any, given: Sequence[str], scope: Mapping[str, str], prefix: str) -> list[str]:
        """Write out a graph within a node, and return the names of its outputs; `given`: tensors of its inputs."""
        inner = {**scope, **dict(zip((value.name for value in graph.input), given, strict=True))}
        for tensor in graph.initializer:
            inner[tensor.name] = prefix + tensor.name
            self.constants.add(prefix + tensor.name, tensor)
            self._known(prefix + tensor.name, tensor)
        self._nodes(graph.node, inner, prefix)
        return [inner.get(value.name, value.name) for value in graph.output]

    def _loop(self, node: Any, scope: Mapping[str, str]) -> bool:
        """Write out the steps of a Loop; False if their number is unknown."""
        body, name = attributes_of(node).get("body"), node.name or node.output[0]
        if body is None:
            return False
        given = [*node.input, "", ""][: max(2, len(node.input))]
        steps = self.choices.loops.get(name)
        if steps is not None:
            self.used.add(name)
        chosen, most = steps is not None, self.values.get(given[0])
        if steps is None and most is not None:
            steps = int(most.reshape(-1)[0])
        going = self.values.get(given[1]) if given[1] else np.array(True)
        if not chosen and (going is None or (steps is None and (given[0] or not given[1]))):
            return False
        states, rows, step = list(given[2:]), list[list[str]](), 0
        self._room(node, (steps or 0) * len(body.node))
        while (steps is None or step < steps) and (chosen or bool(going)):
            prefix = f"{name}/{step}/"
            turn, go = self.constant(f"{prefix}step", np.array(step)), self.constant(f"{prefix}go", np.array(True))
            condition, *made = self._graph(body, (turn, go, *states), scope, prefix)
            states, step = made[: len(states)], step + 1
            rows.append(made[len(states) :])
            going = self.values.get(condition)
            if going is None and not chosen and (steps is None or step < steps):
                text = f"runs as long as its data say; give its steps with --loop {name}=N"
                raise SpecError.at(self.file, told(node), text)
        if rows:
            self._outputs(node, states, rows, [0] * len(rows[0]))
        return bool(rows)

    def _scan(self, node: Any, scope: Mapping[str, str]) -> bool:
        """Write out the steps of a Scan; False if the length of its inputs is unknown."""
        about, name = attributes_of(node), node.name or node.output[0]
        body, count = about.get("body"), about.get("num_scan_inputs", 0)
        if body is None or not 0 < count <= len(node.input):
            return False
        states, over = list(node.input[:-count]), node.input[-count:]
        axes = about.get("scan_input_axes") or [0] * count
        shapes = [self.shape(each) for each in over]
        if not all(shapes) or "" in states:
            return False
        length, rows = shapes[0][axes[0]], list[list[str]]()
        self._room(node, length * len(body.node))
        back, kept = about.get("scan_input_directions") or [0] * count, len(states)
        for step in range(length):
            prefix, parts = f"{name}/{step}/", []
            for each, axis, turned in zip(over, axes, back, strict=True):
                place = self.constant(f"{prefix}{each}/at", np.array(length - 1 - step if turned else step))
                self._take(self.make("Gather", [each, place], f"{prefix}{each}", axis=axis))
                parts.append(f"{prefix}{each}")
            made = self._graph(body, (*states, *parts), scope, prefix)
            states = made[:kept]
            rows.append(made[kept:])
        found = len(rows[0])
        if any(about.get("scan_output_directions") or ()):
            rows = rows[::-1]
        self._outputs(node, states, rows, about.get("scan_output_axes") or [0] * found)
        return True

    def _outputs(self, node: Any, states: Sequence[str], rows: Sequence[Sequence[str]], axes: Sequence[int]) -> None:
        """Make the outputs: states after the last step, and the concatenated outputs of all steps."""
        for out, name in zip(node.output, states, strict=False):
            if out:
                self._take(self.make("Identity", [name], out))
        for out, axis, parts in zip(node.output[len(states) :], axes, zip(*rows, strict=True), strict=True):
            if not out:
                continue
            where = self.constant(f"{out}/axis", np.array([axis]))
            for part in parts:
                self._take(self.make("Unsqueeze", [part, where], f"{out}/{part}"), version=MODERN)
            self._take(self.make("Concat", [f"{out}/{part}" for part in parts], out, axis=axis))


WRITTEN_OUT = {"If": Folding._branch, "Loop": Folding._loop, "Scan": Folding._scan}


def _captured(node: Any) -> Iterator[str]:
    """Names read by graphs within a node, possibly of tensors around the node."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            own = {name for each in graph.node for name in each.output}
            own |= {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            names = {name for each in graph.node for name in (*each.input, *_captured(each)) if name}
            yield from names - own
            yield from (value.name for value in graph.output if value.name not in own)
