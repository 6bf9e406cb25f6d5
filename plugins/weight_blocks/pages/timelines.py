"""Steps over time, a row per kind of step: Fig. 4, one convolution, and a stage of ResNet-50, on 4 x 4 cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from sparsemap.plots import COLOURS, Figure, Report, named_ticks, page, subplots

from ..durations import STEPS
from ..instructions import Instruction, instructions_of
from ..layers import MeshLayer
from ..schedule import LayerPlan, compile_layers
from . import KINDS, SPARSITY, MeshSchedules, modes_of

CORES, STAGE = 4, "layer2.0."
LAYER = MeshLayer("conv", "conv", ("input",), 56, 56, 64, 56, 56, 64, (3, 3), 1, (1, 1))
WHERE = {"DDR": ("LOADW", "LOAD", "WRITE"), "memory tile": ("LOADWM", "LOADFM", "WRITEFM"), "core": ("COMP",)}
ORDER = ("LOADW", "LOAD", "LOADWM", "LOADFM", "COMP", "WRITEFM", "WRITE")


def draw(drawn: Sequence[tuple[str, Sequence[Instruction]]]) -> Figure:
    """A picture per title, bars from the start to the end of every instruction, from the first one on; colours say
    whether DDR takes part, memory tiles and cores, or the cores alone."""
    assert set(ORDER) == set(STEPS)
    colours = dict(zip(WHERE, COLOURS, strict=False))
    figure, axes = subplots(len(drawn), 1, (9.0, 0.6 + 1.75 * len(drawn)), squeeze=False)
    for axis, (title, instructions) in zip(axes[:, 0], drawn, strict=True):
        begin = min(one.start for one in instructions)
        whole = max(one.end for one in instructions) - begin
        scale, unit = (1e3, "ms") if whole > 2e-3 else (1e6, "us")
        for row, step in enumerate(reversed(ORDER)):
            mine = (one for one in instructions if one.type == step and one.end > one.start)
            bars = [((one.start - begin) * scale, (one.end - one.start) * scale) for one in mine]
            colour = next(colours[where] for where, steps in WHERE.items() if step in steps)
            axis.broken_barh(bars, (row - 0.4, 0.8), facecolors=colour, linewidth=0)
        named_ticks(axis.yaxis, list(reversed(ORDER)), fontsize=7)
        axis.set(xlim=(0, whole * scale), ylim=(-0.6, len(ORDER) - 0.4), xlabel=unit, title=title)
    handles = [axes[0, 0].plot([], [], "s", color=colour, label=name)[0] for name, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def report(source: MeshSchedules, name: str, quirks: str) -> Report:
    return (_one_layer if name == "fig-4" else _stage)(source, name, quirks)


def _volume(one: LayerPlan) -> str:
    return f"{one.splits.co} x {one.splits.ci}, {one.splits.rows} rows"


def _one_layer(source: MeshSchedules, name: str, quirks: str) -> Report:
    rows: list[dict[str, Any]] = []
    drawn = []
    lines = [["count", "weights", "us", "without WRITE", "sub-volume"]]
    for mode, title in modes_of(quirks).items():
        for kind, sparsity in KINDS.items():
            layer = attrs.evolve(LAYER, density=1 - sparsity)
            schedule = compile_layers([layer], source.machine(CORES, mode))
            one, us = schedule.layers[0], schedule.seconds * 1e6
            alone = us - float(one.steps.of["WRITE"]) * 1e6
            row = {"count": title, "weights": kind, "us": us, "without_write_us": alone}
            rows.append(row | {key: getattr(one.splits, key) for key in ("co", "ci", "rows")})
            lines.append([title, kind, f"{us:.1f}", f"{alone:.1f}", _volume(one)])
            drawn.append((f"{title}, {kind}", instructions_of(schedule)))
    headline = "\n".join(f"{row['count']}, {row['weights']}: {row['us']:.1f} us" for row in rows)
    return Report(name, headline, page(__file__, name, cores=CORES, table=lines), rows, lambda: draw(drawn))


def _stage(source: MeshSchedules, name: str, quirks: str) -> Report:
    drawn: list[Any] = []
    rows: list[dict[str, Any]] = []
    for mode, title in modes_of(quirks).items():
        schedule = source.schedule("resnet50", CORES, SPARSITY, mode)
        drawn.append((title, [one for one in instructions_of(schedule) if one.layer.startswith(STAGE)]))
        for one in schedule.layers:
            if (layer := one.cut.layer.name).startswith(STAGE):
                rows.append({"count": title, "layer": layer, "us": one.seconds * 1e6, "sub_volume": _volume(one)})
    lines = [[row["count"], row["layer"], f"{row['us']:.1f}", row["sub_volume"]] for row in rows]
    sums = {title: sum(row["us"] for row in rows if row["count"] == title) for title, _ in drawn}
    headline = "\n".join(f"{title}: {us:.1f} us" for title, us in sums.items())
    text = page(__file__, name, cores=CORES, table=[["count", "layer", "us", "sub-volume"], *lines])
    return Report(name, headline, text, rows, lambda: draw(drawn))
