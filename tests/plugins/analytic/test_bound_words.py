"""What the bound says of the metadata of tiles, and of what tiles inside need, holds for every design."""

from __future__ import annotations

import numpy as np
import pytest
from sparsemap_plugins.analytic.actions import SKIP
from sparsemap_plugins.analytic.bound_filters import LeastAccesses
from sparsemap_plugins.analytic.bound_tiles import TileGrid
from sparsemap_plugins.analytic.bound_words import LeastWords
from sparsemap_plugins.analytic.inner import functions
from sparsemap_plugins.analytic.prepared import ModelTables
from test_bound import assert_bounded

import sparsemap


def tables(problem: sparsemap.Problem) -> ModelTables:
    return ModelTables.of(problem, frozenset(), problem.cost_model.charges)


def sized(density: float, **sizes: int) -> sparsemap.Problem:
    spec = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": sizes, "density": {"P": density, "Q": density}}
    return sparsemap.load_problem(spec, "mobile", "paper", cost_model="physical")


@pytest.mark.parametrize("density", [0.001, 0.05, 0.3, 0.7])
def test_no_tile_has_fewer_bits_of_metadata_than_a_readable_code_takes(density: float) -> None:
    """At every level that holds a compressed tile; bits that are moved are those of the tile, by its share."""
    problem = sized(density, m=96, k=128, n=64)
    known = tables(problem)
    least = LeastWords(known)
    rng = np.random.default_rng(0)
    genomes = problem.space.repair(problem.space.guess(400, rng), rng)
    detail = problem.cost_model.evaluate(problem.space.decode(genomes), problem, detail=True).detail
    assert detail is not None
    seen = 0
    for t in range(2):
        for s in range(2):
            cell = detail.cells[t][s]
            moved, bits = (cell.read + cell.gone_read), cell.bits["read"] + cell.bits.get("skipped_read", 0.0)
            bits = bits + cell.bits.get("gated_read", 0.0)
            packed = (bits > 0.0) & (cell.gone_read == 0.0) & (moved > 100.0)
            words = detail.tile_words[t, s][packed]
            assert (bits[packed] >= (moved[packed] - 1.0) * least.told_bits(t, words) * (1.0 - 1e-9)).all()
            seen += int(packed.sum())
    assert seen > 30


def test_the_least_of_tiles_inside_is_that_over_all_divisors() -> None:
    problem = sized(0.5, m=12, k=8, n=6)
    grid = TileGrid.of(tables(problem).layout)
    assert grid is not None
    values = np.random.default_rng(0).random(grid.extents.shape[1])
    inside = grid.least_inside(values)
    for place, tile in enumerate(grid.extents.T):
        divides = (tile[:, None] % grid.extents == 0).all(axis=0)
        assert inside[place] == values[divides].min()
        for d in range(3):
            some = divides & (grid.extents[d] < tile[d])
            assert grid.least_inside(values, d)[place] == values[some].min(initial=np.inf)
            along = np.arange(3) == d
            some &= (grid.extents == tile[:, None])[~along].all(axis=0)
            assert grid.least_inside(values, d, along)[place] == values[some].min(initial=np.inf)


@pytest.mark.parametrize("limit", [1, 4, 24])
def test_every_way_to_share_a_fan_out_is_among_those_that_are_tried_together(limit: int) -> None:
    grid = TileGrid.of(tables(sized(0.5, m=12, k=8, n=6)).layout)
    assert grid is not None
    fits = grid.extents.prod(axis=0) <= 6
    found = grid.shares(fits, limit, len(fits))
    some = found.fits[found.places_of(np.arange(len(fits)))[found.rows].sum(axis=1)]
    shares = list(zip(2.0**found.steps.T, found.most.T, some, found.children, strict=True))
    for split in grid.extents[:, grid.extents.prod(axis=0) <= limit].T:
        for place, tile in enumerate(grid.extents.T):
            part = tile / split
            if (part == np.floor(part)).all() and part.prod() <= 6:
                assert any(
                    (low <= split).all() and (split <= high).all() and some[place] and split.prod() <= most
                    for low, high, some, most in shares
                )


