"""Tracing of tensors to layers: to the layer that made the words, or to a view or step inserted as a layer.

A tensor shares the words of another tensor, its root, if all nodes between keep each word: activations, other shapes,
another order. A node that selects, repeats or transforms words makes a new root. A root becomes a layer only if a layer
reads it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import attrs

from sparsemap.problem.network import INPUT

from . import repeats
from .layers import WORKLOADS, ImportedLayer, unlike
from .model_file import OnnxModel
from .onnx_package import attributes_of, onnx_of

SCOPES = re.compile(r"\.(weight|kernel)$")
NAMELESS = re.compile(r"(onnx::|_|/|val_|$)")
"""Generated names of unnamed weights in exported models."""
SELECTING = ("Slice", "Split", "Gather", "GatherND", "GatherElements", "Compress")
"""Operators that select words of the first input, also at positions given by data."""
WHOLE = ("Slice", "Split")
"""Selecting operators that take every word at most once."""
TURNING = ("Concat", "DepthToSpace", "SpaceToDepth", "Einsum")
"""Operators that keep all words and change their order; a Concat, if it joins the parts of a tensor."""
REPEATING = ("Resize", "Upsample", "Expand", "Tile")
"""Operators that take words several times, or interpolate."""
REDUCING = {"ReduceSum": "softmax", **dict.fromkeys(("ReduceMean", "ReduceL2", "ReduceSumSquare"), "norm")}
"""Operators that reduce every row to a number, with the operation of the whole row."""
QUANTISING = "DynamicQuantizeLinear"


@attrs.define
class Tracing:
    """Origins of the tensors of a graph, node by node, and the layers so far."""

    model: OnnxModel
    layers: list[ImportedLayer] = attrs.field(factory=list)
    names: set[str] = attrs.field(factory=lambda: {INPUT})
    input: tuple[int, ...] = ()
    """Shape of the network's input with the batch."""
    roots: dict[str, str] = attrs.field(factory=dict)
    """Root by tensor; constants have none."""
    orders: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    """By tensor, the permutations of words since the root was made; reshaping keeps the order."""
    parts: dict[str, tuple[str, Any, list[str]]] = attrs.field(factory=dict)
    """By root without a layer: the operation of its future layer, the node, and the input tensor."""
    _at: dict[str, str] = attrs.field(factory=dict)
    """By root, the layer with its words; for a root without a layer, the layer of its source."""
    _read: set[str] = attrs.field(factory=set)
    _axes: dict[str, tuple[repeats.Axis, ...]] = attrs.field(factory=dict)
    """Axes of tensors with repetition."""
    _of_rows: dict[str, str] = attrs.field(factory=dict)
    """Tensors with a number per row of another tensor, and the operation over the row."""
    _longer: dict[tuple[str, str], str] = attrs.field(factory=dict)
    """By output and input of a node, the tensor that also has the words of earlier steps."""
    _made: dict[str, tuple[int, ...]] = attrs.field(factory=dict)
    """Shapes of tensors outside the model."""
    _first: str = ""
    """Tensor taken as the network's input: the model's first input, or its embedding."""

    def layer_of(self, name: str) -> str:
        """The layer that produces a tensor."""
        return self._at.get(self.roots.get(name, ""), INPUT)

    def begin(self) -> None:
        """Register the model's inputs; the first with two or more dimensions is the network's input."""
        shapes = {name: self.model.shapes[name] for name in self.model.inputs}
        self._first = next((name for name, shape in shapes.items() if len(shape) > 1), next(iter(shapes)))
        self.input = shapes[self._first]
        self.roots = {name: name for name in shapes}

    def _started(self, name: str, root: str, layer: str) -> None:
        self.roots[name] = root
        self._at.setdefault(root, layer)

    # -- layers

    def _layer(
        self, node: Any, table: dict[str, Any], given: Sequence[str], weights: str = "", part: str = "",
        inner: Sequence[str] = (),
    ) -> ImportedLayer:  # fmt: skip
        """The layer with a name and its predecessors: layers `inner` to the node, then layers of tensors."""
        self._read.update(given)
        given = [self._longer.get((node.output[0], name), name) for name in given] if table["type"] != "view" else given
        sources = [self._source(name, table["type"] in WORKLOADS) for name in given]
        shapes = [() for _ in inner] + [self.model.shapes.get(name, ()) for name in given]
        turned = tuple(place for place, name in enumerate(given, len(inner)) if self.orders.get(name))
        table = {"name": self._name(node, weights, part), **table}
        return ImportedLayer(table=table, node=node, inputs=(*inner, *sources), reads=tuple(shapes), turned=turned)

    def _name(self, node: Any, weights: str, part: str) -> str:
        """The module name of the weights, or else of the node: "/layer1/layer1.0/conv1/Conv" is layer1.0.conv1."""
        scopes = [part for part in node.name.split("/") if part]
        found = scopes[0] if scopes else ""
        for scope in scopes[1:-1]:
            found = scope if scope.startswith(f"{found}.") else f"{found}.{scope}"
        last, kind = (scopes[-1] if scopes else ""), node.op_type.lower()
        if weights and SCOPES.search(weights) and not NAMELESS.match(weights):
            found = SCOPES.sub("", weights)
        elif len(scopes) > 1 and not weights and not part and not found.rpartition(".")[2].lower().startswith(kind):
            found = f"{found}.{last.lower()}"
        return unlike(_plain(f"{found or kind}.{part}") or kind, self.names)

    def _source(self, name: str, product: bool = False) -> str:
        """The layer with all words of a tensor in its output, created if missing. `product`: repeated words are taken
        once."""
        if name not in self.roots:  # made of sizes and constants
            return self._outside(name)
        while product and name in self._axes and (part := self.parts.get(self.roots[name])) and part[2]:
            name = part[2][0]
        chain, root = list[str](), self.roots[name]
        while root in self.parts:
            chain.append(root)
            given = self.parts[root][2]
            root = self.roots[given[0]] if given else ""
        for each in reversed(chain):
            kind, node, given = self.parts.pop(each)
            factor = self._words(each) // self._words(given[0]) if kind == "view" and copies(node) else 1
            table = {"type": kind, **({"factor": factor} if factor > 1 else {})}
            self.layers.append(attrs.evolve(self._layer(node, table, given), made=self._shaped(each, node)))
            self._at[each] = self.layers[-1].name
        root = self.roots[name]
        if self._at.get(root, INPUT) == INPUT and root != self._first:
            return self._outside(root)
        return self.layer_of(name)

    def _outside(self, root: str) -> str:
        """The layer of a further input of the model; the network's input if it has equally many words."""
        if self._words(root) == math.prod(self.input):
            return INPUT
        if root not in self._at:
            name = unlike(_plain(root) or "given", self.names)
            made = self.model.shapes[root] or (1,)
            self.layers.append(ImportedLayer(table={"name": name, "type": "outside"}, made=made))
            self._started(root, root, name)
        return self._at[root]

    def _shaped(self, name: str, node: Any) -> tuple[int, ...]:
        return self._made.get(name) or self.model.shape(name, node) or (1,)

    # -- words

    def _words(self, name: str) -> int:
        return math.prod(self.model.shapes.get(name, (0,)))

    def _main(self, given: Sequence[str]) -> str:
        """The largest of the tensors."""
        return max(given, key=self._words, default="")

    def _trace(self, node: Any, out: str, given: Sequence[str]) -> None:
        """Set the root of a tensor without a layer: the root of the node's input, or a new root."""
        main, words = self._main(given), self._words(out)
        if out not in self.parts:  # else nobody knows its node
            held, firsts = self._words(main), {self.model.shapes.get(name, ())[:1] for name in (main, out)}
            copied = copies(node) and held > 0 and (words <= held or (not words % held and len(firsts) == 1))
            kind = "view" if copied or (node.op_type in SELECTING and words <= held) else "transform"
            same = bool(main) and words == held and (kind == "transform" or copied or node.op_type in WHOLE)
            whole = self._joined(node, given) if node.op_type == "Concat" else ""
            if whole or same:
                self.roots[out] = whole or self.roots[main]
                self._order(node, main, out)
                return
            if main:
                self.parts[out] = kind, node, [given[0] if kind == "view" else main]
        self._started(out, out, self.layer_of(main))

    def _order(self, node: Any, given: str, out: str) -> None:
        known, shape = self.orders.get(given, ()), self.model.shapes.get(out, ())
        if node.op_type == "Transpose" and shape:
            order = tuple(attributes_of(node).get("perm") or range(len(shape))[::-1])
            back = tuple(order.index(axis) for axis in range(len(order)))
            moved = [axis for axis, size in zip(order, shape, strict=True) if size > 1]
            if known and known[-1] == (back, self.model.shapes.get(given)):
                known = known[:-1]
            elif moved != sorted(moved):
                known = (*known, (order, shape))
        elif node.op_type in TURNING:
            known = (*known, (node.op_type, shape))
        if known:
            self.orders[out] = known[-8:]  # what is further back cannot be undone by then

    def _joined(self, node: Any, given: Sequence[str]) -> str:
        """The tensor completely reassembled from its parts by a Concat; empty for any other Concat."""
        parts = {self.roots[name] for name in given}
        if len(parts) < len(node.input) or not all(self.parts.get(root, ("",))[0] == "view" for root in parts):
            return ""
        base, *more = {self.roots[self.parts[root][2][0]] for root in parts}
        return "" if more or self._words(node.output[0]) != self._words(base) else base

    def _counted(self, node: Any, given: Sequence[str]) -> list[str]:
        """The tensors with words of their own, one for each root.

        Excluded: indices and conditions, row-wise numbers of the tensor itself, scales of quantised tensors, and masks
        broadcast from an input of the model."""
        proto, words = onnx_of().TensorProto, self._words(node.output[0])
        own = (self.layer_of(self._main(given)), INPUT)
        found: dict[str, str] = {}
        for name in given:
            root = self.roots[name]
            spread = self._words(name) < words and self.layer_of(name) == INPUT and root not in self.parts
            places = self.model.types.get(name) in (proto.INT64, proto.BOOL)
            scale = root in self.parts and self.parts[root][1].op_type == QUANTISING
            numbers = name in self._of_rows and self.layer_of(name) in own
            if not (places or numbers or spread or scale):
                found.setdefault(root, name)
        return list(found.values())

    def _sum_rows(self, node: Any) -> None:
        """Mark the output as row-wise if it is a mean or sum of every row, or follows from row-wise numbers alone."""
        kind, rank = REDUCING.get(node.op_type, ""), len(self.model.shapes.get(node.input[0] if node.input else "", ()))
        if not kind:
            rows = [name for name in node.input if name in self._of_rows]
            kind = self._of_rows[rows[0]] if rows and self._words(node.output[0]) == max(map(self._words, rows)) else ""
        elif self._reduced(node, rank) != [rank - 1]:
            kind = ""
        if kind:
            self._of_rows[node.output[0]] = kind

    def _reduced(self, node: Any, rank: int) -> list[int]:
        """The axes summed by a node; empty if unknown."""
        axes = attributes_of(node).get("axes")
        if axes is None and len(node.input) > 1 and node.input[1] in self.model.constants:
            axes = self.model.constant(node.input[1]).tolist()
        return sorted(axis % rank for axis in axes or ())


def copies(node: Any) -> bool:
    """Whether all words of a node's output are words of its first input, possibly repeated."""
    about = attributes_of(node)
    cropped = about.get("coordinate_transformation_mode") == b"tf_crop_and_resize"
    return node.op_type in REPEATING and about.get("mode", b"nearest") == b"nearest" and not cropped


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")
