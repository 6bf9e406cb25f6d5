"""Table II: three networks on 2 x 2 to 8 x 8 cores, dense and sparse, as the paper counts and as is sound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.files import markdown_table, read_csv
from sparsemap.plots import COLOURS, Figure, Report, plain_log, subplots

from ..schedule import Schedule
from . import KINDS, TITLES, Cells, modes_of

Modes = Mapping[str, str]
PUBLISHED = Path(__file__).parent / "table-ii.csv"
WHY = {
    "inception-v3": "the listings repeat convolutions that write into a concatenation two to six times, for no reason given",
    "resnet50": "images of 7 columns on 8 columns of cores, and fragments of their circular buffer",
    "vgg16": "another choice of tiles for the layers that do not fit in memory tiles",
}
"""What is left between the paper's rules and its table."""


@attrs.frozen
class Cell:
    """A network on so many columns and rows of cores."""

    network: str
    cores: int
    kind: str
    """dense or sparse"""
    published: float | None
    """ms; None where the paper's tool failed."""
    ms: dict[str, float]
    """By mode."""
    floor_ms: float

    def error(self, mode: str = "paper") -> float | None:
        return self.ms[mode] / self.published - 1 if self.published and mode in self.ms else None


def floors(schedule: Schedule) -> tuple[float, float]:
    """Seconds that no schedule can be below: those of the kept multiply-adds, and of the weights through DDR."""
    machine, convs = schedule.machine, [one.cut.layer for one in schedule.layers if one.cut.convolves]
    kept = sum(layer.macs * layer.density for layer in convs)
    stored = sum(layer.weights * layer.density for layer in convs)
    cores = machine.columns * machine.rows
    return kept / (cores * machine.macs * machine.clock_hz), stored / (machine.columns * machine.load_weights)


def cells(source: Cells, modes: Iterable[str]) -> list[Cell]:
    """All 42 cells."""
    found = []
    for row in read_csv(PUBLISHED):
        for kind, sparsity in KINDS.items():
            network, cores = row["network"], int(row["cores"])
            schedules = {mode: source.schedule(network, cores, sparsity, mode) for mode in modes}
            ms = {mode: schedule.seconds * 1e3 for mode, schedule in schedules.items()}
            floor = 1e3 * max(floors(next(reversed(schedules.values()))))
            published = float(row[f"{kind}_ms"]) if row[f"{kind}_ms"] else None
            found.append(Cell(network, cores, kind, published, ms, floor))
    return found


def report(source: Cells, name: str, quirks: str) -> Report:
    modes = modes_of(quirks)
    found = cells(source, modes)
    parts = [f"# Table II: three networks on meshes of cores\n\n{_intro(name, modes)}"]
    for network, title in TITLES.items():
        parts.append(f"## {title}\n\n{_table([cell for cell in found if cell.network == network], modes)}")
    parts.append(_outcome(found, modes))
    rows: list[dict[str, Any]] = [
        {"network": c.network, "cores": f"{c.cores}x{c.cores}", "weights": c.kind, "paper_ms": c.published or ""}
        | {f"{mode}_ms": round(ms, 4) for mode, ms in c.ms.items()}
        | {"floor_ms": round(c.floor_ms, 4)}
        for c in found
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


def _table(found: Sequence[Cell], modes: Modes) -> str:
    off = ["off"] if "paper" in modes else []
    titles = [f"sparse / dense, {title}" for title in modes.values()]
    lines = [["cores", "weights", "paper", *modes.values(), *off, "floor", *titles]]
    dense = {cell.cores: cell for cell in found if cell.kind == "dense"}
    for cell in found:
        size, printed = f"{cell.cores} x {cell.cores}", f"{cell.published:.3f}" if cell.published else "-"
        error = [f"{100 * e:+.1f} %" if (e := cell.error()) is not None else ""] if off else []
        ratios = [f"{cell.ms[m] / dense[cell.cores].ms[m]:.2f}" if cell.kind == "sparse" else "" for m in modes]
        times = [f"{cell.ms[mode]:.3f}" for mode in modes]
        lines.append([size, cell.kind, printed, *times, *error, f"{cell.floor_ms:.2f}", *ratios])
    return markdown_table(lines)


def _headline(found: Sequence[Cell], modes: Modes) -> str:
    lines = []
    if "paper" in modes:
        errors = [abs(error) for cell in found if (error := cell.error()) is not None]
        near, fair = sum(e <= 0.05 for e in errors), sum(e <= 0.12 for e in errors)
        lines.append(f"as the paper counts: {near} of {len(errors)} published cells within 5 %, {fair} within 12 %")
    for mode in modes:
        ratios = _ratios(found, mode)
        lines.append(f"{modes[mode]}: sparse / dense {min(ratios):.2f} to {max(ratios):.2f}")
    return "\n".join(lines)


def _ratios(found: Sequence[Cell], mode: str) -> list[float]:
    dense = {(cell.network, cell.cores): cell.ms[mode] for cell in found if cell.kind == "dense"}
    return [cell.ms[mode] / dense[cell.network, cell.cores] for cell in found if cell.kind == "sparse"]


def _outcome(found: Sequence[Cell], modes: Modes) -> str:
    published = {(cell.network, cell.cores, cell.kind): cell.published for cell in found}
    gains = []
    for (network, cores, kind), ms in published.items():
        sparse = published[network, cores, "sparse"]
        if kind == "dense" and ms and sparse:
            gains.append(ms / sparse)
    text = (
        "## What it says\n\n"
        'The abstract of the paper says "2x"; its own table has speed-ups of '
        f"{min(gains):.2f}x to {max(gains):.2f}x. "
    )
    for mode in modes:
        ratios = _ratios(found, mode)
        text += f"{modes[mode].capitalize()}, they are {1 / max(ratios):.2f}x to {1 / min(ratios):.2f}x. "
    if "paper" not in modes:
        return text.strip()
    off = [cell for cell in found if abs(cell.error() or 0) > 0.05]
    lines = [["cell", "off", "what is left"]]
    for cell in off:
        where = f"{TITLES[cell.network]} {cell.cores} x {cell.cores} {cell.kind}"
        lines.append([where, f"{100 * (cell.error() or 0):+.1f} %", WHY[cell.network]])
    return f"{text.strip()}\n\nCells that are more than 5 % off:\n\n{markdown_table(lines)}"


def draw(found: Sequence[Cell], modes: Modes) -> Figure:
    figure, axes = subplots(1, len(TITLES), (9.2, 3.2), sharey=True)
    for axis, (network, title) in zip(axes, TITLES.items(), strict=True):
        for kind, style in (("dense", "-"), ("sparse", "--")):
            mine = [cell for cell in found if (cell.network, cell.kind) == (network, kind)]
            sizes = [cell.cores for cell in mine]
            for colour, mode in zip(COLOURS[1:], modes, strict=False):
                axis.plot(sizes, [c.ms[mode] for c in mine], style, color=colour, label=f"{modes[mode]}, {kind}")
            printed = [(cell.cores, cell.published) for cell in mine if cell.published]
            fill = COLOURS[0] if kind == "dense" else "white"
            axis.plot(*zip(*printed, strict=True), "o", color=COLOURS[0], markerfacecolor=fill, label=f"paper, {kind}")
        axis.set(title=title, xlabel="columns and rows of cores", xticks=sizes)
    axes[0].set_yscale("log")
    plain_log(axes[0].yaxis)
    axes[0].set_ylabel("ms per image")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
