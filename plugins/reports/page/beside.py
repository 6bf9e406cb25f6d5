"""The page of several results next to each other: searches, networks, cells of studies."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparsemap import __version__
from sparsemap.files import times
from sparsemap.spec.units import format_energy

from ..charts import Chart, Mark, strips
from ..sides import (
    PARTS,
    WORTH_NAMES,
    Compared,
    labelled,
    layer_table,
    name_of,
    ranked,
    ratio,
    sides_of,
    verdict,
    worth_of,
)
from ..stacks import stack
from ..tables import Cell, PageTable, number, numbers
from ..wording import CHIP_COSTS, COST_NAMES, chip_text, time_text
from .content import Headline, Page, Section

BARS = 24
"""Of a chart of layers."""
FULL = 200
"""Results of which energy and time are drawn."""


def comparison(paths: Sequence[Path]) -> Page:
    """What is best and why, numbers, ratios to the first of each problem, layers, energy and time of each."""
    sides = labelled([side for path in paths for side in sides_of(path)])
    worth = worth_of(sides)
    first: dict[tuple[str, str], Compared] = {}
    points, rows, ratios = [], [], []
    over_first = f"{WORTH_NAMES[worth]} over the first"
    for i, side in enumerate(sides):
        base = first.setdefault(side.problem, side) if side.numbers["edp"] is not None else side
        over = ratio(side, base, worth) if side.numbers["edp"] is not None else None
        ratios.append(over)
        model = f", {side.model}" if side.model != sides[0].model else ""
        if over is not None:
            tip = f"{side.label}: {side.searched}\n{WORTH_NAMES[worth]} {times(over)} of {base.label}"
            points.append(Mark(over, side.searcher, f"{side.subject} on {side.hardware}{model}", tip=tip))
        edp, energy, cycles, gap = numbers(side.numbers, f"{i}.", ("edp", "energy_pj", "cycles", "gap"))
        costs = numbers(side.costs, f"{i}.costs.", tuple(CHIP_COSTS))
        about = {"result": side.label, "workload": side.subject, "hardware": side.hardware, "cost model": side.model}
        told = {"energy": energy, over_first: number(over, times), "EDP": edp, "cycles": cycles, "over the bound": gap}
        rows.append(
            {**about, "searcher": side.searched, **dict(zip(COST_NAMES.values(), costs, strict=True)), **told}
            | {"limited by": side.limit}
        )
    texts = ("workload", "hardware", "cost model", "searcher", "limited by")  # told above the table where all have one
    head = [key for key in rows[0] if key not in texts or len({row[key] for row in rows}) > 1]
    blocks: list[Any] = [PageTable(head, [[row[key] for key in head] for row in rows])]
    if len(points) > len({(point.row, point.part) for point in points}):  # seeds, or other repetitions
        blocks.append(_means(sides, ratios))
    if points:
        blocks.append(strips(points, over_first, list(dict.fromkeys(side.searcher for side in sides))))
    text = "Ratios are to the first result of the same workload and cost model; times are at the clock of each chip."
    sections = []
    layers = layer_blocks(sides)
    if layers:
        sections.append(
            Section("Layers, those that decide first", layers, "Of all repetitions; shares are of the difference.")
        )
    sections.append(Section("Results", blocks, text))
    known = [side for side in sides if side.parts and side.numbers["edp"] is not None][:FULL]
    if any(part.costs.known for side in known for part in side.parts):
        bars = [(name_of(side, sides), side.parts, "") for side in known]
        text = "By level and charge, and by what limits it; bars add up to the whole."
        sections.append(Section("Energy and time", [stack(bars, key) for key in PARTS], text))
    names_of = " or ".join(name_of(side, sides) for side in sides)
    tiles = [_tile(side, name_of(side, sides)) for side in sides if side.costs] if len(sides) < 7 else []
    title = f"{sides[0].subject}: {names_of}" if len(sides) < 4 and len(first) == 1 else f"{len(sides)} results"
    words = f"sparsemap report {' '.join(str(path) for path in paths)}; sparsemap {__version__}"
    lines = [words, *dict.fromkeys(f"{side.subject}: {side.searched}" for side in sides[:4])]
    return Page(title, lines, tiles, sections, verdict=verdict(sides))


def _tile(side: Compared, label: str) -> Headline:
    """The time of a side, and beside it energy, power and area."""
    rest = {key: value for key, value in side.costs.items() if key != "seconds"}
    note = ", ".join(filter(None, [format_energy(side.numbers["energy_pj"]), chip_text(rest)]))
    return Headline(label, number(side.value("seconds"), time_text), note)


def layer_blocks(sides: Sequence[Compared]) -> list[PageTable | Chart]:
    """For the first network that several sides have: its layers on each, and how long they take, as far as the best and
    the next one differ in them; nothing if no two have layers in common."""
    for subject in dict.fromkeys(side.problem for side in sides if len(side.parts) > 1):
        same = [side for side in sides if side.problem == subject and side.numbers["edp"] is not None]
        if len(same) > 1:
            ordered, shares = ranked(same)
            parts = {name_of(side, same): {part.name: part for part in side.parts} for side in ordered}
            few = list(shares)[: max(1, BARS // len(same))]
            bars = [
                (f"{name}, {label}", [has[name]], "") for name in few for label, has in parts.items() if name in has
            ]
            every = [part for side in ordered for part in side.parts]
            return [layer_table(ordered, shares), *(stack(bars, key, among=every) for key in PARTS)]
    return []


def _means(sides: Sequence[Compared], ratios: Sequence[float | None]) -> PageTable:
    """Ratios by hardware and searcher."""
    found: dict[tuple[str, str], list[float]] = {}
    for side, over in zip(sides, ratios, strict=True):
        if over is not None:
            found.setdefault((side.hardware, side.searcher), []).append(over)
    rows: list[list[Cell]] = []
    for names, each in found.items():
        means = statistics.geometric_mean(each), min(each), statistics.median(each), max(each)
        rows.append([*names, *(number(mean, times) for mean in means), f"{len(each)}"])
    return PageTable(["hardware", "searcher", "geometric mean", "least", "median", "most", "results"], rows)
