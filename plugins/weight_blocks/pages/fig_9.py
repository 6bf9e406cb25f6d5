"""Fig. 9: depth-wise tiling of the part of VGG-16 that spills on 3 x 3 cores, with DDR 16 times slower."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from sparsemap.files import markdown_table
from sparsemap.plots import COLOURS, Figure, Report, subplots

from ..layers import MeshLayer
from ..schedule import compile_tiled, recomputed
from . import KINDS, MeshSchedules

CORES, SLOWER, TILES = 3, 16, range(1, 9)
FIRST, LAST = "features.2", "features.9"
"""conv1_2 and the second pool."""
PAPER_S = {"dense": {1: 0.025, 2: 0.022, 3: 0.024}, "sparse": {1: 0.021, 2: 0.014}}


def segment(layers: Sequence[MeshLayer]) -> list[MeshLayer]:
    """The layers from conv1_2 to the second pool."""
    names = [layer.name for layer in layers]
    return list(layers[names.index(FIRST) : names.index(LAST) + 1])


def point(source: MeshSchedules, kind: str, count: int, quirks: str = "none") -> dict[str, Any]:
    """The chain in so many tiles, dense or sparse."""
    fast = source.machine(CORES, quirks)
    rates = {key: getattr(fast, key) / SLOWER for key in ("load", "load_weights", "write")}
    chain = segment(source.layers("vgg16", KINDS[kind]))
    schedule = compile_tiled(chain, attrs.evolve(fast, **rates), [(chain, count)])
    return {
        "weights": kind,
        "tiles": count,
        "seconds": schedule.seconds,
        "recomputed": recomputed(chain, count),
        "spilled_layers": sum(one.placement.spilled for one in schedule.layers),
        "paper_s": PAPER_S[kind].get(count, ""),
    }


def report(source: MeshSchedules, name: str, quirks: str) -> Report:
    chosen = "none" if quirks == "both" else quirks
    rows = [point(source, kind, count, chosen) for kind in KINDS for count in TILES]
    every = {kind: [row for row in rows if row["weights"] == kind] for kind in KINDS}
    dense, sparse = (min(mine, key=lambda row: row["seconds"]) for mine in every.values())
    whole = rows[0]["seconds"]
    lines = [["tiles", "dense", "paper", "sparse", "paper", "multiply-adds", "layers that spill"]]
    for both in zip(*every.values(), strict=True):
        times = (text for row in both for text in (f"{row['seconds']:.4f}", f"{row['paper_s'] or '-'}"))
        spilled = f"{both[0]['spilled_layers']}"
        lines.append([f"{both[0]['tiles']}", *times, f"x{both[0]['recomputed']:.3f}", spilled])
    ratio = sparse["seconds"] / whole
    text = (
        f"# Fig. 9: depth-wise tiling\n\n`sparsemap wbs {name}`: seconds of VGG-16 from its second convolution to its second "
        f"pool on {CORES} x {CORES} cores, with DDR {SLOWER} times slower (0.25 GB/s in, 0.5 GB/s out), dense and with half "
        "of the blocks pruned. Untiled, every layer goes from DDR to DDR; tiles of rows run through all layers, compute "
        "what they share twice, and load all weights again. The paper prints no shapes for its two and three tiles: two "
        "tiles of rows cannot fit in the memory tiles, so its points cannot be compared one by one. An estimate of a "
        f"model, like the paper's.\n\n{markdown_table(lines)}\n\n"
        f"Best are {dense['tiles']} tiles, dense, and {sparse['tiles']}, sparse. Sparse and tiled over dense "
        f"and untiled: {ratio:.2f} (paper: {0.014 / 0.025:.2f})."
    )
    headline = (
        f"dense {whole:.4f} s untiled, {dense['seconds']:.4f} s with {dense['tiles']} tiles; "
        f"sparse {sparse['seconds']:.4f} s with {sparse['tiles']}; both over dense untiled {ratio:.2f}"
    )
    return Report(name, headline, text + "\n", rows, lambda: draw(rows))


def draw(rows: Sequence[dict[str, Any]]) -> Figure:
    figure, axis = subplots(1, 1, (5.6, 3.0))
    for colour, kind in zip(COLOURS[1:], PAPER_S, strict=False):
        mine = [row for row in rows if row["weights"] == kind]
        axis.plot([r["tiles"] for r in mine], [r["seconds"] * 1e3 for r in mine], "o-", color=colour, label=kind)
        printed = PAPER_S[kind]
        style = {"color": colour, "markerfacecolor": "white", "linestyle": "", "marker": "s"}
        axis.plot(list(printed), [s * 1e3 for s in printed.values()], label=f"paper, {kind}", **style)
    axis.set_ylim(0)
    axis.set_xlabel("tiles of rows")
    axis.set_ylabel("ms")
    axis.legend(ncols=2)
    return figure
