import pytest

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load

PROBLEM = load_problem("plugin-name", "edge-16gbps", registry=load())


def test_its_sizes_and_densities_are_those_of_the_layer():
    assert PROBLEM.loops.sizes == {"m": 64, "k": 128, "n": 96}
    weights = PROBLEM.tensors[1]
    assert weights.density.occupancy((128, 96)).density == pytest.approx(0.25)


def test_it_is_searched():
    assert search(PROBLEM, budget=500).best is not None