def test_all_that_children_hold_together_are_among_the_spread_tiles() -> None:
    problem = sized(0.5, m=12, k=8, n=6)
    grid = TileGrid.of(tables(problem).layout)
    assert grid is not None
    fits = grid.extents.prod(axis=0) <= 6
    splits = np.array([[1, 1, 1], [2, 1, 3], [4, 1, 1], [1, 2, 2]]).T
    spread = grid.spread(fits, splits)
    for tile in grid.extents[:, fits].T:
        for split in splits.T:
            held = tile * split
            if all(size % extent == 0 for size, extent in zip((12, 8, 6), held, strict=True)):
                assert spread[(grid.extents == held[:, None]).all(axis=0)].all()
    assert not spread.all()


@pytest.mark.parametrize(("density", "capacity"), [(0.003, "4 KB"), (0.1, "1 KB"), (0.5, "16 KB")])
def test_designs_whose_tiles_hardly_fit_stay_above_the_bound(density: float, capacity: str) -> None:
    spec = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 64, "k": 96, "n": 80},
            "density": {"P": density, "Q": density}}  # fmt: skip
    levels = [
        {"name": "DRAM", "class": "dram", "bandwidth": "1 words/cycle"},
        {"name": "GLB", "class": "sram", "capacity": capacity, "fanout": 4, "gate_skip": True, "read_bandwidth": "2 words/cycle"},
        {"name": "PEB", "class": "sram", "capacity": "128 B", "fanout": 2, "gate_skip": True, "double_buffered": True},
    ]  # fmt: skip
    hardware = {"technology": "12nm-recommended", "levels": levels, "compute": {"name": "MAC", "gate_skip": True}}
    problem = sparsemap.load_problem(spec, hardware, "full", cost_model="physical")
    rng = np.random.default_rng(0)
    genomes = problem.space.repair(problem.space.guess(700, rng), rng)
    assert_bounded(problem, genomes)
    classes, valid = problem.classes, problem.evaluator.evaluate(genomes).valid
    assert classes is not None
    found = np.unique(classes.of(problem.space.decode(genomes[valid])))
    assert all(classes.known.hold(int(number)) for number in found) and len(found) > 3
    best = sparsemap.search(problem, budget=400, seed=0)
    assert best.gap is not None and best.gap >= 1.0


@pytest.mark.parametrize("density", [0.03, 0.3, 0.8])
def test_no_hierarchy_of_ranks_through_a_tile_has_fewer_bits_than_the_cheapest_one(density: float) -> None:
    """At the outermost level, where nothing is filtered; and some design has hardly more."""
    problem = sized(density, m=12, k=8, n=6)
    known, rng = tables(problem), np.random.default_rng(0)
    least = LeastWords(known)
    genomes = problem.space.repair(problem.space.guess(1000, rng), rng)
    designs = problem.space.decode(genomes)
    detail = problem.cost_model.evaluate(designs, problem, detail=True).detail
    assert detail is not None
    inside = known.layout.sizes[:, None] / designs.columns["bounds"][0]
    for t in range(2):
        bits, dense, whole = detail.cells[t][0].bits["read"], detail.dense_reads[t, 0], detail.tile_words[t, 0]
        packed = bits > 0.0
        held = least.volumes[t] * least.density[t]
        expected = (least.whole_bits(t, inside) * held * dense / whole)[packed]
        assert (bits[packed] >= expected * (1.0 - 1e-9)).all()
        assert (bits[packed] <= 1.02 * expected + 16.0).any()
        assert packed.sum() > 100


def test_a_tile_whose_nonzeros_fit_and_their_places_do_not_holds_no_design() -> None:
    """Classes of mm7 on edge with least scores: nonzeros of the tiles fit, and no hierarchy of ranks names their places."""
    classes = sparsemap.load_problem("mm7", "edge").classes
    assert classes is not None
    least = classes.least[:-1]
    gone = np.flatnonzero(np.isinf(least))
    assert len(gone) > 10 and not any(classes.known.hold(int(number)) for number in gone[:10])


