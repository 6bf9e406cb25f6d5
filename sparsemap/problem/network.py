"""The nodes of a network: layers with workloads or operations, inputs and shapes, checked against each other."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from ..errors import Mistake, SpecError, placed, unknown
from ..files import grouped
from ..pieces.boundary import described, guarded, wrong
from ..pieces.contracts import Loops, Operation, Shape, Tensor, Workload
from ..pieces.registry import Registry
from ..pieces.study_spec import Network
from ..spec.structuring import Reader, collecting
from ..spec.unstructuring import unstructure
from .project import located
from .widths import width_of

INPUT = "input"
"""Name of the network's input in layers."""
OWN = ("name", "type", "workload", "repeat", "inputs", "tied", "activation")
"""Keys of a layer outside the fields of the workload or operation."""


@attrs.frozen(eq=False, slots=False)
class Node:
    """A layer of a network."""

    name: str
    piece: Workload | Operation
    loops: Loops | None
    """None for an operation, without anything to search."""
    inputs: tuple[str, ...]
    """Names of the input nodes; "input" is the network's."""
    repeat: int
    given: tuple[Shape, ...] = ()
    """Shapes of the inputs; empty for a list of layers without a graph."""
    shape: Shape = ()
    """Shape of the output; empty without a graph."""
    tied: str = ""
    """Earlier layer with the same weights."""
    activation: Operation | None = None
    """Arithmetic for every output word of a layer, before the word is written."""

    @property
    def macs(self) -> int:
        """Multiplications per repetition."""
        return math.prod(self.loops.sizes.values()) if self.loops else 0

    @property
    def weights(self) -> int:
        """Words of trained weights; 0 for a workload type without a named weight tensor."""
        name = getattr(self.piece, "weights", "")
        return sum(math.prod(shape) for tensor, shape in self._tensors if tensor.name == name)

    @cached_property
    def densities(self) -> dict[str, float]:
        """Share of nonzeros of every operand; the expected share for a range of densities."""
        return {t.name: t.density.occupancy(shape).density for t, shape in self._tensors if not t.output}

    @cached_property
    def content(self) -> str:
        """Sizes, tensors, densities, word width and number of inputs of the loops as text: equal text means the same
        search, and the same places for the tensors."""
        tensors = [
            [tensor.name, tensor.ranks, tensor.output, tensor.density.type_name, _unnamed(unstructure(tensor.density))]
            + [list(tensor.inside)] * bool(tensor.inside)
            for tensor, _ in self._tensors
        ]
        own = unstructure(self.piece) if isinstance(self.piece, Workload) else {}
        more = [own[key] for key in ("word_bits", "resides", "resident_words", "slides") if key in own]
        more += [len(self.inputs)] if len(self.inputs) > 1 else []
        return json.dumps([list(self.loops.sizes.items()) if self.loops else [], tensors, *more])

    @property
    def _tensors(self) -> list[tuple[Tensor, Shape]]:
        """Tensors of the loops with their words per rank."""
        loops = self.loops
        return [(tensor, tensor.shape(loops.sizes)) for tensor in loops.tensors] if loops else []


def nodes_of(network: Network, registry: Registry, base: Path = Path("."), file: str = "") -> tuple[Node, ...]:
    """The nodes of a network in order. Paths of workloads are relative to `base`, or else to the working directory.

    SpecError with all mistakes of the layers, and with mismatched shapes if the network has an input."""
    mistakes: list[Mistake] = []
    nodes: dict[str, Node] = {}
    names = [_name(table, index) for index, table in enumerate(network.layers)]
    for type_name in network.defaults:
        with collecting(mistakes, "defaults"):
            _kind(registry, type_name)
    for index, (name, table) in enumerate(zip(names, network.layers, strict=True)):
        with collecting(mistakes, f"layers[{index}]"):
            if name in names[:index] or name == INPUT:
                other = "the input of the network" if name == INPUT else f"layers[{names.index(name)}]"
                raise SpecError.at("", "name", f"'{name}' is also the name of {other}")
            node = _node(network, registry, base, name, table, names[:index])
            nodes[name] = _connected(network, node, nodes, registry) if network.input and not mistakes else node
    for key, given in (("outputs", network.outputs), ("rectified", network.rectified or ())):
        for place, name in enumerate(given):
            if name not in names:
                mistakes += SpecError.at("", f"{key}[{place}]", unknown("layer", name, names)).mistakes
    if mistakes:
        raise SpecError(mistakes).within("", file)
    return tuple(nodes.values())


