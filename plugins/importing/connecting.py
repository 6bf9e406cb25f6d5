"""Layers of a graph with the layers before them: where shapes do not fit, words are taken as a view of the shape wanted."""

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
    """Makes tables of layers, in the order of a network, whose inputs fit."""

    registry: Registry
    samples: int
    shapes: dict[str, Shape]
    """By layer, that of its output; of the network's input at first."""
    taken: set[str]
    """Names of layers."""
    layers: list[ImportedLayer] = attrs.field(factory=list)
    _views: dict[tuple[str, Shape], str] = attrs.field(factory=dict)

    def add(self, layer: ImportedLayer) -> None:
        """ValueError where its inputs cannot be made to fit."""
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
        """The input in the shape in which the layer reads it; `turned`: also where that is the shape in which it was made, if
        both have as many ranks, which nobody may take for the same ones."""
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
