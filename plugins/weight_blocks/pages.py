"""Table II and Fig. 9 of the paper, for `sparsemap paper`; `table-ii.csv` holds the printed times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import attrs

from sparsemap.cli.networks import network_of
from sparsemap.cli.output import say
from sparsemap.csv_files import read_csv
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

from .layers import MeshLayer
from .machine import CoreMesh
from .networks import layers_of
from .schedule import Schedule, compile_layers, compile_tiled, recomputed

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


# ----------------------------------------------------------------------------------------------------------- Table II

PUBLISHED = Path(__file__).parent / "table-ii.csv"
WHY = {
    "resnet50": "images of 7 columns on 8 columns of cores, and fragments of their circular buffer",
    "vgg16": "another choice of tiles for the layers that do not fit in memory tiles",
}
"""Remaining differences between the paper's rules and its table."""


def floors(schedule: Schedule) -> tuple[float, float]:
    """Lower limits in seconds: the kept multiply-adds, and the weights through DDR."""
    machine, convs = schedule.machine, [one.cut.layer for one in schedule.layers if one.cut.convolves]
    kept = sum(layer.macs * layer.density for layer in convs)
    stored = sum(layer.weights * layer.density for layer in convs)
    cores = machine.columns * machine.rows
    return kept / (cores * machine.macs * machine.clock_hz), stored / (machine.columns * machine.load_weights)


def measured(source: MeshSchedules, line: Mapping[str, str]) -> list[dict[str, Any]]:
    """The estimates beside a line of the paper's table, a row per kind of weights; times in ms, None for cells in which the
    paper's tool failed."""
    network, cores = line["network"], int(line["cores"])
    say(f"{TITLES[network]} on {cores} x {cores}")
    found: list[dict[str, Any]] = []
    for kind, sparsity in KINDS.items():
        schedules = {mode: source.schedule(network, cores, sparsity, mode) for mode in MODES}
        ms: dict[str, Any] = {mode: schedule.seconds * 1e3 for mode, schedule in schedules.items()}
        published = float(line[f"{kind}_ms"]) if line[f"{kind}_ms"] else None
        error = ms[PAPER] / published - 1 if published else math.nan
        ms |= {"published": published, "error": error, "off": f"{100 * error:+.1f} %" if published else ""}
        ms |= {"floor": 1e3 * max(floors(schedules[SOUND])), "near": abs(error) <= 0.05, "fair": abs(error) <= 0.12}
        look = {"style": "--" if found else "-", "hollow": kind == "sparse"}
        found.append({"network": network, "title": TITLES[network], "cores": cores, "weights": kind, **ms, **look})
    dense, sparse = found
    for row in found:
        row["printed gain"] = (dense["published"] or math.nan) / (sparse["published"] or math.nan)
        for mode in MODES:
            row |= {f"ratio {mode}": sparse[mode] / dense[mode], f"gain {mode}": dense[mode] / sparse[mode]}
            row[f"shown {mode}"] = f"{sparse[mode] / dense[mode]:.2f}" if row["hollow"] else ""
    return found


def table_2(runner: Any, name: str) -> dict[str, Any]:
    source = MeshSchedules(runner.registry)
    meshes = [cell for row in read_csv(PUBLISHED) for cell in measured(source, row)]
    for cell in meshes:
        cell["y"] = "ms per image" if cell["network"] == meshes[0]["network"] else ""
    rows = [
        {"network": x["network"], "cores": f"{x['cores']}x{x['cores']}", "weights": x["weights"]}
        | {f"{mode}_ms": round(x[mode], 4) for mode in (*MODES, "floor")}
        for x in meshes
    ]
    left = [{**cell, "why": WHY.get(cell["network"], "")} for cell in meshes if abs(cell["error"]) > 0.05]
    return {"rows": rows, "meshes": meshes, "left": left}


# -------------------------------------------------------------------------------------------------------------- Fig. 9

CORES, SLOWER, TILES = 3, 16, range(1, 9)
FIRST, LAST = "features.2", "features.9"
"""conv1_2 and the second pool."""
PAPER_S = {"dense": {1: 0.025, 2: 0.022, 3: 0.024}, "sparse": {1: 0.021, 2: 0.014}}


def segment(layers: Sequence[MeshLayer]) -> list[MeshLayer]:
    """The layers from conv1_2 to the second pool."""
    names = [layer.name for layer in layers]
    return list(layers[names.index(FIRST) : names.index(LAST) + 1])


def point(source: MeshSchedules, kind: str, count: int) -> dict[str, Any]:
    """The chain in so many tiles, dense or sparse."""
    fast = source.machine(CORES)
    rates = {key: getattr(fast, key) / SLOWER for key in ("load", "load_weights", "write")}
    chain = segment(source.layers("vgg16", KINDS[kind]))
    schedule = compile_tiled(chain, attrs.evolve(fast, **rates), [(chain, count)])
    found = {"weights": kind, "tiles": count, "seconds": schedule.seconds, "recomputed": recomputed(chain, count)}
    spilled = sum(one.placement.spilled for one in schedule.layers)
    return {**found, "spilled_layers": spilled, "paper_s": PAPER_S[kind].get(count)}


def fig_9(runner: Any, name: str) -> dict[str, Any]:
    source = MeshSchedules(runner.registry)
    rows = [point(source, kind, count) for kind in KINDS for count in TILES]
    best = {kind: min((x for x in rows if x["weights"] == kind), key=lambda row: row["seconds"]) for kind in KINDS}
    whole, paper = rows[0]["seconds"], PAPER_S["sparse"][2] / PAPER_S["dense"][1]
    times = [{**row, "ms": row["seconds"] * 1e3, "paper": (row["paper_s"] or math.nan) * 1e3} for row in rows]
    about = {"whole": whole, "ratio": best["sparse"]["seconds"] / whole, "paper": paper, "times": times}
    return {"rows": rows, "cores": CORES, "slower": SLOWER, **best, **about}
