"""Fig. 4: the time of one convolution, 3 x 3 and 64 to 64 channels of 56 x 56 pixels, on 4 x 4 cores, step by step."""

from __future__ import annotations

from typing import Any

from sparsemap.files import markdown_table
from sparsemap.plots import Report

from ..instructions import Instruction, instructions_of
from ..layers import Layer
from ..quirks import quirks_of
from ..schedule import compile_layers
from ..timeline import draw
from .cells import SPARSITY, Cells
from .table_2 import MODES

CORES = 4


def layer(density: float) -> Layer:
    return Layer("conv", "conv", ("input",), 56, 56, 64, 56, 56, 64, (3, 3), 1, (1, 1), density)


def report(source: Cells, name: str, quirks: str) -> Report:
    modes = list(MODES) if quirks == "both" else [quirks]
    rows: list[dict[str, Any]] = []
    drawn: list[tuple[str, list[Instruction]]] = []
    for mode in modes:
        chosen = quirks_of(mode)
        for kind, density in (("dense", 1.0), ("sparse", 1 - SPARSITY)):
            schedule = compile_layers([layer(density)], source.machine(CORES, chosen), chosen)
            one = schedule.layers[0]
            whole = schedule.seconds * 1e6
            rows.append(
                {"count": MODES.get(mode, mode), "weights": kind, "us": whole}
                | {"without_write_us": whole - float(one.steps.write) * 1e6}
                | {"co": int(one.splits.co), "ci": int(one.splits.ci), "rows": int(one.splits.rows)}
            )
            drawn.append((f"{MODES.get(mode, mode)}, {kind}", instructions_of(schedule)))
    lines = [["count", "weights", "us", "without WRITE", "sub-volume"]]
    for row in rows:
        volume = f"{row['co']} x {row['ci']}, {row['rows']} rows"
        lines.append([row["count"], row["weights"], f"{row['us']:.1f}", f"{row['without_write_us']:.1f}", volume])
    text = (
        f"# Fig. 4: one convolution\n\n`sparsemap wbs {name}`: a 3 x 3 convolution of 64 to 64 channels, 56 x 56 pixels, input "
        f"and output in DDR, on {CORES} x {CORES} cores; the paper reads about 200 us dense and 130 us sparse off its "
        "figure. Each row of the picture is a kind of step. As the paper counts, multiply-adds take most of the time, and "
        "halving them shows; counted soundly, moving inputs to the cores does, and pruning hardly helps this layer.\n\n"
        + markdown_table(lines)
    )
    headline = "\n".join(f"{row['count']}, {row['weights']}: {row['us']:.1f} us" for row in rows)
    return Report(name, headline, text + "\n", rows, lambda: draw(drawn))
