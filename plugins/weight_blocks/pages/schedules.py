"""Networks and meshes of Table II and Fig. 9, and their schedules."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import attrs

from sparsemap.cli.networks import network_of
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

from ..layers import MeshLayer
from ..machine import CoreMesh
from ..networks import layers_of
from ..schedule import Schedule, compile_layers

TITLES = {"resnet50": "ResNet-50", "inception-v3": "Inception v3", "vgg16": "VGG-16"}
KINDS = {"dense": 0.0, "sparse": 0.5}
"""Sparsity by kind of weights."""
PAPER, SOUND = "paper", "none"
MODES = {PAPER: "as the paper counts", SOUND: "sound"}


@attrs.frozen(eq=False)
class MeshSchedules:
    """Schedules of networks on square meshes, each compiled once."""

    registry: Any = attrs.field(factory=load)
    _known: dict[Any, Any] = attrs.field(factory=dict)

    def layers(self, network: str, sparsity: float) -> list[MeshLayer]:
        """Layers without the fully connected ones, as in the paper; a global average ends every network."""
        if (network, sparsity) not in self._known:
            piece, base, file = network_of(self.registry, network)
            nodes = nodes_of(piece, self.registry, base, file)
            kept = takewhile(lambda node: node.piece.type_name != "linear", nodes)
            found = layers_of(list(kept), sparsity)
            end = found[-1]
            if (size := (end.out_height, end.out_width)) != (1, 1):
                shape = *size, end.out_channels, 1, 1, end.out_channels
                found.append(MeshLayer("average", "avgpool", (end.name,), *shape, size))
            self._known[network, sparsity] = found
        return self._known[network, sparsity]

    def machine(self, cores: int, mode: str = SOUND) -> CoreMesh:
        """The mesh of so many columns and rows; the paper's count has rates of its own."""
        name = "aie2-paper" if mode == PAPER else "aie2"
        hardware = self.registry.resolve("hardware", f"{name}-{cores}x{cores}")
        return CoreMesh.of(hardware, self.registry, listed=mode == PAPER)

    def schedule(self, network: str, cores: int, sparsity: float, mode: str = SOUND) -> Schedule:
        machine = self.machine(cores, mode)
        if (key := (network, sparsity, machine)) not in self._known:
            self._known[key] = compile_layers(self.layers(network, sparsity), machine)
        return self._known[key]
