"""The density `range`: its points, their weights, and the density that stands for it."""

import numpy as np
import pytest

from sparsemap import SpecError, load_problem
from sparsemap.pieces.loading import load
from sparsemap.testing import check_density

POINTS = [1.0, 0.8, 0.5, 0.2, 0.1]


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture
def made(registry):
    def make(**keys):
        return registry.build("density", {"type": "range", "low": 0.1, "high": 1.0, **keys})

    return make


def test_it_keeps_the_contract_as_its_nominal_density(made):
    check_density(made(nominal=0.5))
    assert made(nominal=0.5).occupancy((16, 24)).density == 0.5


def test_without_points_there_are_five_from_high_to_low(made):
    assert made().densities == (1.0, 0.775, 0.55, 0.325, 0.1)


def test_weights_by_rule_and_by_list(made):
    assert made(points=POINTS).weighed() == (1, 1 / 0.8, 2, 5, 10)
    assert made(points=POINTS, weights="equal").weighed() == (1, 1, 1, 1, 1)
    assert made(points=POINTS, weights=[5, 4, 3, 2, 0]).weighed() == (5, 4, 3, 2, 0)
    assert made(points=POINTS, weights=[5, 4, 3, 2, 0]).weighed("equal") == (1, 1, 1, 1, 1)


def test_a_probability_is_the_share_of_densities_that_are_nearest(made):
    flat = made(points=POINTS, weights="probability").weighed()
    assert flat == pytest.approx([0.1 / 0.9, 0.25 / 0.9, 0.3 / 0.9, 0.2 / 0.9, 0.05 / 0.9])
    low = made(points=[0.9, 0.2], weights="probability", histogram=[3, 1])  # bins 0.1..0.55 and 0.55..1
    assert low.weighed() == pytest.approx([0.25, 0.75])
    assert low.expected == pytest.approx(0.25 * 0.9 + 0.75 * 0.2)


def test_the_output_follows_from_the_nominal_density(registry):
    einsum, dims = "Z[m, n] = P[m, k] * Q[k, n]", {"m": 8, "k": 4, "n": 8}
    ranged = {"type": "range", "low": 0.1, "high": 1.0, "nominal": 0.5}
    shares = []
    for density in (ranged, 0.5):
        table = {"einsum": einsum, "dims": dims, "density": {"P": density, "Q": 0.25}}
        tensors = load_problem(table, "edge", registry=registry).tensors
        shares.append([tensor.density.occupancy(tensor.shape(dims)).density for tensor in tensors])
    assert shares[0] == shares[1]


def test_another_pattern_is_a_type_or_a_table_without_its_density(made):
    assert made(model="structured").at(0.25).type_name == "structured"
    blocked = made(model={"type": "block", "block": [4, 4]}).at(0.25).occupancy((16, 16))
    assert blocked.density == 0.25
    assert blocked.largest((4, 4)) == 16


def test_the_same_pattern_at_another_density(registry):
    block = registry.build("density", {"type": "block", "block": [2, 2], "density": 0.5})
    assert block.at(0.25).occupancy((8, 8)).density == 0.25
    pruned = registry.build("density", {"type": "n-of-m", "n": 2, "m": 4})
    with pytest.raises(SpecError, match="'n-of-m' cannot be had at another share"):
        pruned.at(0.25)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"low": 0.5, "high": 0.5}, "high: is 0.5, expected more than low = 0.5"),
        ({"low": 0.0}, "low"),
        ({"high": 1.5}, "high"),
        ({"points": [1.0, 0.05]}, "points: has 0.05, which is not within low = 0.1 and high = 1"),
        ({"points": [1.0, 1.0]}, "points: has 1 twice"),
        ({"points": POINTS, "weights": [1, 2]}, "weights: has 2 weights, expected 5, one per point"),
        ({"points": POINTS, "weights": [1, 2, 3, 4, -1]}, "weights: is .*expected weights from 0 on"),
        ({"weights": "inverted"}, "weights: expected 'inverse' or 'equal' or 'probability' or a list"),
        ({"histogram": [0.0, 0.0]}, "histogram: is"),
        ({"nominal": 0}, "nominal"),
        ({"model": "unifrom"}, "model.*unifrom"),
        ({"model": {"type": "n-of-m", "n": 2, "m": 4}}, "model.*density: unknown key"),
    ],
)
def test_what_is_wrong_with_a_range_is_named(made, keys, message):
    with pytest.raises(SpecError, match=message):
        made(**keys)


def test_probabilities_add_up_whatever_the_order_of_the_points(made):
    mixed = made(points=[0.2, 1.0, 0.5], histogram=[1, 5, 2, 0, 7])
    ordered = made(points=[0.2, 0.5, 1.0], histogram=[1, 5, 2, 0, 7])
    assert np.sum(mixed.probabilities()) == pytest.approx(1.0)
    assert mixed.probabilities()[0] == ordered.probabilities()[0]
    assert mixed.probabilities()[1] == ordered.probabilities()[2]
