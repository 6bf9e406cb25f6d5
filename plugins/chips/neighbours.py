"""Worth of each choice of a chip: neighbouring chips with a single change, searched from the chip's designs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array

from .genes import Gene
from .model import ChipModel, Tried, segment_of, source_of, worth_of


def neighbours_of(
    problem: Problem, tried: Tried, best: Mapping[str, Any], told: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """A row for each change of the best chip: effect on EDP and area, and on the layer with the largest gain.

    The chip itself is searched once more in the same way, so that no neighbour has an advantage. Constraints do not
    count.
    """
    segment, model = segment_of(problem), problem.cost_model
    assert isinstance(model, ChipModel) and tried.reference is not None
    near = [source_of(best, segment, problem), tried.reference]
    genes = np.array(best["genes"], np.int64)
    changes = list(_changes(segment.every(problem), genes, best))
    tables = (model.asked(problem, segment, found, near, None) for found in (genes, *(one[-1] for one in changes)))
    asked = [table | {"constraints": ()} for table in tables]
    rows: dict[int, dict[str, Any]] = {}
    for count, (index, row) in enumerate(tried.map(worth_of, asked)):
        rows[index] = row
        told(count + 1, len(asked))
    return [
        {"key": key, "value": now, "other": other, **_compared(rows[0], rows[i])}
        for i, (key, now, other, _) in enumerate(changes, 1)
        if not rows[i]["reason"]
    ]


def _changes(every: tuple[Gene, ...], genes: Array, best: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Array]]:
    """Key, value, other value and genes: neighbouring sizes in their lists, and removal of each unit in use."""
    seen = set()
    for g, gene in enumerate(every):
        value = gene.values[int(genes[g])]
        if gene.unit is None:
            others = [int(genes[g]) + step for step in (-1, 1) if 0 <= int(genes[g]) + step < len(gene.values)]
        else:
            used = value and value in best["units"].get(gene.unit[0], {}).get(gene.unit[1], ())
            others = [0] if used and (gene.unit, value) not in seen else []
            seen.add((gene.unit, value))
        for other in others:
            changed = genes.copy()
            changed[g] = other
            if gene.unit is not None:  # the same unit may be named twice
                same = [h for h, x in enumerate(every) if x.unit == gene.unit and x.values[int(genes[h])] == value]
                changed[same] = 0
            key = gene.name if gene.unit is None else f"{gene.unit[0]}.{gene.unit[1]}"
            yield key, value, gene.values[other], changed


def _compared(base: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    layers = {
        one["layer"]: two["energy_pj"] * two["cycles"] / (one["energy_pj"] * one["cycles"])
        for one, two in zip(base["layers"], row["layers"], strict=True)
    }
    least = min(layers, key=lambda name: layers[name])
    return {
        "edp": row["energy_pj"] * row["cycles"] / (base["energy_pj"] * base["cycles"]),
        "area": row["area_mm2"] / base["area_mm2"],
        "layer": least,
        "edp_of_layer": layers[least],
    }
