"""Chip and mapping in one genome: every design is one of a chip of the hardware's space."""

import pickle

import numpy as np
import pytest

import sparsemap
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.hardware_space import fixed_table, with_value
from sparsemap.testing import check_segment

REGISTRY = load()
LEVELS = [
    {"name": "DRAM", "class": "dram", "bandwidth": "16 GB/s"},
    {
        "name": "GLB",
        "class": "sram",
        "capacity": {"choices": ["1 KB", "4 KB", "16 KB"]},
        "fanout": {"choices": [2, 4, 8]},
        "gate_skip": True,
    },
    {"name": "PEB", "class": "sram", "capacity": "1 KB", "double_buffered": {"choices": [True, False]}},
]
HARDWARE = {
    "name": "little",
    "technology": "12nm",
    "levels": LEVELS,
    "compute": {"name": "MAC", "gate_skip": True},
    "constraints": ["GLB.fanout <= 4", "power_w <= 10"],
}
WORKLOAD = {
    "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
    "dims": {"m": 16, "k": 16, "n": 8},
    "density": {"P": 0.2, "Q": 0.4},
}


def problem_of(space="with-sizes", objective="edp_js", **changes):
    return sparsemap.load_problem(WORKLOAD, {**HARDWARE, **changes}, space, objective=objective, registry=REGISTRY)


@pytest.fixture(scope="module")
def problem():
    return problem_of()


def chip_of(problem, genes):
    """The hardware of a chip, set key by key from outside."""
    table = fixed_table(problem.hardware)
    for (key, values), gene in zip(problem.hardware.choices.items(), genes, strict=True):
        table = with_value(table, key, values[gene])
    return table


def test_genes_are_the_keys_that_vary(problem):
    segment = problem.space.segments["sizing"]
    keys = ("levels.GLB.capacity", "levels.GLB.fanout", "levels.PEB.double_buffered")
    assert problem.space.names[-3:] == segment.genes(problem).names == keys
    check_segment(segment, problem)
    assert len(problem.layouts) == 3 * 3 * 2
    assert problem.bound is not None


def test_a_design_costs_what_it_costs_on_its_chip_alone_and_keeps_the_constraints(problem):
    rng = np.random.default_rng(1)
    genomes = problem.space.repair(problem.space.sample(200, rng), rng)
    evaluation, part = problem.evaluator.evaluate(genomes), problem.space.slices["sizing"]
    names = ("energy_pj", "cycles", "seconds", "power_w", "area_mm2", "edp_js")
    for chip in np.unique(genomes[:, part], axis=0):
        rows = np.flatnonzero((genomes[:, part] == chip).all(axis=1))
        alone = sparsemap.load_problem(WORKLOAD, chip_of(problem, chip), "full", registry=REGISTRY)
        found = alone.evaluator.evaluate(genomes[rows, : part.start])
        wide = chip[1] == 2
        assert (evaluation.valid[rows] == (found.valid & (not wide) & (found.costs["power_w"] <= 10))).all()
        for row, there in zip(rows, range(len(rows)), strict=True):
            if evaluation.valid[row]:
                assert {n: evaluation.costs[n][row] for n in names} == {n: found.costs[n][there] for n in names}
            elif wide and found.valid[there]:
                assert evaluation.reasons_of(row) == ("constraint:GLB.fanout <= 4",)
    assert 20 < evaluation.valid.sum() < len(genomes)
    assert (evaluation.score(problem.judge)[evaluation.valid] >= problem.bound).all()


def test_repair_and_guesses_go_by_the_fan_outs_of_the_own_chip():
    problem = problem_of(constraints=[])
    rng, part = np.random.default_rng(0), problem.space.slices["sizing"]
    for genomes in (problem.space.guess(300, rng), problem.space.sample(300, rng)):
        repaired = problem.space.repaired(genomes, rng)
        assert (repaired.genomes[:, part] == genomes[:, part]).all()
        assert (problem.space.decode(repaired.genomes).bounds == repaired.designs.bounds).all()
        fanout = np.array([2, 4, 8])[genomes[:, part.start + 1]]
        group = next(i for i, x in enumerate(problem.mapping_levels) if x.spatial and x.storage == 1)
        used = repaired.designs.bounds[:, group].prod(axis=1)
        assert (used <= fanout).all()
        assert {2, 4, 8} == {*used[used == fanout]}
    assert len(problem.space.repaired(genomes[:0], rng).designs) == 0


def test_the_search_ends_with_the_best_of_searches_of_every_chip():
    problem = problem_of(constraints=["GLB.fanout <= 4"])
    found = [sparsemap.search(problem, budget=2_000, seed=seed).best for seed in range(2)]
    best = np.inf
    for chip in np.ndindex(3, 2, 2):
        alone = sparsemap.load_problem(WORKLOAD, chip_of(problem, chip), "full", objective="edp_js", registry=REGISTRY)
        best = min(best, sparsemap.search(alone, budget=1_000, seed=0).best.score)
    assert all(one.score <= best * 1.01 for one in found)


def test_a_file_of_a_design_has_its_chip(problem):
    result = sparsemap.search(problem, budget=300, seed=0)
    design = result.found.design
    assert not design.problem.hardware.choices and design.problem.sized is not None
    again = design_file.structure(design_file.dump(design), REGISTRY)
    assert again.problem.chip.digest == design.problem.chip.digest
    costs = again.problem.evaluator.evaluate_designs(again.batch).costs
    assert {name: costs[name][0] for name in result.best.costs} == dict(result.best.costs)
    text = result.report("loop-nest")
    for key, values in problem.hardware.choices.items():
        assert f"{key:26}  {values[design.problem.sized[[*problem.hardware.choices].index(key)]]}" in text
    assert Design.of(problem, problem.space.decode(result.best.genome)).problem.chip.digest == again.problem.chip.digest
    assert pickle.loads(pickle.dumps(result)).best.score == result.best.score


def test_a_search_starts_from_designs_of_chips_that_vary_in_the_same_keys(problem):
    levels = [LEVELS[0], {**LEVELS[1], "capacity": {"choices": ["16 KB", "1 KB"]}}, LEVELS[2]]
    other = problem_of(levels=levels)
    segment, rng = problem.space.segments["sizing"], np.random.default_rng(0)
    designs = problem.space.decode(problem.space.sample(50, rng))
    given, found = designs.columns["sizes"], segment.transfer(designs, problem, other, rng, False)
    assert (found[1:] == given[1:]).all()
    assert (found[0] == np.array([1, 0, 0])[given[0]]).all()  # 4 KB is no choice there: the first one
    assert (found == other.space.transfer(designs, problem, rng)[:, -3:].T).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"levels": [LEVELS[0], {**LEVELS[1], "present": {"choices": [True, False]}}, LEVELS[2]]}, "sparsemap design"),
        ({"levels": [LEVELS[0], {**LEVELS[2], "double_buffered": True}]}, "choices: is empty, expected values"),
        ({"constraints": ["GLP.fanout <= 4"]}, "GLP"),
    ],
)
def test_what_one_genome_cannot_hold_is_told(changes, said):
    problem = problem_of(**changes)
    with pytest.raises(SpecError, match=said):
        sparsemap.search(problem, budget=20)
