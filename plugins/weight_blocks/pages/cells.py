"""Networks on meshes: what the pages evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import attrs

from sparsemap.cli.networks import network_of
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

from ..layers import Layer
from ..machine import Machine
from ..networks import layers_of
from ..quirks import quirks_of
from ..schedule import Schedule, compile_layers

TITLES = {"resnet50": "ResNet-50", "inception-v3": "Inception v3", "vgg16": "VGG-16"}
SPARSITY = 0.5


@attrs.frozen(eq=False, slots=False)
class Cells:
    """Compiles networks for square meshes, and remembers the schedules."""

    progress: Callable[[str], None] = lambda text: None
    _known: dict[Any, Any] = attrs.field(factory=dict)

    @cached_property
    def registry(self) -> Any:
        return load()

    def layers(self, network: str, sparsity: float) -> list[Layer]:
        key = network, sparsity
        if key not in self._known:
            piece, base, file = network_of(self.registry, network)
            self._known[key] = layers_of(nodes_of(piece, self.registry, base, file), sparsity)
        return self._known[key]

    def machine(self, cores: int, quirks: Iterable[str] = ()) -> Machine:
        return Machine.of(self.registry.resolve("hardware", f"aie2-{cores}x{cores}"), self.registry, frozenset(quirks))

    def schedule(self, network: str, cores: int, sparsity: float, quirks: str | Iterable[str]) -> Schedule:
        """A network on so many columns and rows of cores."""
        chosen = quirks_of(quirks)
        key = network, cores, sparsity, chosen
        if key not in self._known:
            self.progress(f"{TITLES[network]} on {cores} x {cores}")
            layers = self.layers(network, sparsity)
            self._known[key] = compile_layers(layers, self.machine(cores, chosen), chosen)
        return self._known[key]


def floors(schedule: Schedule) -> tuple[float, float]:
    """Seconds that no schedule can be below: those of the kept multiply-adds, and of the weights through DDR."""
    machine, convs = schedule.machine, [one.cut for one in schedule.layers if one.cut.layer.op == "conv"]
    kept = sum(cut.layer.macs * cut.layer.kept_share for cut in convs)
    stored = sum(cut.layer.weights * cut.layer.kept_share for cut in convs)
    cores = machine.columns * machine.rows
    return kept / (cores * machine.macs * machine.clock_hz), stored / (machine.columns * machine.load_weights)
