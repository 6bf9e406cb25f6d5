"""Draws the figures of the pages: `python docs/figures/draw.py`; the extra `plots` has what draws."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sparsemap import Fiber
from sparsemap.pieces.loading import load
from sparsemap.plots import COLOURS, MARKERS, plain_log, subplots, write_figure

REGISTRY = load()
HERE = Path(__file__).parent
DENSITIES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])


def empty_tiles() -> Figure:
    """Probability that a tile holds no nonzero, against the density of its tensor, by the size of the tile."""
    figure, axes = subplots(1, 1, (5.2, 2.6))
    model = REGISTRY.build("density", {"type": "uniform", "density": 0.5})
    for place, side in enumerate((1, 2, 4, 8, 16)):
        empty = [100 * model.at(density).occupancy((512, 512)).empty((side, side)) for density in DENSITIES]
        axes.plot(100 * DENSITIES, empty, color=COLOURS[place], marker=MARKERS[place], label=f"{side} x {side}")
    axes.set_xscale("log")
    plain_log(axes.xaxis)
    axes.set_xlabel("density of the tensor, %")
    axes.set_ylabel("empty tiles, %")
    axes.legend(title="words of the tile", loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def metadata() -> Figure:
    """Metadata of one fiber of 64 positions, against the density, by format."""
    figure, axes = subplots(1, 1, (4.2, 2.6))
    fiber = Fiber.of(np.ones(len(DENSITIES)), 64.0, 64.0 * DENSITIES, 1.0)
    for place, name in enumerate(("bitmask", "coordinate", "run-length")):
        units = REGISTRY.get("format", name).units(fiber)
        bits = units.metadata * units.metadata_bits * np.ones(len(DENSITIES))
        axes.plot(100 * DENSITIES, bits, color=COLOURS[place], marker=MARKERS[place], label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_log(axes.xaxis)
    plain_log(axes.yaxis)
    axes.set_xlabel("density of the fiber, %")
    axes.set_ylabel("metadata, bits")
    axes.legend()
    return figure


def main() -> None:
    write_figure(empty_tiles, HERE / "empty-tiles.svg")
    write_figure(metadata, HERE / "metadata.svg")
    sparsemap = [sys.executable, "-m", "sparsemap"]
    with tempfile.TemporaryDirectory() as folder:
        points = ["--context", "1k,4k,16k,32k,128k", "--batch", "1,16,256", "--budget", "200"]
        subprocess.run([*sparsemap, "run", "llama3-8b", "--hardware", "mobile", *points, "--out", folder], check=True)
        shutil.copy(Path(folder, "serving.svg"), HERE / "language-models.svg")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*sparsemap, "search", "mm3", "cloud", "--quiet", "--out", folder], check=True)
        for kind in ("loopnest", "energy", "cycles", "roofline"):
            subprocess.run([*sparsemap, "plot", folder, "--kind", kind, "-o", HERE / f"{kind}.svg"], check=True)


if __name__ == "__main__":
    main()
