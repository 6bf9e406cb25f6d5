import pytest

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_density

REGISTRY = load()
PIECE = REGISTRY.get("density", "plugin-name")


def test_it_keeps_the_contract():
    check_density(PIECE)


def test_a_tile_of_two_words_is_empty_in_49_of_100_cases():
    assert PIECE.occupancy((8, 8)).empty((1, 2)) == pytest.approx(0.49)


def test_a_workload_with_it_is_searched():
    workload = {
        "name": "sparse",
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": 32, "k": 32, "n": 32},
        "density": {"P": "plugin-name", "Q": 0.5},
    }
    result = search(load_problem(workload, "edge-16gbps", registry=REGISTRY), budget=500)
    assert result.best is not None
