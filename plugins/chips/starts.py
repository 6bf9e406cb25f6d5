"""What a search of chips begins with: the chips around the hardware as it stands, and how many designs each layer gets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array

from .model import segment_of

LEAST = 0.25
"""Of the designs of a layer, what one that hardly counts gets."""


def weights_of(reference: Mapping[str, Any]) -> list[float]:
    """By distinct layer, the share of the designs that it gets while chips are compared: less where it is less of the whole
    than the mean, `LEAST` at least."""
    sizes = [math.sqrt(row["energy_pj"] * row["cycles"]) for row in reference["layers"]]
    return [min(1.0, max(LEAST, size * len(sizes) / math.fsum(sizes))) for size in sizes]


def starts_of(problem: Problem, reference: Mapping[str, Any], most: int) -> Array | None:
    """Chips that the search starts from, `most` at most and all within the constraints that need no search: the hardware as
    it stands with the units that its layers have used most, and with none; one size stepped until they hold; one size a
    step larger, or smaller, and another stepped until they hold. None if its values are not among the choices."""
    segment = segment_of(problem)
    own = segment.own(problem, reference["used_most"])
    if own is None:
        return None
    size = [g for g, gene in enumerate(segment.every(problem)) if gene.unit is None]
    high = np.array([len(gene.values) - 1 for gene in segment.every(problem)])
    bare = own.copy()
    bare[[gene.unit is not None for gene in segment.every(problem)]] = 0
    found: list[Array | None] = [own, *(segment.shrunk(own, gene, problem) for gene in size), bare]
    for by in (1, -1):
        for gene in size:
            moved = own.copy()
            moved[gene] += by
            if 0 <= moved[gene] <= high[gene]:
                found += [segment.shrunk(moved, other, problem) for other in size if other != gene]
    held = [genes for genes in found if genes is not None and not segment.excess(genes, problem)]
    if not held:
        return None
    starts = np.stack(held)
    return starts[np.sort(np.unique(starts, axis=0, return_index=True)[1])][:most]
