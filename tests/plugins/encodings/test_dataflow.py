"""Mappings under constraints: segment `dataflow`."""

import itertools
import tracemalloc
from math import prod

import numpy as np
import pytest
from encoding_problems import matmul, problem

from sparsemap.errors import DesignError, SpecError
from sparsemap.problem.designs import Designs
from sparsemap.problem.load import load_problem
from sparsemap.testing import check_segment

REST = {
    "formats": {"type": "rank-formats", "slots": 2, "candidates": ["uncompressed", "bitmask"]},
    "gate-skip": {"candidates": ["none", "skip-both"]},
}

BATCHED_CONV = {
    "einsum": "Z[n, k, y, x] = P[n, c, y + r, x + s] * Q[k, c, r, s]",
    "dims": {"n": 2, "k": 8, "c": 8, "y": 4, "x": 4, "r": 3, "s": 3},
    "density": {"P": 0.5, "Q": 0.5},
}


def with_dataflow(sizes=(4, 12, 8), hardware="edge", workload=None, **constraints):
    """A problem on DRAM, GLB (fan-out 256) and PE buffers (fan-out 1), whose mapping has these constraints."""
    segments = ["mapping", "formats", "gate-skip"]
    space = {"segments": segments, "mapping": {"type": "dataflow", **constraints}, **REST}
    return problem(workload or matmul(*sizes), hardware, space)


def mappings(made):
    """All mappings of a problem: bounds (n, L, D) and orders (n, L, D)."""
    segment = made.space.segments["mapping"]
    genes = segment.genes(made)
    every = np.array(list(itertools.product(*(range(high + 1) for high in genes.high)))).T
    columns = segment.decode(every, made)
    return np.moveaxis(columns["bounds"], -1, 0), np.moveaxis(columns["order"], -1, 0)


def wrong(**arguments):
    with pytest.raises(SpecError) as error:
        with_dataflow(**arguments).space.names  # noqa: B018
    return str(error.value)


ONE_ORDER = {level: ["m", "n", "k"] for level in ("L1_T", "L2_T", "L2_S", "L3_T", "L3_S")}


def test_without_constraints_every_mapping_is_there_once():
    made = with_dataflow((4, 6, 1), orders=ONE_ORDER)
    bounds, _ = mappings(made)
    found = {tuple(one.ravel().astype(int)) for one in bounds}
    limits = [level.limit if level.spatial else 10**9 for level in made.mapping_levels]
    fit = [
        [x for x in itertools.product(range(1, size + 1), repeat=5) if prod(x) == size and all(map(np.less_equal, x, limits))]
        for size in (4, 6, 1)
    ]  # fmt: skip
    assert len(bounds) == len(found) == prod(map(len, fit))
    expected = {tuple(np.array(one).T.ravel()) for one in itertools.product(*fit)}
    assert found == expected


def test_factors_are_fixed_chosen_from_limited_or_as_large_as_possible():
    made = with_dataflow(
        (32, 12, 8),
        factors={
            "L1_T": {"k": [1, 3]},
            "L2_T": {"k": 1},
            "L2_S": {"m": {"largest": 5}, "*": 1},
            "L3_T": {"m": {"largest": True}, "n": {"most": 4}},
            "L3_S": {"*": 1},
        },
        orders=ONE_ORDER,
    )
    bounds, order = mappings(made)
    l1, l2, s2, l3, s3 = bounds.transpose(1, 2, 0)  # per level and dimension, in workload order m, k, n
    assert set(l1[1]) == {1, 3} and set(l2[1]) == {1}
    assert set(s2[0]) == {4} and set(s2[1:].ravel()) == {1} == set(s3.ravel())
    assert set(l3[0]) == {8}, "outer levels choose first, then inner ones take the largest that is left"
    assert set(l3[2]) == {1, 2, 4}
    assert (bounds.prod(axis=1) == [32, 12, 8]).all()
    assert (order == [0, 2, 1]).all()


def test_tiles_are_multiples_and_orders_are_those_listed():
    made = with_dataflow(
        tiles={"L2_T": {"k": [8, 6, 2]}},  # 8 does not divide 12
        orders={**ONE_ORDER, "L1_T": [["k"], ["n", "m", "k"]], "L2_T": ["n", "k"]},
    )
    bounds, order = mappings(made)
    assert set(bounds[:, 1:, 1].prod(axis=1).astype(int)) == {6, 12}
    assert {tuple(one) for one in order[:, 0]} == {(1, 0, 2), (2, 0, 1)}
    assert {tuple(one) for one in order[:, 1]} == {(2, 1, 0)}
    segment = made.space.segments["mapping"]
    assert segment.explain(made) == "splits over the levels (10 of m, 27 of k, 20 of n); loop orders (2 in L1_T)"


@pytest.mark.parametrize("hardware", ["edge", "clustered", "cloud"])
def test_keeps_the_contract_of_segments_on_any_hardware(hardware):
    made = with_dataflow(hardware=hardware, factors={"L1_T": {"m": [1, 2]}})
    check_segment(made.space.segments["mapping"], made)
    made = with_dataflow(hardware=hardware, workload="small-conv", orders={"L1_T": ["k", "c"]})
    check_segment(made.space.segments["mapping"], made, count=50)


def test_moves_take_a_prime_factor_to_another_level_and_stay_within_the_constraints():
    made = with_dataflow((64, 12, 8), factors={"L2_S": {"m": [2, 4], "*": 1}}, orders=ONE_ORDER)
    segment, rng = made.space.segments["mapping"], np.random.default_rng(0)
    genes = segment.guess(300, made, rng)
    moved = segment.vary(genes, made, rng)
    before, after = (segment.decode(x, made)["bounds"] for x in (genes, moved))
    changed = (before != after).any(axis=0)
    assert ((changed.sum(axis=0) == 1) | (moved == genes).all(axis=0)).all(), "one dimension at a time"
    assert ((before != after).sum(axis=(0, 1)) == 2).mean() > 0.5
    assert np.isin(after[2, 0], [2, 4]).all() and (after[2, 1:] == 1).all()


def test_orders_that_differ_in_idle_loops_only_are_one_design():
    orders = {**ONE_ORDER, "L1_T": [["k", "m", "n"], ["m", "k", "n"], ["n", "m", "k"]]}
    made = with_dataflow((4, 1, 8), factors={"L1_T": {"m": 2, "n": 2}}, orders=orders)
    segment = made.space.segments["mapping"]
    place = segment.genes(made).names.index("order.L1_T")
    genes = np.zeros((len(segment.genes(made).names), 3), np.int64)
    genes[place] = range(3)
    assert segment.canonical(genes, made, {})[place].tolist() == [0, 0, 2]


def test_equal_orders_of_seven_loops_are_found_without_a_table_of_orders_by_genomes():
    """A convolution with batches has 5,040 orders a level; for 20,000 genomes such a table takes 800 MB."""
    made = with_dataflow(workload=BATCHED_CONV)
    segment, rng = made.space.segments["mapping"], np.random.default_rng(0)
    genes = segment.guess(20_000, made, rng)
    tracemalloc.start()
    found = segment.canonical(genes, made, {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert (segment.canonical(found, made, {}) == found).all()
    before, after = (segment.decode(x, made) for x in (genes, found))
    assert (before["bounds"] == after["bounds"]).all() and (genes != found).any()
    for i in range(0, 20_000, 500):  # the loops that run stay in their order
        for level, bounds in enumerate(before["bounds"][..., i]):
            kept = [[dim for dim in columns["order"][level, :, i] if bounds[dim] > 1] for columns in (before, after)]
            assert kept[0] == kept[1]


def test_a_design_that_breaks_a_constraint_cannot_be_encoded():
    made = with_dataflow(factors={"L1_T": {"m": 2}}, orders=ONE_ORDER)
    segment = made.space.segments["mapping"]
    columns = dict(segment.decode(segment.guess(1, made, np.random.default_rng(0)), made))
    columns["bounds"] = np.ones_like(columns["bounds"])
    columns["bounds"][1] = np.array([4, 12, 8])[:, None]
    with pytest.raises(DesignError, match=r"bounds of dimension 'm', 1, 4, 1, 1, 1, are not among those .* 'mapping'"):
        segment.encode(Designs(columns), made)


@pytest.mark.parametrize(
    ("constraints", "text"),
    [
        ({"factors": {"L1_T": {"m": 3}}}, "dimension 'm' of 4 cannot be split: factors.L1_T.m = 3 is not possible"),
        (
            {"factors": {"L1_T": {"k": 4}, "L2_S": {"k": [2, 6]}, "L2_T": {"k": 1}}},
            "dimension 'k' of 12 cannot be split: factors.L1_T.k = 4 and factors.L2_S.k = [2, 6] collide",
        ),
        (
            {"factors": {"L1_T": {"k": [3, 6]}}, "tiles": {"L2_T": {"k": 6}}},
            "factors.L1_T.k = [3, 6] and tiles.L2_T.k = 6 collide",
        ),
        (
            {"tiles": {"L2_T": {"k": [8, 5]}}},
            "dimension 'k' of 12 cannot be split: tiles.L2_T.k = [8, 5] is not possible",
        ),
        ({"factors": {"L3_S": {"n": 8}}}, "factors.L3_S.n = 8 and the fan-out of 1 at L3_S collide"),
        (
            {"sizes": (64, 12, 8), "factors": {"L2_S": {"m": 64, "n": 8}}},
            "mapping.factors.L2_S: m = 64 and n = 8 collide: together they need 512 instances, and the fan-out is 256",
        ),
    ],
)
def test_constraints_that_cannot_hold_together_are_named(constraints, text):
    assert text in wrong(**constraints)


def test_wrong_names_and_values_are_told_together():
    text = wrong(
        factors={"L4_T": {"m": 1}, "L1_T": {"M": 2, "k": 0, "n": {"least": 2}}, "L2_T": {"m": [], "k": "all"}},
        tiles={"L1_T": {"*": 2}},
        orders={"L1_T": [["m", "x"], "k"], "L9_T": ["m"], "L2_T": ["m", "m"]},
    )
    for line in (
        "mapping.factors.L4_T: no mapping level 'L4_T'; did you mean 'L3_T'?",
        "mapping.factors.L1_T.M: no dimension 'M'; did you mean 'm'?",
        "mapping.factors.L1_T.k: expected a whole number from 1 on, found 0",
        "mapping.factors.L1_T.n: expected { most = .. } or { largest = .. }, found { least = 2 }",
        "mapping.factors.L2_T.m: expected a number, or a list with at least one",
        "mapping.factors.L2_T.k: expected a whole number from 1 on, found 'all'",
        "mapping.tiles.L1_T.*: no dimension '*'",
        "mapping.orders.L9_T: no mapping level 'L9_T'",
        "mapping.orders.L1_T[0]: no dimension 'x'",
        "mapping.orders.L1_T[1]: expected a list of dimensions, found 'k'",
        "mapping.orders.L2_T: names a dimension twice: m, m",
    ):
        assert line in text


def test_too_many_mappings_are_refused():
    assert "has more than 1,048,576 splits over the levels" in wrong(
        sizes=(2 * 3 * 5 * 7 * 11 * 13 * 17 * 19 * 23 * 29 * 31 * 37 * 41, 1, 1)
    )


def test_a_dataflow_names_dimensions_by_the_tensors_that_they_index():
    names = {"s": "QZ", "x": "PZ", "k": "PQ"}
    factors, orders = {"L2_S": {"s": {"largest": 4}, "*": 1}}, {"L1_T": ["x", "k", "s"]}
    own = with_dataflow(sizes=(2, 3, 4), dims=names, factors=factors, orders=orders)  # m, k, n
    given = {"L2_S": {"n": {"largest": 4}, "*": 1}}
    other = with_dataflow(sizes=(2, 3, 4), factors=given, orders={"L1_T": ["m", "k", "n"]})
    for a, b in zip(mappings(own), mappings(other), strict=True):
        assert np.array_equal(a, b)
    padded = with_dataflow(sizes=(4, 18, 8), dims=names, tiles={"L2_T": {"k": [16, 4]}})
    assert padded.padded == {"k": (18, 20)}
    text = wrong(sizes=(4, 18, 8), dims=names, tiles={"L2_T": {"k": [["bitmask"], 4]}})
    assert "tiles.L2_T.k: expected a whole number from 1 on, found ['bitmask']" in text
    assert "dimension n of the workload is none of x of P and Z, k of P and Q" in wrong(dims={"x": "PZ", "k": "PQ"})
    layer = {"type": "conv2d", "k": 2, "c": 2, "p": 2, "q": 2}
    assert "p and q of the workload are both x, and there may be one" in wrong(workload=layer, dims=names)


def test_products_and_convolutions_run_on_the_dataflow_of_a_tensor_core():
    for layer in (
        {"type": "conv2d", "k": 8, "c": 6, "p": 4, "q": 4, "r": 3, "s": 3},
        {"type": "conv2d", "k": 8, "c": 16, "p": 4, "q": 4, "groups": 2},
        {"type": "depthwise", "c": 8, "p": 4, "q": 4, "r": 3, "s": 3},
        {"type": "matmul", "h": 2, "m": 4, "k": 32, "n": 8},
    ):
        made = load_problem(layer, "crisp-stc")
        valid = made.evaluator.evaluate(made.space.sample(50, np.random.default_rng(0))).valid
        assert valid.any()
    seen = load_problem({"type": "conv2d", "k": 8, "c": 6, "p": 4, "q": 4, "r": 3, "s": 3}, "crisp-stc")
    assert seen.loops.sizes == {"m": 16, "k": 54, "n": 8} and seen.sizes["k"] == 64
