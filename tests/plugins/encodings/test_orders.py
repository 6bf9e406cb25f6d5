from itertools import permutations

import numpy as np
import pytest
from encoding_problems import matmul, problem, product, space
from sparsemap_plugins.encodings.inner import functions

from sparsemap.errors import DesignError, SpecError
from sparsemap.problem.designs import Designs


def decode_order(codes, dims):
    order = np.empty((len(codes), dims, codes.shape[1]), dtype=np.int8)
    functions.orders_of(codes, order)
    return order


def encode_order(order):
    codes = np.empty((len(order), order.shape[2]), dtype=np.int64)
    functions.codes_of(np.ascontiguousarray(order), codes)
    return codes


def with_orders(table, sizes):
    return problem(product(sizes), "edge", {"extends": "paper", "orders": table})


@pytest.mark.parametrize("dims", range(1, 8))
def test_codes_are_the_places_in_all_orders(dims):
    orders = np.array(list(permutations(range(dims))), dtype=np.int8).T
    codes = np.arange(1, orders.shape[1] + 1)[None]
    assert (decode_order(codes, dims)[0] == orders).all()
    assert (encode_order(orders[None]) == codes).all()


@pytest.mark.parametrize("dims", [9, 12, 20])
def test_codes_of_many_dimensions(dims):
    from math import factorial

    codes = np.random.default_rng(0).integers(1, factorial(dims), size=(3, 100), endpoint=True)
    order = decode_order(codes, dims)
    assert (np.sort(order, axis=1) == np.arange(dims)[:, None]).all()
    assert (encode_order(order) == codes).all()


def test_a_segment_with_nine_dimensions():
    made = problem(product(dict.fromkeys("abcdefghi", 2)))
    genomes = made.space.sample(20, np.random.default_rng(1))
    assert (made.space.encode(made.space.decode(genomes))[:, :5] == genomes[:, :5]).all()


def test_too_many_dimensions():
    made = problem(product({f"d{i}": 1 for i in range(21)}))
    with pytest.raises(SpecError, match=r"space\.toml: orders: 'cantor' encodes .* up to 20 .* has 21"):
        made.space.names  # noqa: B018
    made = with_orders({"type": "random-order"}, {f"d{i}": 1 for i in range(11)})
    with pytest.raises(SpecError, match="'random-order' encodes orders of up to 10 dimensions, the workload has 11"):
        made.space.names  # noqa: B018


def test_random_order_is_another_naming_of_the_same_orders():
    plain = problem(matmul(4, 8, 4))
    table = {"type": "random-order", "seed": 3}
    mixed, again, other = (
        problem(matmul(4, 8, 4), "edge", {"extends": "paper", "orders": {**table, **seed}})
        for seed in ({}, {}, {"seed": 5})
    )
    codes = np.tile(np.arange(1, 7), (5, 1))
    orders = [made.space.segments["orders"].decode(codes, made)["order"] for made in (plain, mixed, again, other)]
    listed = [[tuple(row) for row in order[0].T] for order in orders]
    assert sorted(listed[0]) == sorted(listed[1]) and listed[0] != listed[1]
    assert listed[1] == listed[2] != listed[3]
    assert plain.space.segment_genes["orders"].ordered and not mixed.space.segment_genes["orders"].ordered


def test_an_order_that_repeats_a_dimension_cannot_be_encoded():
    made = problem(matmul(4, 8, 4))
    order = np.zeros((5, 3, 2), np.int8)
    order[:] = np.arange(3)[:, None]
    order[2, :, 1] = [0, 0, 2]
    with pytest.raises(DesignError, match=r"design 1: the loop order of L2_S is \[0, 0, 2\]"):
        made.space.segments["orders"].encode(Designs({"order": order}), made)


def test_space_has_a_type_of_the_same_name_by_default():
    made = problem(matmul(4, 8, 4), "edge", space("cantor", "prime-factors"))
    assert list(made.space.segments) == ["cantor", "prime-factors"]