@pytest.mark.parametrize(
    "workload",
    [
        {"einsum": "Z[] = P[k] * Q[k]", "dims": {"k": 4096}, "density": {"P": 0.1, "Q": 0.1}},
        {"einsum": "Z[m] = P[m, k] * Q[k]", "dims": {"m": 256, "k": 256},
         "density": {"P": {"type": "block", "density": 0.1, "block": [4, 4]}, "Q": 0.1}},
    ],
)  # fmt: skip
def test_scalars_and_patterns_with_shapes_have_classes_too(workload) -> None:
    hardware = [
        {"name": "DRAM", "class": "dram"},
        {"name": "GLB", "class": "sram", "capacity": "1 KB", "gate_skip": True},
    ]
    problem = sparsemap.load_problem(workload, {"technology": "12nm-recommended", "levels": hardware})
    classes = problem.classes
    assert classes is not None and all(isinstance(classes.known.hold(n), bool) for n in range(len(classes.least) - 1))
    rng = np.random.default_rng(0)
    assert_bounded(problem, problem.space.repair(problem.space.guess(300, rng), rng))


def test_problems_on_other_chips_share_the_least_metadata_of_their_tensors() -> None:
    first, second = (LeastWords(tables(sparsemap.load_problem("mm1", name))) for name in ("mobile", "cloud"))
    assert all(one.through is other.through for one, other in zip(first.ranks, second.ranks, strict=True))
    assert first.ranks[0].through is not first.ranks[2].through


def test_filters_leave_what_tiles_of_children_meet_and_pass_the_others_in_time() -> None:
    """What the bound takes for granted of a filter at the shared buffer, for operands."""
    problem = sized(0.004, m=96, k=128, n=64)
    known, rng = tables(problem), np.random.default_rng(0)
    accesses = LeastAccesses(known.layout, known.places, stay=True)
    genomes = problem.space.repair(problem.space.guess(1000, rng), rng)
    designs = problem.space.decode(genomes)
    evaluation = problem.cost_model.evaluate(designs, problem, detail=True)
    detail = evaluation.detail
    assert detail is not None
    bounds, width, seen = designs.columns["bounds"], 128.0, 0
    for t in range(2):
        cell = detail.cells[t][1]
        every = cell.read + cell.gone_read
        rows = np.flatnonzero((cell.gone_read > 0.0) & (every > 100.0) & evaluation.valid)
        columns = np.zeros((7, 1, len(rows)))
        columns[-1] = np.log2(detail.dense_reads[t, 1, rows])
        alone, scratch = np.zeros((1, 2 + len(accesses.judged(t, 1)))), np.empty((3, len(rows)))
        plan, chances, log_computes = accesses.plan(t, 1)
        log_extents = np.log2(np.ascontiguousarray(bounds[3:].prod(axis=0)[:, rows]))
        given = alone, log_extents, columns, 0, 0, plan, 0, chances, 0, log_computes
        found = np.empty((1, len(rows)))
        functions.kept_share(0, len(rows), 0, *given, scratch, found)
        least = found[0]
        left = cell.read[rows] / every[rows]
        assert (left + 1.0 / every[rows] >= least * (1.0 - 1e-9)).all()
        tiles = detail.dense_fills[t, 2, rows] / detail.tile_words[t, 2, rows]
        skips, missed = cell.kind[rows] == SKIP, (1.0 - left) ** width
        waits = np.where(missed < 1.0, left * missed / np.where(missed < 1.0, 1.0 - missed, 1.0), 0.0)
        assert (evaluation.cycles[rows] + 1.0 >= tiles * waits * (1.0 - 1e-6))[skips].all()
        seen += int((skips & (least > left / 2.0)).sum())
    assert seen > 10
