"""Which levels keep a tensor, as genes: every design is one of the hardware that says so."""

import numpy as np
import pytest
from sparsemap_plugins.timeloop.problem import Names, mapping
from sparsemap_plugins.verify import verify

import sparsemap
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.testing import check_segment

REGISTRY = load()
LEVELS = [
    {"name": "DRAM", "class": "dram"},
    {"name": "GLB", "class": "sram", "capacity": "16 KB", "fanout": 16, "gate_skip": True},
    {"name": "PEB", "class": "sram", "capacity": "1 KB", "gate_skip": True, "bypass": ["Q"]},
]
HARDWARE = {"name": "passing", "technology": "12nm", "levels": LEVELS, "compute": {"name": "MAC", "gate_skip": True}}
WORKLOAD = {
    "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
    "dims": {"m": 12, "k": 16, "n": 8},
    "density": {"P": 0.2, "Q": 0.4},
}
SPACE = {"extends": "full", "segments": ["orders", "tiling", "formats", "gate-skip", "passing"]}


@pytest.fixture(scope="module")
def problem():
    return sparsemap.load_problem(WORKLOAD, HARDWARE, SPACE, cost_model="timeloop", registry=REGISTRY)


def test_genes_are_tensors_and_levels_that_keep_them(problem):
    segment = problem.space.segments["passing"]
    assert segment.genes(problem).names == (
        "passes.GLB.P",
        "passes.GLB.Q",
        "passes.GLB.Z",
        "passes.PEB.P",
        "passes.PEB.Z",
    )
    check_segment(segment, problem)
    assert len(problem.layouts) == 2**5


def test_random_designs_cost_what_they_cost_on_hardware_that_has_no_choice_and_stay_above_the_bound(problem):
    rng = np.random.default_rng(1)
    genomes = problem.space.repair(problem.space.sample(150, rng), rng)
    evaluation, bound = problem.evaluator.evaluate(genomes), problem.lower_bound
    valid = np.flatnonzero(evaluation.valid)
    above = evaluation.energy_pj[valid, None] >= bound.energy_pj
    assert (above & (evaluation.cycles[valid, None] >= bound.cycles)).any(axis=1).all()
    designs, passing = problem.space.decode(genomes), 0
    for row in map(int, valid[:8]):
        design = Design.of(problem, designs.take(slice(row, row + 1)))
        again = design_file.structure(design_file.dump(design), REGISTRY)
        found = again.problem.cost_model.evaluate(again.batch, again.problem)
        assert (found.energy_pj[0], found.cycles[0]) == (evaluation.energy_pj[row], evaluation.cycles[row])
        told = [row for row in mapping(design, Names.of(design.problem))["mapping"] if row["type"] == "bypass"]
        kept = [[t.name for i, t in enumerate(again.problem.tensors) if again.problem.stores(i, s)] for s in range(3)]
        assert [row.get("keep", []) for row in told] == kept
        passing += len(again.problem.levels[1].memory.bypass)
    assert passing > 5


def test_a_search_with_these_genes_finds_designs_that_execution_confirms(problem):
    design = sparsemap.search(problem, budget=100, seed=0).found.design
    assert design.problem is not problem
    report = verify(design.problem, design.batch, trials=3)
    cycles = next(row for row in report.rows if row.quantity == "cycles")
    assert cycles.mean == pytest.approx(cycles.expected, rel=0.2)


def test_the_best_of_all_layouts_is_below_that_of_the_hardware():
    """A buffer that costs more than the memory outside is passed by."""
    dear = [LEVELS[0], {**LEVELS[1], "energy": {"read": 500.0, "write": 500.0}}, LEVELS[2]]
    space = {**SPACE, "passing": {"levels": {"GLB": ["P", "Q", "Z"]}}}
    problem = sparsemap.load_problem(
        WORKLOAD, {**HARDWARE, "levels": dear}, space, cost_model="timeloop", registry=REGISTRY
    )
    design = sparsemap.search(problem, budget=300, seed=0).found.design
    assert [design.problem.stores(t, 1) for t in range(3)] == [False] * 3
    with pytest.raises(SpecError, match="did you mean 'GLB'"):
        wrong = {**SPACE, "passing": {"levels": {"GLP": ["P"]}}}
        len(sparsemap.load_problem(WORKLOAD, HARDWARE, wrong, registry=REGISTRY).space)


def test_a_search_starts_from_what_other_hardware_keeps(problem):
    fixed = [LEVELS[0], {**LEVELS[1], "bypass": ["P"]}, LEVELS[2]]
    source = sparsemap.load_problem(WORKLOAD, {**HARDWARE, "levels": fixed}, "full", registry=REGISTRY)
    segment, rng = problem.space.segments["passing"], np.random.default_rng(0)
    designs = source.space.decode(source.space.sample(3, rng))
    assert segment.transfer(designs, source, problem, rng, False).T.tolist() == [[1, 0, 0, 0, 0]] * 3


def test_levels_that_keep_nothing_leave_no_genes_and_one_layout():
    levels = [LEVELS[0], {**LEVELS[1], "bypass": ["P", "Q", "Z"]}, LEVELS[2]]
    space = {**SPACE, "passing": {"levels": {"GLB": ["P", "Q", "Z"]}}}
    problem = sparsemap.load_problem(WORKLOAD, {**HARDWARE, "levels": levels}, space, registry=REGISTRY)
    assert not len(problem.space.segments["passing"].genes(problem).names)
    assert len(problem.layouts) == 1
    assert sparsemap.search(problem, budget=60).best is not None
