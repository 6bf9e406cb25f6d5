"""GAMMA's operators: each changes the genes that it is named after, and no others."""

from math import factorial

import numpy as np
import pytest
from sparsemap_plugins.searchers.baselines.gamma import Operators, move_loop

from sparsemap import load_problem, search


@pytest.fixture(scope="module")
def problem():
    return load_problem("matmul-32x64x48", "edge")


def segments_changed(space, before, after):
    return {name for name, part in space.slices.items() if (before[:, part] != after[:, part]).any()}


@pytest.mark.parametrize(
    ("operator", "segments"),
    [
        ("mutate_tile", {"tiling"}),
        ("mutate_order", {"orders"}),
        ("mutate_parallelism", {"tiling"}),
        ("mutate_rest", {"formats", "gate-skip"}),
    ],
)
def test_a_mutation_changes_the_genes_that_it_is_named_after(problem, operator, segments):
    rng = np.random.default_rng(0)
    genomes = problem.space.sample(500, rng)
    before = genomes.copy()
    changed = getattr(Operators(problem.space, rng), operator)(genomes, 1.0)
    assert (genomes == before).all()
    assert segments_changed(problem.space, before, changed) == segments
    assert (problem.space.check(changed) == changed).all()
    assert (getattr(Operators(problem.space, rng), operator)(genomes, 0.0) == before).all()


def test_mutating_parallelism_exchanges_levels_between_dimensions(problem):
    rng = np.random.default_rng(1)
    genomes = problem.space.sample(300, rng)
    changed = Operators(problem.space, rng).mutate_parallelism(genomes, 1.0)
    part = problem.space.slices["tiling"]
    assert (np.sort(genomes[:, part], axis=1) == np.sort(changed[:, part], axis=1)).all()


def test_crossover_takes_one_group_of_genes_from_the_second_parent(problem):
    rng = np.random.default_rng(2)
    operators = Operators(problem.space, rng)
    first, second = (np.full((200, len(problem.space)), value) for value in (1, 2))
    children = operators.crossover(first, second, 1.0)
    groups = [set(operators.stems[row == 2]) for row in children]
    assert all(len(group) == 1 for group in groups)
    assert len(set.union(*groups)) > 3


@pytest.mark.parametrize("dims", [2, 3, 4, 6])
def test_moving_a_loop_gives_another_order_with_the_other_loops_in_place(dims):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, factorial(dims), size=400)
    moved = move_loop(codes, factorial(dims), rng)
    assert ((moved >= 0) & (moved < factorial(dims)) & (moved != codes)).all()


def test_codes_that_are_no_orders_take_any_other_value():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 5, size=100)
    moved = move_loop(codes, 5, rng)
    assert ((moved >= 0) & (moved < 5) & (moved != codes)).all()


def test_a_space_without_mapping_genes_is_searched_too():
    space = {
        "segments": ["mapping", "formats", "gate-skip"],
        "mapping": {"type": "fixed", "order": {}, "bounds": {"L1_T": {"m": 32, "k": 64, "n": 48}}},
        "formats": {"type": "rank-formats", "slots": 3, "candidates": ["uncompressed", "coordinate"]},
        "gate-skip": {"candidates": ["none", "gate-both"]},
    }
    assert search(load_problem("matmul-32x64x48", "edge", space=space), 400, searcher="gamma").best is not None
