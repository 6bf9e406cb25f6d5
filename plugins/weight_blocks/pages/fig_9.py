"""Fig. 9: depth-wise tiling of the part of VGG-16 that spills on 3 x 3 cores, with DDR 16 times slower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap.plots import Figure, Panel, Report, Series, figure, page

from ..layers import MeshLayer
from ..schedule import compile_tiled, recomputed
from .schedules import KINDS, MeshSchedules

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
    return {**found, "spilled_layers": spilled, "paper_s": PAPER_S[kind].get(count, "")}


def report(runner: Any, name: str) -> Report:
    source = MeshSchedules(runner.registry)
    every = {kind: [point(source, kind, count) for count in TILES] for kind in KINDS}
    dense, sparse = (min(mine, key=lambda row: row["seconds"]) for mine in every.values())
    whole = every["dense"][0]["seconds"]
    lines = [["tiles", "dense", "paper", "sparse", "paper", "multiply-adds", "layers that spill"]]
    for one, other in zip(*every.values(), strict=True):
        times = (text for row in (one, other) for text in (f"{row['seconds']:.4f}", f"{row['paper_s'] or '-'}"))
        lines.append([str(one["tiles"]), *times, f"x{one['recomputed']:.3f}", str(one["spilled_layers"])])
    about = {"dense": dense, "sparse": sparse, "ratio": sparse["seconds"] / whole, "paper": 0.014 / 0.025}
    headline = (
        f"dense {whole:.4f} s untiled, {dense['seconds']:.4f} s with {dense['tiles']} tiles; "
        f"sparse {sparse['seconds']:.4f} s with {sparse['tiles']}; both over dense untiled {about['ratio']:.2f}"
    )
    text = page(__file__, name, cores=CORES, slower=SLOWER, table=lines, **about)
    return Report(name, headline, text, [row for mine in every.values() for row in mine], lambda: draw(every))


def draw(every: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    lines = []
    for kind, rows in every.items():
        lines.append(Series(kind, [row["tiles"] for row in rows], [row["seconds"] * 1e3 for row in rows]))
        printed = [seconds * 1e3 for seconds in PAPER_S[kind].values()]
        lines.append(Series(f"paper, {kind}", list(PAPER_S[kind]), printed, "", hollow=True, like=kind))
    return figure([Panel("tiles of rows", "ms", lines, limits={"ylim": (0, None)})], (5.6, 3.0))
