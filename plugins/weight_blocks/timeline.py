"""The steps of a schedule over time, one row per kind of step (the paper's Fig. 3 and those of its appendix)."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemap.plots import COLOURS, Figure, named_ticks, subplots

from .durations import STEPS
from .instructions import Instruction

WHERE = {
    "LOAD": "DDR",
    "LOADW": "DDR",
    "WRITE": "DDR",
    "LOADFM": "memory tile",
    "LOADWM": "memory tile",
    "WRITEFM": "memory tile",
    "COMP": "core",
}
ORDER = ("LOADW", "LOAD", "LOADWM", "LOADFM", "COMP", "WRITEFM", "WRITE")


def draw(instructions: Sequence[Instruction], title: str) -> Figure:
    """Bars from the start to the end of every instruction; colours say between which memories."""
    assert set(ORDER) == set(STEPS)
    figure, axis = subplots(1, 1, (9.5, 2.8))
    whole = max(one.end for one in instructions)
    begin = min(one.start for one in instructions)
    scale, unit = (1e3, "ms") if whole - begin > 2e-3 else (1e6, "us")
    colours = dict(zip(("DDR", "memory tile", "core"), COLOURS, strict=False))
    for row, step in enumerate(reversed(ORDER)):
        bars = [(one.start * scale, (one.end - one.start) * scale) for one in instructions if one.type == step]
        bars = [bar for bar in bars if bar[1] > 0]
        if bars:
            axis.broken_barh(bars, (row - 0.4, 0.8), facecolors=colours[WHERE[step]], linewidth=0, rasterized=True)
    layers = {one.layer: (one.start, one.end) for one in reversed(instructions)}
    if len(layers) <= 24:
        for start, _ in layers.values():
            axis.axvline(start * scale, color="#999999", linewidth=0.5)
    named_ticks(axis.yaxis, [f"{step}  " for step in reversed(ORDER)])
    axis.set_xlim(begin * scale, whole * scale)
    axis.set_xlabel(unit)
    axis.set_title(title)
    handles = [axis.plot([], [], "s", color=colour, label=name)[0] for name, colour in colours.items()]
    axis.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure
