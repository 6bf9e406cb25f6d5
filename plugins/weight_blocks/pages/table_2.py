"""Table II: three networks on 2 x 2 to 8 x 8 cores, dense and sparse, as the paper counts and as is sound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.files import markdown_table, read_csv
from sparsemap.plots import COLOURS, Figure, Report, plain_log, subplots

from ..schedule import Schedule
from . import KINDS, TITLES, MeshSchedules, modes_of

Modes = Mapping[str, str]
PUBLISHED = Path(__file__).parent / "table-ii.csv"
WHY = {
    "resnet50": "images of 7 columns on 8 columns of cores, and fragments of their circular buffer",
    "vgg16": "another choice of tiles for the layers that do not fit in memory tiles",
}
"""What is left between the paper's rules and its table."""


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
        """Of the paper's count, relative to what the paper prints."""
        published = self.published[kind]
        return self.ms[kind]["paper"] / published - 1 if published and "paper" in self.ms[kind] else None

    def ratio(self, mode: str) -> float:
        """Sparse over dense."""
        return self.ms["sparse"][mode] / self.ms["dense"][mode]


def floors(schedule: Schedule) -> tuple[float, float]:
    """Seconds that no schedule can be below: those of the kept multiply-adds, and of the weights through DDR."""
    machine, convs = schedule.machine, [one.cut.layer for one in schedule.layers if one.cut.convolves]
    kept = sum(layer.macs * layer.density for layer in convs)
    stored = sum(layer.weights * layer.density for layer in convs)
    cores = machine.columns * machine.rows
    return kept / (cores * machine.macs * machine.clock_hz), stored / (machine.columns * machine.load_weights)


def measured(source: MeshSchedules, row: Mapping[str, str], modes: Iterable[str]) -> Mesh:
    """The estimates beside a line of the paper's table."""
    network, cores = row["network"], int(row["cores"])
    published = {kind: float(row[f"{kind}_ms"]) if row[f"{kind}_ms"] else None for kind in KINDS}
    ms, floor_ms = {}, {}
    for kind, sparsity in KINDS.items():
        schedules = {mode: source.schedule(network, cores, sparsity, mode) for mode in modes}
        ms[kind] = {mode: schedule.seconds * 1e3 for mode, schedule in schedules.items()}
        floor_ms[kind] = 1e3 * max(floors(next(reversed(schedules.values()))))
    return Mesh(network, cores, published, ms, floor_ms)


def report(source: MeshSchedules, name: str, quirks: str) -> Report:
    modes = modes_of(quirks)
    found = [measured(source, row, modes) for row in read_csv(PUBLISHED)]
    parts = [f"# Table II: three networks on meshes of cores\n\n{_intro(name, modes)}"]
    for network, title in TITLES.items():
        parts.append(f"## {title}\n\n{_table([mesh for mesh in found if mesh.network == network], modes)}")
    parts.append(_outcome(found, modes))
    rows: list[dict[str, Any]] = [
        {"network": mesh.network, "cores": f"{mesh.cores}x{mesh.cores}", "weights": kind}
        | {"paper_ms": mesh.published[kind] or ""}
        | {f"{mode}_ms": round(ms, 4) for mode, ms in mesh.ms[kind].items()}
        | {"floor_ms": round(mesh.floor_ms[kind], 4)}
        for mesh in found
        for kind in KINDS
    ]
    return Report(name, _headline(found, modes), "\n\n".join(parts) + "\n", rows, lambda: draw(found, modes))


def _intro(name: str, modes: Modes) -> str:
    counted = " and ".join(f"{title} (quirks: {mode})" for mode, title in modes.items())
    return (
        f"`sparsemap wbs {name}`: milliseconds for one image, with all weights and with half of the 8 x 8 blocks "
        "pruned, evenly in every block row. All of them, the paper's as well, are estimates of a model: nothing here ran "
        f"on hardware. Counted {counted}. A dash is a cell "
        "in which the paper's tool failed. The floor is what the kept multiply-adds take on all cores, or the weights "
        "through all channels from DDR if that is longer."
    )


