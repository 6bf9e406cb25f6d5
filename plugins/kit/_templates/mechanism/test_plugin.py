import numpy as np

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_mechanism

REGISTRY = load()
PIECE = REGISTRY.get("mechanism", "plugin-name")


def test_it_keeps_the_contract():
    check_mechanism(PIECE)


def test_of_positions_that_are_half_empty_a_window_of_four_leaves_out_seven_in_fifteen():
    assert np.allclose(PIECE.eliminated(None, None, np.array([0.5])), 7 / 15)


def test_a_search_chooses_among_mechanisms_with_it():
    space = {"extends": "paper", "gate-skip": {"candidates": ["none", "plugin-name"]}}
    result = search(load_problem("matmul-32x64x48", "edge-16gbps", space, registry=REGISTRY), budget=500)
    assert result.best is not None
