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


COLOUR = dict(zip(("DDR", "memory tile", "core"), COLOURS, strict=False))


def draw(drawn: Sequence[tuple[str, Sequence[Instruction]]]) -> Figure:
    """A picture per title, bars from the start to the end of every instruction, from the first one on; colours say
    whether DDR takes part, memory tiles and cores, or the cores alone."""
    assert set(ORDER) == set(STEPS)
    figure, axes = subplots(len(drawn), 1, (9.0, 0.6 + 1.75 * len(drawn)), squeeze=False)
    for axis, (title, instructions) in zip(axes[:, 0], drawn, strict=True):
        begin = min(one.start for one in instructions)
        whole = max(one.end for one in instructions) - begin
        scale, unit = (1e3, "ms") if whole > 2e-3 else (1e6, "us")
        for row, step in enumerate(reversed(ORDER)):
            mine = (one for one in instructions if one.type == step and one.end > one.start)
            bars = [((one.start - begin) * scale, (one.end - one.start) * scale) for one in mine]
            axis.broken_barh(bars, (row - 0.4, 0.8), facecolors=COLOUR[WHERE[step]], linewidth=0)
        named_ticks(axis.yaxis, list(reversed(ORDER)), fontsize=7)
        axis.set_xlim(0, whole * scale)
        axis.set_ylim(-0.6, len(ORDER) - 0.4)
        axis.set_xlabel(unit)
        axis.set_title(title)
    handles = [axes[0, 0].plot([], [], "s", color=colour, label=name)[0] for name, colour in COLOUR.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure
