"""Designs rewritten for other sizes and hardware: what stays, what changes, and what cannot be transferred."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemap import DesignError, distance, load_problem
from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem

REGISTRY = load()
LAYER = {"type": "conv2d", "k": 16, "c": 8, "p": 8, "q": 8, "r": 3, "s": 3}
MAPPINGS = "sparseloop-mapper"


def problem(space: Any = "paper", hardware: Any = "edge-16gbps", **sizes: Any) -> Problem:
    return load_problem({**LAYER, **sizes}, hardware, space, cost_model="timeloop", registry=REGISTRY)


def valid(of: Problem, count: int, seed: int = 0) -> Designs:
    """Some valid designs."""
    rng = np.random.default_rng(seed)
    genomes = of.space.canonical(of.space.repair(of.space.guess(2 * count, rng), rng))
    return of.space.decode(genomes[of.evaluator.evaluate(genomes).valid][:count])


# ---------------------------------------------------------------------------------------------------------- distances


def loops(**sizes: int) -> Any:
    return problem(**sizes).loops


def test_the_distance_counts_sizes_that_differ():
    """The example of Kao et al. 2022, Section VI: layer 3 differs from layer 1 in C only, from layer 2 in K, Y and X."""
    first, second, third = loops(k=16, c=8), loops(k=32, c=16, p=4, q=4), loops(k=16, c=16)
    assert (distance(third, first), distance(third, second)) == (1, 3)
    assert distance(third, first, "log") == 1 and distance(third, second, "log") == 3


def test_another_stride_is_a_difference_of_its_own_and_absent_dimensions_have_size_one():
    assert distance(loops(), loops(stride=2)) == 1
    assert distance(loops(), loops(batch=4)) == 1 + 2  # b, and the projections of P and Z


@settings(max_examples=40)
@given(st.lists(st.integers(1, 3), min_size=6, max_size=6), st.lists(st.integers(1, 3), min_size=6, max_size=6))
def test_distances_are_symmetric_and_zero_for_equal_sizes_only(one: list[int], other: list[int]):
    a, b = (loops(**dict(zip("kcpqrs", sizes, strict=True))) for sizes in (one, other))
    for metric in ("edit", "log"):
        assert distance(a, b, metric) == pytest.approx(distance(b, a, metric))
        assert (distance(a, b, metric) == 0) == (one == other)


# ---------------------------------------------------------------------------------------------------------- transfer


@pytest.mark.parametrize("space", ["paper", "direct", MAPPINGS, "sage-like"])
def test_designs_of_the_same_problem_stay_as_they_are(space: str):
    here = problem(space, k=12, p=7)
    tiled = problem("paper", k=12, p=7)
    designs = valid(here if space != "direct" else tiled, 200)
    source = here if space != "direct" else tiled  # direct genes seldom multiply up to the sizes
    moved = here.space.decode(here.space.transfer(designs, source, np.random.default_rng(1)))
    assert len(designs) > 100
    for name, column in designs.columns.items():
        if space != "direct" or name != "order":
            assert (moved.columns[name] == column).all(), name


def test_twice_the_size_changes_the_outermost_bound_only():
    small, large = problem(), problem(c=16)
    designs = valid(small, 50)
    moved = large.space.decode(large.space.transfer(designs, small, np.random.default_rng(1)))
    axis = small.dims.index("c")
    expected = designs.columns["bounds"].copy()
    expected[0, axis] *= 2
    assert (moved.columns["bounds"] == expected).all() and (moved.columns["order"] == designs.columns["order"]).all()


@pytest.mark.parametrize("seed", range(20))
def test_dense_designs_stay_valid_for_any_sizes(seed: int):
    """Inner bounds never grow, so that what fitted a buffer or a fan-out still does."""
    rng = np.random.default_rng(seed)
    sizes = [dict(zip("kcpqrs", rng.integers(1, 30, size=6).tolist(), strict=True)) for _ in range(2)]
    source, target = (problem(MAPPINGS, **some) for some in sizes)
    moved = target.space.transfer(valid(source, 50, seed), source, rng)
    assert len(moved) == 50 and target.evaluator.evaluate(moved).valid.all()


def test_filling_moves_loops_into_spatial_levels_and_keeps_the_sizes():
    one, wide = problem(k=1, c=1, r=1, s=1), problem(k=64, c=64)
    designs = valid(one, 20)
    outcomes = [
        wide.space.decode(wide.space.transfer(designs, one, np.random.default_rng(1), fill=fill)).columns["bounds"]
        for fill in (False, True)
    ]
    spatial = [i for i, level in enumerate(wide.mapping_levels) if level.spatial]
    used, filled = (bounds[spatial].prod(axis=(0, 1)) for bounds in outcomes)
    assert (filled > 128).all() and (filled <= 256).all() and (used <= 64).all()
    assert (outcomes[1].prod(axis=0) == np.array(list(wide.sizes.values()))[:, None]).all()


def test_formats_and_mechanisms_travel_by_name_and_tensors_by_role():
    there = problem({"extends": "paper", "formats": {"slots": 2}})
    names = ["coordinate", "bitmask", "uncompressed"]
    other = {"einsum": "Y[a, b] = A[a, c] * B[c, b]", "dims": {"a": 8, "b": 8, "c": 8}, "density": {"A": 0.5, "B": 0.5}}
    space = {
        "extends": "paper",
        "formats": {"slots": 3, "candidates": names},
        "gate-skip": {"candidates": ["none", "skip-both"]},
    }
    here = load_problem(other, "edge-16gbps", space, registry=REGISTRY)
    designs = valid(there, 100)
    moved = here.space.decode(here.space.transfer(designs, there, np.random.default_rng(0)))

    def named(of: Problem, kind: str, column: Any) -> Any:
        return np.array([piece.name for piece in of.candidates(kind)])[column]

    before, after = (named(x, "format", d.columns["formats"]) for x, d in ((there, designs), (here, moved)))
    for tensor in range(3):
        for slot, first in ((0, 0), (1, 0), (2, 1)):  # the further slot has the outermost format
            known = np.isin(before[tensor, first], names)
            assert known.any() and (after[tensor, slot] == before[tensor, first])[known].all()
    before, after = (named(x, "mechanism", d.columns["mechanisms"]) for x, d in ((there, designs), (here, moved)))
    known = np.isin(before, ["none", "skip-both"])
    assert known.any() and (after == before)[known].all()


def test_what_cannot_be_transferred_is_said():
    source = problem()
    designs = valid(source, 3)
    rng = np.random.default_rng(0)
    with pytest.raises(
        DesignError, match=r"does not have L4_T, L4_S; hardware 'clustered' has the mapping levels L1_T"
    ):
        problem(hardware="clustered").space.transfer(designs, source, rng)
