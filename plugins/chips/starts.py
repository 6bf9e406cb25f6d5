"""What a search of chips begins with: the chips around the hardware as it stands, and how many designs each layer gets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array

from .layers import LEAST, Weight
from .model import segment_of


def weights_of(reference: Mapping[str, Any]) -> list[Weight]:
    """By distinct layer, how its designs are spent while chips are compared: less where it is less of the whole than the
    mean, and mostly with those tensors on chip that stay there."""
    sizes = [math.sqrt(row["energy_pj"] * row["cycles"]) for row in reference["layers"]]
    return [
        Weight(
            layer=min(1.0, max(LEAST, size * len(sizes) / math.fsum(sizes))),
            stays={kept: count / sum(row["stays"].values()) for kept, count in row["stays"].items()},
        )
        for row, size in zip(reference["layers"], sizes, strict=True)
    ]


def starts_of(problem: Problem, reference: Mapping[str, Any], most: int) -> Array | None:
    """Chips that the search starts from, `most` at most and all within the constraints that need no search: the hardware as
    it stands with the units that its layers have used most; with one size, and then with two, a step larger or smaller,
    those that break a constraint with another size stepped until they hold, the nearest first; and without units. None if
    its values are not among the choices."""
    segment = segment_of(problem)
    own = segment.own(problem, reference["used_most"])
    if own is None:
        return None
    size = [g for g, gene in enumerate(segment.every(problem)) if gene.unit is None]
    high = np.array([len(gene.values) - 1 for gene in segment.every(problem)])
    bare = own.copy()
    bare[[gene.unit is not None for gene in segment.every(problem)]] = 0
    moves = [own, bare]
    for change in (*({g: by} for g in size for by in (1, -1)), *({g: 1, h: -1} for g in size for h in size if g != h)):
        moved = own.copy()
        for g, by in change.items():
            moved[g] += by
        if ((moved >= 0) & (moved <= high)).all():
            moves.append(moved)
    found: list[Array] = []
    for moved in moves:
        every = [segment.shrunk(moved, g, problem) for g in size] if segment.excess(moved, problem) else [moved]
        found += [genes for genes in every if genes is not None]
    if not found:
        return None
    starts = np.stack(found)
    starts = starts[np.argsort(np.abs(starts - own)[:, size].sum(axis=1), kind="stable")]
    return starts[np.sort(np.unique(starts, axis=0, return_index=True)[1])][:most]
