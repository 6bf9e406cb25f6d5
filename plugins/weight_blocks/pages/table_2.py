"""Table II: three networks on 2 x 2 to 8 x 8 cores, dense and sparse, as the paper counts and as is sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.cli.output import say
from sparsemap.csv_files import read_csv
from sparsemap.files import grouped
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Report, Series, figure, page

from ..schedule import Schedule
from .schedules import KINDS, MODES, PAPER, SOUND, TITLES, MeshSchedules

PUBLISHED = Path(__file__).parent / "table-ii.csv"
WHY = {
    "resnet50": "images of 7 columns on 8 columns of cores, and fragments of their circular buffer",
    "vgg16": "another choice of tiles for the layers that do not fit in memory tiles",
}
"""Remaining differences between the paper's rules and its table."""


@attrs.frozen
class Mesh:
    """A network on so many columns and rows of cores; times in ms by kind of weights, dense or sparse."""

    network: str
    cores: int
    published: dict[str, float | None]
    """None where the paper's tool failed."""
    ms: dict[str, dict[str, float]]
    """By kind and mode."""
    floor_ms: dict[str, float]

    def error(self, kind: str) -> float | None:
        """Relative error of the paper's count against the printed time."""
        published = self.published[kind]
        return self.ms[kind][PAPER] / published - 1 if published else None

    def off(self) -> list[float]:
        """Absolute errors of the printed cells."""
        return [abs(error) for kind in KINDS if (error := self.error(kind)) is not None]

    def ratio(self, mode: str) -> float:
        """Sparse over dense."""
        return self.ms["sparse"][mode] / self.ms["dense"][mode]


def floors(schedule: Schedule) -> tuple[float, float]:
    """Lower limits in seconds: the kept multiply-adds, and the weights through DDR."""
    machine, convs = schedule.machine, [one.cut.layer for one in schedule.layers if one.cut.convolves]
    kept = sum(layer.macs * layer.density for layer in convs)
    stored = sum(layer.weights * layer.density for layer in convs)
    cores = machine.columns * machine.rows
    return kept / (cores * machine.macs * machine.clock_hz), stored / (machine.columns * machine.load_weights)


def measured(source: MeshSchedules, row: Mapping[str, str]) -> Mesh:
    """The estimates beside a line of the paper's table."""
    network, cores = row["network"], int(row["cores"])
    say(f"{TITLES[network]} on {cores} x {cores}")
    published = {kind: float(row[f"{kind}_ms"]) if row[f"{kind}_ms"] else None for kind in KINDS}
    ms, floor_ms = {}, {}
    for kind, sparsity in KINDS.items():
        schedules = {mode: source.schedule(network, cores, sparsity, mode) for mode in MODES}
        ms[kind] = {mode: schedule.seconds * 1e3 for mode, schedule in schedules.items()}
        floor_ms[kind] = 1e3 * max(floors(schedules[SOUND]))
    return Mesh(network, cores, published, ms, floor_ms)


def report(runner: Any, name: str) -> Report:
    source = MeshSchedules(runner.registry)
    found = [measured(source, row) for row in read_csv(PUBLISHED)]
    meshes = grouped(found, lambda mesh: mesh.network)
    tables = {title: _table(meshes[network]) for network, title in TITLES.items()}
    printed = [(mesh.published["dense"], mesh.published["sparse"]) for mesh in found]
    gains = [dense / sparse for dense, sparse in printed if dense and sparse]
    ratios = {title: [mesh.ratio(mode) for mesh in found] for mode, title in MODES.items()}
    networks = "\n\n".join(f"## {title}\n\n{table}" for title, table in tables.items())
    ours = " ".join(f"{x.capitalize()}, they are {1 / max(y):.2f}x to {1 / min(y):.2f}x." for x, y in ratios.items())
    text = page(__file__, name, networks=networks, least=min(gains), most=max(gains), gains=ours, left=_left(found))
    rows: list[dict[str, Any]] = [
        {"network": mesh.network, "cores": f"{mesh.cores}x{mesh.cores}", "weights": kind}
        | {"paper_ms": mesh.published[kind] or ""}
        | {f"{mode}_ms": round(ms, 4) for mode, ms in mesh.ms[kind].items()}
        | {"floor_ms": round(mesh.floor_ms[kind], 4)}
        for mesh in found
        for kind in KINDS
    ]
    return Report(name, _headline(found), text, rows, lambda: draw(found))


def _table(found: Sequence[Mesh]) -> str:
    over = (f"sparse / dense, {x}" for x in MODES.values())
    lines = [["cores", "weights", "paper", *MODES.values(), "off", "floor", *over]]
    for mesh in found:
        for kind, published in mesh.published.items():
            times = [f"{published:.3f}" if published else "-", *(f"{ms:.3f}" for ms in mesh.ms[kind].values())]
            error = f"{100 * e:+.1f} %" if (e := mesh.error(kind)) is not None else ""
            ratios = [f"{mesh.ratio(mode):.2f}" if kind == "sparse" else "" for mode in MODES]
            lines.append([f"{mesh.cores} x {mesh.cores}", kind, *times, error, f"{mesh.floor_ms[kind]:.2f}", *ratios])
    return markdown_table(lines)


def _headline(found: Sequence[Mesh]) -> str:
    errors = [off for mesh in found for off in mesh.off()]
    near, fair = sum(e <= 0.05 for e in errors), sum(e <= 0.12 for e in errors)
    lines = [f"as the paper counts: {near} of {len(errors)} published cells within 5 %, {fair} within 12 %"]
    for mode, title in MODES.items():
        ratios = [mesh.ratio(mode) for mesh in found]
        lines.append(f"{title}: sparse / dense {min(ratios):.2f} to {max(ratios):.2f}")
    return "\n".join(lines)


def _left(found: Sequence[Mesh]) -> str:
    lines = [["cell", "off", "what is left"]]
    for mesh in found:
        for kind in KINDS:
            if abs(error := mesh.error(kind) or 0) > 0.05:
                where = f"{TITLES[mesh.network]} {mesh.cores} x {mesh.cores} {kind}"
                lines.append([where, f"{100 * error:+.1f} %", WHY.get(mesh.network, "")])
    return f"Cells that are more than 5 % off:\n\n{markdown_table(lines)}"


def draw(found: Sequence[Mesh]) -> Figure:
    panels: list[Panel] = []
    for network, title in TITLES.items():
        mine, lines = [mesh for mesh in found if mesh.network == network], []
        for kind, style in (("dense", "-"), ("sparse", "--")):
            printed = {mesh.cores: ms for mesh in mine if (ms := mesh.published[kind])}
            points = list(printed), list(printed.values())
            lines.append(Series(f"paper, {kind}", *points, "", hollow=kind == "sparse", like="paper"))
            for mode, count in MODES.items():
                every = [mesh.ms[kind][mode] for mesh in mine]
                lines.append(Series(f"{count}, {kind}", [mesh.cores for mesh in mine], every, style, False, like=count))
        look: dict[str, Any] = {"plain": {"y": (1, 2, 5)}, "limits": {"xticks": [mesh.cores for mesh in mine]}}
        y = "ms per image" if not panels else ""
        panels.append(Panel("columns and rows of cores", y, lines, title=title, log="y", **look))
    return figure(panels, (9.2, 3.2), across=3, sharey=True)
