"""Pruned weights as a network of all layers, with the zeros of the pruned ones."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.arrays import write_array
from sparsemap.cli.networks import network_of
from sparsemap.errors import SpecError, unknown
from sparsemap.files import shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.loading import load
from sparsemap.pieces.study_spec import Network
from sparsemap.problem.network import Node, nodes_of
from sparsemap.spec import toml_text
from sparsemap.spec.unstructuring import plain

from .export import PrunedLayers, file_names

NETWORK = "network.toml"


@attrs.frozen
class WeightsOfNetwork:
    """A network for a file of weights."""

    spec: Network
    nodes: Mapping[str, Node]

    @classmethod
    def of(cls, name: str | os.PathLike[str], called: str = "") -> WeightsOfNetwork:
        """The network by name or path, perhaps with another name, `called`."""
        registry = load()
        spec, base, file = network_of(registry, os.fspath(name))
        spec = attrs.evolve(spec, name=called or spec.name)
        return cls(spec, {node.name: node for node in nodes_of(spec, registry, base, file)})

    def layers_of(self, weights: Mapping[str, Array], source: Path) -> dict[str, str]:
        """The network's layer of each of the weights (S, height, width, C); `NAME.weight` belongs to layer NAME.

        SpecError for weights of no layer, of another shape than the layer, or of a layer with other weights."""
        found: dict[str, str] = {}
        for name, array in weights.items():
            node = self.nodes.get(name) or self.nodes.get(name.removesuffix(".weight"))
            if node is None:
                raise SpecError.at(shown(source), name, unknown("layer", name.removesuffix(".weight"), self.nodes))
            if node.weights != array.size:
                raise SpecError.at(shown(source), name, f"has {array.size:,} words, layer {node.name} {node.weights:,}")
            if (shape := _shape(node)) and array.shape != shape:
                sizes, own = (" x ".join(map(str, (one[0], one[3], *one[1:3]))) for one in (array.shape, shape))
                text = f"is {sizes} (outputs, inputs, kernel), layer {node.name} {own}; --layout says other orders"
                raise SpecError.at(shown(source), name, text)
            if node.name in found.values():
                raise SpecError.at(shown(source), name, f"layer {node.name} has other weights in this file")
            found[name] = node.name
        return found

    def positions(self, name: str) -> int:
        """Uses of each weight of a layer: the output pixels of a convolution, the rows of a product."""
        piece: Any = self.nodes[name].piece
        rows = piece.p * piece.q if hasattr(piece, "p") else getattr(piece, "m", 1)
        return int(rows * piece.batch)

    def write(self, folder: Path, pruned: PrunedLayers) -> None:
        """Write the network with all layers."""
        files = file_names(pruned.masks)
        table = {
            "kind": "network",
            "name": f"{self.spec.name}-pruned",
            "description": f"{self.spec.name}, pruned as {pruned.source}",
            "source": "sparsemap extra prune",
        }
        own = {key: getattr(self.spec, key) for key in ("input", "defaults", "batch", "outputs", "rectified", "lacks")}
        both = zip(self.spec.layers, self.nodes.values(), strict=True)
        layers = [self._layer(folder, layer, node, pruned, files) for layer, node in both]
        told = {key: value for key, value in own.items() if value or (key == "rectified" and value is not None)}
        table |= {key: plain(value) for key, value in told.items()}
        toml_text.write(folder / NETWORK, {**table, "layers": layers})

    def _layer(
        self, folder: Path, table: Mapping[str, Any], node: Node, pruned: PrunedLayers, files: Mapping[str, str]
    ) -> dict[str, Any]:
        """The layer with the density of its masked weights."""
        found = {**plain(table), "name": node.name}
        if node.name not in pruned.masks:
            return found
        if "workload" in found:
            raise SpecError.at("", f"layer {node.name}", "is a file of its own; write it with 'type'")
        mask, file = pruned.masks[node.name], files[node.name]
        words = pruned.matrix(node.name)
        channels, rest = divmod(mask.grid.columns, math.prod(mask.grid.shape[1:3]))
        blocks = mask.grid.order == "chw" and not rest and "conv" in found["type"]
        if blocks and np.count_nonzero(words) == mask.words.sum():
            density: dict[str, Any] = {"type": "gamma", "file": f"{file}-mask.npy"}
            if (mask.grid.rows, channels) != (8, 8):
                density["block"] = [mask.grid.rows, channels]
        else:
            tensor = mask.grid.tensor(words)
            tensor = tensor.transpose(0, 3, 1, 2) if found["type"] == "conv2d" else tensor[:, 0, 0].T
            write_array(folder / f"{file}-weights.npy", np.ascontiguousarray(tensor.astype(np.float32)))
            density = {"type": "data", "file": f"{file}-weights.npy"}
        return {**found, "density": {**found.get("density", {}), "Q": density}}


def _shape(node: Node) -> tuple[int, ...]:
    """(S, height, width, C) of the weights of a layer; empty for types without a shape."""
    piece: Any = node.piece
    match piece.type_name:
        case "conv2d":
            return piece.k, piece.r, piece.s, piece.c // piece.groups
        case "depthwise":
            return piece.c, piece.r, piece.s, 1
        case "linear" if piece.groups == 1:
            return piece.n, 1, 1, piece.k
    return ()
