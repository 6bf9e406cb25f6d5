"""Layers, machines and networks of the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sparsemap_plugins.weight_blocks.layers import MeshLayer
from sparsemap_plugins.weight_blocks.machine import CoreMesh
from sparsemap_plugins.weight_blocks.schedule_file import read_schedule
from sparsemap_plugins.weight_blocks.simulate import NetworkData, SimulationOutcome, simulate

from sparsemap.pieces.loading import load


@cache
def registry():
    return load()


def machine(cores: int = 4, hardware: str = "", listed: bool = False) -> CoreMesh:
    paper = "-paper" if listed else ""
    spec = registry().resolve("hardware", hardware or f"aie2{paper}-{cores}x{cores}")
    return CoreMesh.of(spec, registry(), listed=listed)


def conv(
    size: int, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, density: float = 1.0, **more
) -> MeshLayer:
    """A convolution of a square image, padded by half of the kernel."""
    padding = kernel // 2
    out = (size + 2 * padding - kernel) // stride + 1
    shape = (size, size, inputs, out, out, outputs)
    return MeshLayer("layer", "conv", ("input",), *shape, (kernel, kernel), stride, (padding, padding), density, **more)


def executed(folder: Path) -> SimulationOutcome:
    """A schedule from a folder on random data."""
    compiled = read_schedule(folder)
    return simulate(compiled, NetworkData.of(compiled))
