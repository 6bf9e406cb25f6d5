"""Start of a search of chips: chips around the unchanged hardware, and the number of designs of each layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsemap import Problem
from sparsemap.pieces.contracts import Array

from .layers import LEAST, Weight
from .model import segment_of


def weights_of(reference: Mapping[str, Any], judge: str) -> list[Weight]:
    """Division of designs by distinct layer, for the comparison of chips.

    A layer with a share below the mean, of all totals or of its network, gets fewer designs; most designs go to the
    tensors on chip in the reference plans."""
    total = judge == "sum"
    sizes = [math.sqrt(row["energy_pj"] * row["cycles"]) if total else row["share"] for row in reference["layers"]]
    return [
        Weight(
            layer=min(1.0, max(LEAST, size * len(sizes) / math.fsum(sizes))),
            stays={kept: count / sum(row["stays"].values()) for kept, count in row["stays"].items()},
        )
        for row, size in zip(reference["layers"], sizes, strict=True)
    ]


def starts_of(problem: Problem, reference: Mapping[str, Any], most: int, seed: int) -> Array | None:
    """Initial chips, at most `most`, all within the constraints that need no search.

    First the unchanged hardware with its layers' most used units, and without units; then chips with these units and
    evenly spread sizes. None if a value of the hardware is not among its choices."""
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