def _table(found: Sequence[Mesh], modes: Modes) -> str:
    off = ["off"] if "paper" in modes else []
    titles = [f"sparse / dense, {title}" for title in modes.values()]
    lines = [["cores", "weights", "paper", *modes.values(), *off, "floor", *titles]]
    for mesh in found:
        for kind, published in mesh.published.items():
            times = [f"{published:.3f}" if published else "-", *(f"{ms:.3f}" for ms in mesh.ms[kind].values())]
            error = [f"{100 * e:+.1f} %" if (e := mesh.error(kind)) is not None else ""] if off else []
            ratios = [f"{mesh.ratio(mode):.2f}" if kind == "sparse" else "" for mode in modes]
            size = f"{mesh.cores} x {mesh.cores}"
            lines.append([size, kind, *times, *error, f"{mesh.floor_ms[kind]:.2f}", *ratios])
    return markdown_table(lines)


def _headline(found: Sequence[Mesh], modes: Modes) -> str:
    lines = []
    if "paper" in modes:
        errors = [abs(error) for mesh in found for kind in KINDS if (error := mesh.error(kind)) is not None]
        near, fair = sum(e <= 0.05 for e in errors), sum(e <= 0.12 for e in errors)
        lines.append(f"as the paper counts: {near} of {len(errors)} published cells within 5 %, {fair} within 12 %")
    for mode, title in modes.items():
        ratios = [mesh.ratio(mode) for mesh in found]
        lines.append(f"{title}: sparse / dense {min(ratios):.2f} to {max(ratios):.2f}")
    return "\n".join(lines)


def _outcome(found: Sequence[Mesh], modes: Modes) -> str:
    printed = [(mesh.published["dense"], mesh.published["sparse"]) for mesh in found]
    gains = [dense / sparse for dense, sparse in printed if dense and sparse]
    text = (
        "## What it says\n\n"
        'The abstract of the paper says "2x"; its own table has speed-ups of '
        f"{min(gains):.2f}x to {max(gains):.2f}x. "
    )
    for mode, title in modes.items():
        ratios = [mesh.ratio(mode) for mesh in found]
        text += f"{title.capitalize()}, they are {1 / max(ratios):.2f}x to {1 / min(ratios):.2f}x. "
    if "paper" not in modes:
        return text.strip()
    lines = [["cell", "off", "what is left"]]
    for mesh in found:
        for kind in KINDS:
            if abs(error := mesh.error(kind) or 0) > 0.05:
                where = f"{TITLES[mesh.network]} {mesh.cores} x {mesh.cores} {kind}"
                lines.append([where, f"{100 * error:+.1f} %", WHY.get(mesh.network, "")])
    return f"{text.strip()}\n\nCells that are more than 5 % off:\n\n{markdown_table(lines)}"


def draw(found: Sequence[Mesh], modes: Modes) -> Figure:
    figure, axes = subplots(1, len(TITLES), (9.2, 3.2), sharey=True)
    for axis, (network, title) in zip(axes, TITLES.items(), strict=True):
        mine = [mesh for mesh in found if mesh.network == network]
        sizes = [mesh.cores for mesh in mine]
        for kind, style, fill in (("dense", "-", COLOURS[0]), ("sparse", "--", "white")):
            for colour, (mode, count) in zip(COLOURS[1:], modes.items(), strict=False):
                axis.plot(sizes, [mesh.ms[kind][mode] for mesh in mine], style, color=colour, label=f"{count}, {kind}")
            printed = [(mesh.cores, mesh.published[kind]) for mesh in mine if mesh.published[kind]]
            axis.plot(*zip(*printed, strict=True), "o", color=COLOURS[0], markerfacecolor=fill, label=f"paper, {kind}")
        axis.set(title=title, xlabel="columns and rows of cores", xticks=sizes)
    axes[0].set_yscale("log")
    plain_log(axes[0].yaxis)
    axes[0].set_ylabel("ms per image")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
