"""What a design costs must not depend on which designs were evaluated before it or beside it."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemap
from sparsemap.pieces.loading import load

REGISTRY = load()
CONV = {
    "einsum": "Z[k, p] = P[c, p + r] * Q[k, c, r]",
    "dims": {"k": 1, "c": 3, "p": 4, "r": 3},
    "density": {"P": 0.5, "Q": 0.5},
}


def problem(workload: object = CONV, hardware: str = "mobile") -> sparsemap.Problem:
    return sparsemap.load_problem(workload, hardware, registry=REGISTRY)


def window_designs(found: sparsemap.Problem) -> np.ndarray:
    """Two designs whose ranks over c have tiles of 12 words: with 12 positions inside (p 4), and with 18 (p 2, r 3)."""
    names = list(found.space.names)
    genome = found.space.low.copy()
    for slot, name in enumerate(["P.3", "P.4", "P.5"]):
        genome[names.index(name)] = 4 if slot < 2 else 3  # offset-pair above, coordinate innermost
    genomes = np.repeat(genome[None], 2, axis=0)
    for name in names:
        if name.startswith("tile.c"):
            genomes[:, names.index(name)] = 4
    first, second = ([names.index(f"tile.p.{i}") for i in (1, 2)], names.index("tile.r.1"))
    genomes[0, first], genomes[0, second] = 4, 1
    genomes[1, first[0]], genomes[1, first[1]], genomes[1, second] = 1, 4, 4
    genomes[:, : len(found.mapping_levels)] = 7  # order c, k, p, r: c is the outermost loop inside the buffer
    return genomes


def test_windows_with_equal_tiles_and_different_positions_keep_their_own_offsets() -> None:
    """Tiles of equal volume can hide different numbers of positions, which offsets must be able to name."""
    together = problem()
    genomes = window_designs(together)
    both = together.evaluator.evaluate(genomes)
    alone = [float(problem().evaluator.evaluate(genome[None]).energy_pj[0]) for genome in genomes]
    assert both.energy_pj.tolist() == alone


@pytest.mark.parametrize("workload, hardware", [("mm3", "cloud"), ("conv4", "mobile"), ("conv11", "edge")])
def test_results_do_not_depend_on_block_order_or_history(workload: str, hardware: str) -> None:
    found = problem(workload, hardware)
    rng = np.random.default_rng(3)
    genomes = found.space.repair(found.space.sample(300, rng), rng)
    whole = found.evaluator.evaluate(genomes)
    backwards = problem(workload, hardware).evaluator.evaluate(genomes[::-1])
    found.evaluator.block = 7
    blocks = found.evaluator.evaluate(genomes)
    for other in (blocks.energy_pj, backwards.energy_pj[::-1]):
        assert np.array_equal(whole.energy_pj, other)
    assert np.array_equal(whole.cycles, blocks.cycles)
    assert np.array_equal(whole.cycles, backwards.cycles[::-1])
