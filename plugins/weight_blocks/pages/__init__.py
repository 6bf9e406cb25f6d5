"""The tables and figures of the paper; `table-ii.csv` holds what its Table II prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import takewhile
from typing import Any

import attrs

from sparsemap.cli.networks import network_of
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

from ..layers import MeshLayer
from ..machine import CoreMesh
from ..networks import layers_of
from ..quirks import quirks_of
from ..schedule import Schedule, compile_layers

TITLES = {"resnet50": "ResNet-50", "inception-v3": "Inception v3", "vgg16": "VGG-16"}
SPARSITY = 0.5
KINDS = {"dense": 0.0, "sparse": SPARSITY}
MODES = {"paper": "as the paper counts", "none": "sound"}


def modes_of(quirks: str) -> dict[str, str]:
    """The counts of a page with their titles."""
    return MODES if quirks == "both" else {quirks: MODES.get(quirks, quirks)}


@attrs.frozen(eq=False, slots=False)
class MeshSchedules:
    """Compiles networks for square meshes, and remembers the schedules."""

    progress: Callable[[str], None] = lambda text: None
    _known: dict[Any, Any] = attrs.field(factory=dict)

    @cached_property
    def registry(self) -> Any:
        return load()

    def layers(self, network: str, sparsity: float) -> list[MeshLayer]:
        """Without fully connected layers, as in the paper: a global average ends the network where none does yet."""
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

    def machine(self, cores: int, quirks: str | Iterable[str], rates: str = "") -> CoreMesh:
        """`rates`: of which count the rates are, "paper" or "none"; by default those of the quirks, if they are "paper"."""
        paper = "-paper" if (rates or quirks) == "paper" else ""
        hardware = self.registry.resolve("hardware", f"aie2{paper}-{cores}x{cores}")
        return CoreMesh.of(hardware, self.registry, quirks_of(quirks))

    def schedule(
        self, network: str, cores: int, sparsity: float, quirks: str | Iterable[str], rates: str = ""
    ) -> Schedule:
        """A network on so many columns and rows of cores."""
        machine = self.machine(cores, quirks, rates)
        if (key := (network, sparsity, machine)) not in self._known:
            self.progress(f"{TITLES[network]} on {cores} x {cores}")
            self._known[key] = compile_layers(self.layers(network, sparsity), machine)
        return self._known[key]