def distinct(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Nodes with loops, grouped by content, in order: each group is a single search."""
    return grouped((node for node in nodes if node.loops), lambda node: node.content)


def weights_of(nodes: Iterable[Node]) -> int:
    """Words of trained weights of all nodes; tied weights count once."""
    return sum(node.repeat * node.weights for node in nodes if not node.tied)


def _name(table: Mapping[str, Any], index: int) -> str:
    name = table.get("name")
    return name if isinstance(name, str) and name else f"layer{index + 1}"


def _node(
    network: Network, registry: Registry, base: Path, name: str, table: Mapping[str, Any], before: Sequence[str]
) -> Node:
    reader = Reader()
    for key, cls in (("name", str), ("repeat", int), ("inputs", tuple[str, ...]), ("tied", str), ("activation", str)):
        if key in table:
            with placed(key):
                reader.read(cls, table[key])
    if (repeat := table.get("repeat", 1)) < 1:
        raise SpecError.at("", "repeat", f"is {repeat}, expected at least 1")
    inputs = tuple(table.get("inputs", before[-1:] or [INPUT]))
    for place, text in enumerate(inputs):
        if text not in (*before, INPUT):
            strange = unknown("layer before this one", text, dict.fromkeys([*before, INPUT]))
            raise SpecError.at("", f"inputs[{place}]", strange)
    if (tied := table.get("tied", "")) and tied not in before:
        raise SpecError.at("", "tied", unknown("layer before this one", tied, before))
    piece = _piece(network, registry, base, name, table)
    loops = piece.loops(registry) if isinstance(piece, Workload) else None
    if isinstance(piece, Workload) and isinstance(piece.word_bits, Mapping):
        for text, bits in piece.word_bits.items():
            width_of(registry, bits, "", f"word_bits.{text}")
    activation = _activation(registry, table["activation"], loops) if "activation" in table else None
    return Node(name, piece, loops, inputs, repeat, tied=tied, activation=activation)


def _activation(registry: Registry, type_name: str, loops: Loops | None) -> Operation:
    """The arithmetic behind a layer: an operation of one word for every word."""
    if loops is None:
        raise SpecError.at("", "activation", f"is '{type_name}' behind an operation, expected a layer with a workload")
    if type_name not in registry.type_names("operation"):
        raise SpecError.at("", "activation", unknown("operation", type_name, registry.type_names("operation")))
    with suppress(ValueError, SpecError):
        found: Operation = registry.build("operation", {"type": type_name})
        if found.wordwise and found.shape(((2, 3),)) == (2, 3):
            return found
    raise SpecError.at("", "activation", f"is '{type_name}', expected an operation on single words of one input")


def _piece(
    network: Network, registry: Registry, base: Path, name: str, table: Mapping[str, Any]
) -> Workload | Operation:
    own = {key: value for key, value in table.items() if key not in OWN}
    if ("workload" in table) == ("type" in table):
        raise ValueError("expected either 'type' or 'workload'")
    if "workload" in table:
        if own:
            raise SpecError.at("", next(iter(own)), "a layer with 'workload' takes all else from that workload")
        if network.batch > 1:
            text = f"a layer with 'workload' cannot be given the batch of {network.batch}; write it with 'type'"
            raise SpecError.at("", "workload", text)
        value = located("workload", table["workload"], base)
        with placed("workload"):
            read = registry.build if isinstance(value, Mapping) else registry.resolve
            found = read("workload", value)
        return attrs.evolve(found, name=name)
    kind = _kind(registry, table["type"])
    given = dict(network.defaults.get(table["type"], {}))
    if kind == "workload" and network.batch > 1:
        given["batch"] = network.batch
    density = {**given.get("density", {}), **own["density"]} if isinstance(own.get("density"), Mapping) else None
    merged = {**given, **own, **({"density": density} if density else {})}
    return registry.build(kind, {**merged, "type": table["type"], "name": name})


def _kind(registry: Registry, type_name: Any) -> str:
    """Kind of a layer type: workload or operation."""
    with placed("type"):
        Reader().read(str, type_name)
    for kind in ("workload", "operation"):
        if type_name in registry.type_names(kind) or registry.has(kind, type_name):
            return kind
    types = [*registry.type_names("workload"), *registry.type_names("operation")]
    raise SpecError.at("", "type", unknown("type of workload or operation", type_name, types))


def _connected(network: Network, node: Node, nodes: Mapping[str, Node], registry: Registry) -> Node:
    """The node with the shapes of its inputs and output."""
    given = tuple(nodes[text].shape if text != INPUT else network.input for text in node.inputs)
    for text, shape in zip(node.inputs, given, strict=True):
        if not shape:
            raise SpecError.at("", "inputs", f"'{text}' has no shape")
    shape, shapes = (), given
    for turn in range(node.repeat):
        misfit = ""
        with guarded(node.piece, "shape"):
            try:
                shape = node.piece.shape(shapes)
            except ValueError as error:
                misfit = str(error)
        if misfit:
            again = f", repeated for the {turn + 1}. time" if turn else ""
            raise ValueError(f"{_told(node, shapes)}{again}: {misfit}")
        if not shape or not all(isinstance(size, int) and size > 0 for size in shape):
            raise wrong(node.piece, "shape", f"returned {described(shape)}, expected a tuple of whole numbers")
        shapes = (shape,)
    if isinstance(node.piece, Workload) and (piece := node.piece.placed(given)) is not node.piece:
        node = attrs.evolve(node, piece=piece, loops=piece.loops(registry))
    return attrs.evolve(node, given=given, shape=shape)


def _told(node: Node, shapes: Sequence[Shape]) -> str:
    return f"'{node.name}' is given " + (" and ".join(" x ".join(map(str, shape)) for shape in shapes) or "nothing")


def _unnamed(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in ("name", "description", "source")}
