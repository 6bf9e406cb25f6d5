"""What accesses next to the compute units cost at least, by the tile that a child has: `bound_units`, by a count of its own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sparsemap_plugins.analytic import bound
from sparsemap_plugins.analytic.bound_units import LeastUnits
from sparsemap_plugins.analytic.inner import functions

import sparsemap
from sparsemap.pieces.contracts import box
from sparsemap.pieces.loading import load

REGISTRY = load()
EVERYTHING = 1e30
"""pJ: numbers of children that share words are not told apart."""


def units_of(problem: sparsemap.Problem) -> LeastUnits:
    model = problem.cost_model
    found = model._bound(problem)
    found.innermost(EVERYTHING)
    assert found.links.units is not None
    return found.links.units


def pj_of(units: LeastUnits, log_extents: np.ndarray, log_words: list[np.ndarray]) -> np.ndarray:
    """Of one way to share the fan-out, with one child."""
    logs, found, some = log_extents.astype(np.float64), np.zeros((1, log_extents.shape[1])), np.ones(1, np.uint8)
    sizes = [np.array(table.shape, dtype=np.float64) for table in (units.widths, units.told)]
    functions.widths_pj(0, logs.shape[1], some, units.widths.ravel(), sizes[0], logs, np.zeros((1, len(logs))), found)
    told = units.told_alone.ravel(), units.told.ravel(), sizes[1]
    if units.operands:
        functions.operands_pj(0, logs.shape[1], some, *told, np.array(log_words), np.zeros((1, 2)), found)
    return found[0]


def dense(lanes: int) -> sparsemap.Problem:
    levels = [
        {"name": "DRAM", "class": "dram"},
        {"name": "GLB", "class": "sram", "capacity": "64 KB", "fanout": 4},
        {"name": "PE", "class": "sram", "capacity": "4 KB", "fanout": lanes},
    ]
    workload = {
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": 16, "k": 16, "n": 16},
        "density": {"P": 1.0, "Q": 1.0},
    }
    hardware = {"technology": "12nm", "levels": levels, "compute": {"name": "MAC"}}
    return sparsemap.load_problem(workload, hardware, registry=REGISTRY)


def test_no_loop_over_the_units_is_longer_than_the_tile() -> None:
    """A dense product on 16 lanes: a x b x c of them over m, k and n read C / c of P, C / a of Q, and update C / b of Z, of
    which each of four instances reads all but the first of a word back. What such a way costs is more than the least by
    all of that, and a word that goes to more lanes has longer wires."""
    problem, lanes = dense(16), 16
    words, chip = problem.cost_model._bound(problem).words, problem.chip
    read, write = (float(chip.energy_pj[name][2]) for name in ("read", "write"))
    costs = {}
    for a, b, c in itertools.product([1, 2, 4, 8, 16], repeat=3):
        if a * b * c <= lanes:
            wires = {n: float(words.wires_pj(0, 2, np.array([float(n)]))[0]) for n in (a, b, c)}
            computes = 16.0**3
            sums = computes / b
            costs[a, b, c] = computes / c * (read + wires[c]) + computes / a * (read + wires[a])
            costs[a, b, c] += sums * (write + wires[b]) + max(0.0, sums - 4 * 256) * (read + wires[b])
    units = units_of(problem)
    for tile in itertools.product(range(5), repeat=3):
        held = min(pj for way, pj in costs.items() if all(n <= 2**most for n, most in zip(way, tile, strict=True)))
        own = pj_of(units, np.array(tile)[:, None], [np.array([9.0]), np.array([9.0])])[0]
        assert own == pytest.approx(held - min(costs.values()), rel=1e-3, abs=200.0), tile
    assert pj_of(units, np.array([[4], [0], [4]]), [np.zeros(1), np.zeros(1)])[0] > 1000.0


def test_larger_tiles_cost_more_metadata_and_wider_ones_fewer_accesses() -> None:
    units = units_of(sparsemap.load_problem("conv3", "cloud", registry=REGISTRY))
    wide = np.full((6, 12), 6)
    more = pj_of(units, wide, [np.arange(12.0), np.full(12, 9.0)])
    assert more[0] < more[6] < more[11] and (np.diff(more) >= 0.0).all()
    narrow = pj_of(units, np.tile(np.arange(6), (6, 1)), [np.full(6, 9.0), np.full(6, 9.0)])
    assert narrow[0] > narrow[-1] and (np.diff(narrow) <= 0.0).all()


@pytest.mark.parametrize(("cell", "more"), [("conv3/cloud", 1.02), ("conv10/cloud", 1.03), ("mm14/cloud", 1.015)])
def test_the_bound_knows_what_the_units_of_a_childs_tile_cost(cell, more, monkeypatch) -> None:
    with_them = sparsemap.load_problem(*cell.split("/"), registry=REGISTRY).bound
    monkeypatch.setattr(bound.LeastUnits, "of", lambda *_: None)
    assert with_them > more * sparsemap.load_problem(*cell.split("/"), registry=REGISTRY).bound


@pytest.mark.parametrize("cell", ["mm1/cloud", "mm9/cloud", "conv3/cloud", "conv8/mobile"])
def test_no_design_reads_less_next_to_the_units_than_its_tile_needs(cell) -> None:
    """With what is charged anyway: the innermost level's energy and all wires, of designs with their own tiles."""
    problem = sparsemap.load_problem(*cell.split("/"), registry=REGISTRY)
    found = problem.cost_model._bound(problem)
    units, rng, space = units_of(problem), np.random.default_rng(3), problem.space
    charged = min(pairs[0].min() for _, pairs in found.innermost(EVERYTHING))
    genomes = space.repair(space.guess(400, rng), rng)
    designs = space.decode(genomes[problem.evaluator.evaluate(genomes).valid])
    detail = problem.cost_model.evaluate(designs, problem, detail=True).detail
    spent = detail.energy_pj[:, 2].sum(axis=0) + detail.charges_pj["network"]
    inside = [i for i, m in enumerate(problem.mapping_levels) if m.storage == 2]
    tiles = designs.columns["bounds"][inside].prod(axis=0)
    words = [np.log2(np.prod(box(found.layout.ranks[t], tiles), axis=0)) for t in found.layout.operands]
    least = pj_of(units, np.log2(tiles).astype(int), words)
    assert len(spent) > 100 and (least > 0.01 * charged).any()
    assert (spent >= charged + least).all()
