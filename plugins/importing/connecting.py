"""Connection of a graph's layers to their predecessors; inputs of unfitting shape become views."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from sparsemap.pieces.contracts import Shape
from sparsemap.pieces.registry import Registry
from sparsemap.problem.network import INPUT

from .layers import WORKLOADS, ImportedLayer, unlike

IMAGES = ("conv2d", "depthwise", "max-pool", "average-pool")
"""Layers of images; rows of samples are images of one row."""


def of_sample(shape: Sequence[int], samples: int) -> Shape:
    """A tensor's shape without its batch."""
    words = math.prod(shape)
    if samples > 1 and (not shape or shape[0] % samples):
        return (max(1, words // samples),)
    whole = (shape[0] // samples, *shape[1:]) if shape else (1,)
    return tuple(whole[1:] if len(whole) > 1 and whole[0] == 1 else whole)


@attrs.define
class Connection:
    """Layer tables with fitting inputs, in the order of the network."""

    registry: Registry
    samples: int
    shapes: dict[str, Shape]
    """Output shape by layer; initially the shape of the network's input."""
    taken: set[str]
    layers: list[ImportedLayer] = attrs.field(factory=list)
    _views: dict[tuple[str, Shape], str] = attrs.field(factory=dict)

    def add(self, layer: ImportedLayer) -> None:
        """Append a layer; ValueError if no view makes its inputs fit."""
        table = dict(layer.table)
        if layer.made:
            table["shape"] = list(of_sample(layer.made, self.samples))
        layer = attrs.evolve(layer, table=table)
        inputs = list(layer.inputs)
        for place in layer.turned if layer.table["type"] != "view" else ():
            inputs[place] = self._view(layer, inputs[place], layer.reads[place], turned=True)
        try:
            shape = self._shape(layer, inputs)
        except ValueError:
            reads = zip(inputs, layer.reads, strict=True)
            inputs = [
                name if name != own else self._view(layer, name, read)
                for (name, read), own in zip(reads, layer.inputs, strict=True)
            ]
            shape = self._shape(layer, inputs)
        self._append(layer, inputs, shape)

    def _append(self, layer: ImportedLayer, inputs: list[str], shape: Shape) -> None:
        last = self.layers[-1].name if self.layers else INPUT
        told = {} if inputs == [last] else {"inputs": inputs}
        self.layers.append(attrs.evolve(layer, table={**layer.table, **told}, inputs=tuple(inputs)))
        self.shapes[layer.name] = shape

    def _shape(self, layer: ImportedLayer, inputs: Sequence[str]) -> Shape:
        kind = "workload" if layer.table["type"] in WORKLOADS else "operation"
        piece, given = self.registry.build(kind, layer.per_sample(self.samples)), [self.shapes[name] for name in inputs]
        try:
            return piece.shape(given)
        except ValueError as error:
            shapes = " and ".join(" x ".join(map(str, shape)) for shape in given)
            raise ValueError(f"'{layer.name}' is given {shapes}: {error}") from None

    def _view(self, layer: ImportedLayer, name: str, read: Sequence[int], turned: bool = False) -> str:
        """The input in the shape read by the layer.

        `turned`: the words changed their order, so a view is needed if the two shapes have the same number of ranks,
        even if the shapes are equal."""
        wanted = of_sample(read, self.samples) if read else self.shapes[name]
        if layer.table["type"] in IMAGES and len(wanted) == 2:
            wanted = (wanted[0], 1, wanted[1])
        if (len(wanted) != len(self.shapes[name])) if turned else wanted == self.shapes[name]:
            return name
        if (name, wanted) not in self._views:
            own = unlike(f"{name}.view", self.taken)
            view = ImportedLayer(table={"name": own, "type": "view", "shape": list(wanted)})
            self._append(view, [name], wanted)
            self._views[name, wanted] = own
        return self._views[name, wanted]
