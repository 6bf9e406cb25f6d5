"""`sparsemap compare` of networks and of studies: a verdict, and a row per layer or per common cell."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparsemap.cli import output
from sparsemap.errors import SearchError
from sparsemap.files import times
from sparsemap.pieces.contracts import styled
from sparsemap.pieces.registry import Registry
from sparsemap.searching.result import RESULT_FILE
from sparsemap.spec.units import format_energy

from ..wording import time_text
from . import shares
from .shares import WORTH_NAMES, in_order, ratio, shares_of, worth_of
from .sides import Compared, alike, compared, labelled, sides_of
from .verdict import uncounted, verdict_and_data

LESS = (1, 4, 7, 5)
Answer = tuple[list[str], dict[str, Any]]


def compare_results(paths: Sequence[Path], registry: Registry) -> Answer:
    """Two networks by layer and level, or the common cells of two studies."""
    found, note = alike(paths)
    if all(len(sides) == 1 for sides in found):
        return _networks([sides[0] for sides in found], note, registry)
    keyed = [{side.folder.name: side for side in sides} for sides in found]
    cells = {name: (side, keyed[1][name]) for name, side in keyed[0].items() if name in keyed[1]}
    if not cells:
        what = "of the same workload, hardware, searcher and seed"
        raise SearchError(f"{paths[0]} and {paths[1]} have no cell in common, {what}")
    every = [side for pair in cells.values() for side in pair]
    worth = worth_of(every)
    ratios = {name: ratio(b, a, worth) for name, (a, b) in cells.items()}
    rows = [["cell", f"{WORTH_NAMES[worth]}, B over A", "time A", "time B", "energy A", "energy B"]]
    for name in sorted(cells, key=lambda name: ratios[name] or math.inf):
        costs = [(side.value(key), how) for key, how in (("seconds", time_text), ("energy_pj", format_energy))
                 for side in cells[name]]  # fmt: skip
        rows.append([name, times(ratios[name]), *(how(value) if value else "-" for value, how in costs)])
    known = [value for value in ratios.values() if value]
    mean = statistics.geometric_mean(known) if known else None
    text = f"{paths[1]} has {times(mean)} the {WORTH_NAMES[worth]} of {paths[0]}"
    first = f"{text} (geometric mean of {len(known)} cells)"
    lines = [output.wrapped(text) for text in (*note, first, *uncounted(every))]
    return [*lines, "", output.table(rows, "<>", less=(4, 5))], {"worth": worth, "mean": mean, "cells": ratios}


def verdict_of(paths: Sequence[Path], registry: Registry) -> Answer:
    """The verdict on the folders of searches of one workload; empty for others."""
    if not all((path / RESULT_FILE).is_file() for path in paths):
        return [], {}
    sides = labelled([side for path in paths for side in sides_of(path)])
    if len(compared(sides)) > 1:
        return [], {}
    said, told = verdict_and_data(sides, registry)
    return [*map(output.wrapped, said), ""], {"verdict": said, "verdicts": told}


def _networks(given: Sequence[Compared], note: Sequence[str], registry: Registry) -> Answer:
    sides = labelled(given)
    if len(compared(sides)) > 1:
        one, other = (f"{side.folder} is of {side.subject} ({side.model})" for side in sides)
        raise SearchError(f"{one}, {other.replace(' is of', ' of', 1)}; only the same is compared")
    worth = worth_of(sides)
    ordered = in_order(sides, worth)
    layers, levels = (shares_of(ordered, worth, of) for of in (shares.layers_of, shares.levels_of))
    said, told = verdict_and_data(sides, registry)
    said = [*note, *said]
    title = styled(f"layers, those that decide first; {shares.shares_text(ordered, worth)}", "strong")
    lines = [*map(output.wrapped, said), "", title, *shares.layer_table(sides, layers).lines(less=LESS)]
    lines += ["", styled("levels", "strong"), *shares.level_table(ordered, worth).lines()] if levels else []
    parts = [{part.name: part for part in side.parts} for side in sides]
    rows = [
        {"layer": name, "share": of_all, **{key: has[name].to_dict() for key, has in zip("ab", parts, strict=True)}}
        for name, of_all in layers.items()
    ]
    a, b = ({"result": str(side.folder), "hardware": side.hardware, **side.costs} for side in sides)
    by_level = [{"level": name, "share": of_all} for name, of_all in levels.items()]
    return lines, {"a": a, "b": b, "verdict": said, "verdicts": told, "layers": rows, "levels": by_level}
