"""One design: its loops, the ranks of its tensors, and what it skips."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design, slots_used
from sparsemap.problem.load import load_problem

BY_HAND = {
    "kind": "design",
    "workload": {
        "einsum": "Z[k, p] = P[2*p + r] * Q[k, r]",
        "dims": {"k": 4, "p": 8, "r": 3},
        "density": {"P": 0.5, "Q": 0.5},
    },
    "hardware": "edge",
    "mapping": {"L1_T": ["p=2"], "L2_T": ["k=2", "p=2", "r=3"], "L2_S": ["k=2"], "L3_T": ["p=2"]},
    "formats": {
        "P": ["uncompressed", "uncompressed", "bitmask", "coordinate"],
        "Q": ["uncompressed", "bitmask", "bitmask", "run-length"],
        "Z": ["bitmask", "coordinate", "run-length", "bitmask"],
    },
    "beyond_format": "offset-pair",
    "gate_skip": {"GLB": "skip-q-by-p", "PEB": "none", "MAC": "gate-both"},
}


@pytest.fixture(scope="module")
def registry():
    return load(env={})


@pytest.fixture(scope="module")
def design(registry) -> Design:
    return design_file.structure(BY_HAND, registry)


def test_loops_go_from_the_outermost_to_the_innermost_without_those_of_bound_one(design):
    names = [level.name for level in design.problem.mapping_levels]
    loops = [(names[loop.group], loop.dim, loop.bound) for loop in design.loops]
    assert loops == [
        ("L1_T", "p", 2),
        ("L2_T", "k", 2),
        ("L2_T", "p", 2),
        ("L2_T", "r", 3),
        ("L2_S", "k", 2),
        ("L3_T", "p", 2),
    ]
    assert [loop.spatial for loop in design.loops] == [False] * 4 + [True, False]
    assert [loop.storage for loop in design.loops] == [0, 1, 1, 1, 1, 2]


def test_the_stride_of_a_loop_is_what_the_same_dimension_covers_further_in(design):
    assert [loop.stride for loop in design.loops if loop.dim == "p"] == [4, 2, 1]
    assert [loop.stride for loop in design.loops if loop.dim == "k"] == [2, 1]


def test_groups_hold_every_dimension_on_every_mapping_level(design):
    assert [sorted(loop.dim for loop in group) for group in design.groups] == [["k", "p", "r"]] * 5
    product = np.prod([[loop.bound for loop in sorted(g, key=lambda x: x.axis)] for g in design.groups], axis=0)
    assert product.tolist() == [4, 8, 3]


def test_slots_align_with_the_innermost_ranks_and_ranks_further_out_are_beyond(design):
    ranks = design.ranks(2)
    assert [(rank.loop.dim, rank.format.name) for rank in ranks] == [
        ("p", "offset-pair"),
        ("k", "bitmask"),
        ("p", "coordinate"),
        ("k", "run-length"),
        ("p", "bitmask"),
    ]


def test_fewer_ranks_than_slots_use_the_last_slots(design):
    assert len(design.slots(1)) == 4
    assert [(rank.loop.dim, rank.format.name) for rank in design.ranks(1)] == [
        ("k", "bitmask"),
        ("r", "bitmask"),
        ("k", "run-length"),
    ]


def test_the_length_of_a_rank_counts_the_holes_of_strides(design):
    assert [rank.length for rank in design.ranks(0)] == [3, 3, 3, 3]
    assert [rank.length for rank in design.ranks(2)] == [2, 2, 2, 2, 2]


def test_a_place_has_the_mechanism_that_its_gene_chose(design):
    assert [design.mechanism(place).name for place in design.problem.places] == ["skip-q-by-p", "none", "gate-both"]


def test_any_design_of_a_space_has_as_many_ranks_as_loops_that_move_the_tensor(registry):
    problem = load_problem("mm14", "clustered", registry=registry)
    designs = problem.space.decode(problem.space.sample(50, np.random.default_rng(0)))
    for row in range(len(designs)):
        one = Design(problem, designs.take([row]))
        assert len(one.loops) == int((designs.bounds[row] > 1).sum())
        for t, tensor in enumerate(problem.tensors):
            ranks = one.ranks(t)
            assert [rank.loop for rank in ranks] == [loop for loop in one.loops if loop.dim in tensor.dims]
            assert all(rank.format is one.beyond for rank in ranks[: max(len(ranks) - 5, 0)])


def test_used_slots_are_the_last_ones():
    assert slots_used(3, np.array([0, 2, 5])).T.tolist() == [[False] * 3, [False, True, True], [True] * 3]


@pytest.mark.parametrize("hardware", ["mobile", "cloud"])
def test_sparse_units_of_a_design_have_the_area_of_a_chip_with_these_units(hardware, registry):
    problem = load_problem("mm1", hardware, registry=registry)
    one = Design(problem, problem.space.decode(problem.space.guess(1, np.random.default_rng(3))))
    formats = {x.name: sorted({rank.format.name for rank in one.ranks(t)}) for t, x in enumerate(problem.tensors)}
    mechanisms = {place.name: [one.mechanism(place).name] for place in problem.places}
    units = {"extends": hardware, "units": {"formats": formats, "mechanisms": mechanisms}}
    built = load_problem("mm1", units, registry=registry)
    assert one.units_mm2 == pytest.approx(float(built.chip.units_area_mm2)) and one.units_mm2 > 0.0
    assert Design(built, one.batch).units_mm2 == 0.0
