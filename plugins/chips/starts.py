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


def starts_of(problem: Problem, reference: Mapping[str, Any], most: int, seed: int) -> Array | None:
    """Chips that the search starts from, `most` at most and all within the constraints that need no search: the hardware as
    it stands with the units that its layers have used most, and without units; then chips with those units whose sizes are
    spread over all there are, each value as often as any other. None if its values are not among the choices."""
    segment = segment_of(problem)
    own = segment.own(problem, reference["used_most"])
    if own is None:
        return None
    every = segment.every(problem)
    bare = np.where([gene.unit is None for gene in every], own, 0)
    found, rng = np.stack([own, bare]), np.random.default_rng([seed, 0x5747])
    if most > len(found) and any(gene.unit is None for gene in every):
        spread = np.tile(own, (most - len(found), 1))
        for g, gene in enumerate(every):
            if gene.unit is None:
                places = (rng.permutation(len(spread)) + rng.random(len(spread))) / len(spread)
                spread[:, g] = np.floor(places * len(gene.values))
        found = np.concatenate([found, spread])
    found = segment.repair(np.ascontiguousarray(found.T), problem, {}, rng).T
    held = np.array([not segment.excess(genes, problem) for genes in found])
    found = found[held]
    return found[np.sort(np.unique(found, axis=0, return_index=True)[1])][:most] if len(found) else None
