"""The steps of one stage of ResNet-50 over time, on 4 x 4 cores with half of the blocks pruned."""

from __future__ import annotations

from sparsemap.files import markdown_table
from sparsemap.plots import Report

from ..instructions import instructions_of
from ..timeline import draw
from .cells import SPARSITY, Cells
from .table_2 import MODES

CORES, STAGE = 4, "layer2.0."


def report(source: Cells, name: str, quirks: str) -> Report:
    modes = list(MODES) if quirks == "both" else [quirks]
    drawn, rows = [], []
    for mode in modes:
        schedule = source.schedule("resnet50", CORES, SPARSITY, mode)
        mine = [one for one in instructions_of(schedule) if one.layer.startswith(STAGE)]
        drawn.append((MODES.get(mode, mode), mine))
        for one in schedule.layers:
            if one.cut.layer.name.startswith(STAGE):
                volume = f"{one.splits.co} x {one.splits.ci}, {one.splits.rows} rows"
                rows.append({"count": MODES.get(mode, mode), "layer": one.cut.layer.name, "us": one.seconds * 1e6})
                rows[-1]["sub_volume"] = volume
    lines = [["count", "layer", "us", "sub-volume"]]
    lines += [[row["count"], row["layer"], f"{row['us']:.1f}", row["sub_volume"]] for row in rows]
    text = (
        f"# One stage of ResNet-50 over time\n\n`sparsemap wbs {name}`: the steps of the first block of the second stage on "
        f"{CORES} x {CORES} cores, half of the blocks pruned, each row a kind of step; LOAD, LOADW and WRITE go between DDR "
        "and memory tiles, LOADFM, LOADWM and WRITEFM between memory tiles and cores.\n\n" + markdown_table(lines)
    )
    headline = "\n".join(
        f"{title}: {sum(row['us'] for row in rows if row['count'] == title):.1f} us" for title, _ in drawn
    )
    return Report(name, headline, text + "\n", rows, lambda: draw(drawn))
