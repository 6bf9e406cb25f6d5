import pytest

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_technology

PROBLEM = load_problem("matmul-32x64x48", {"extends": "edge-16gbps", "technology": "plugin-name"}, registry=load())


def test_it_keeps_the_contract():
    check_technology(PROBLEM.technology, PROBLEM)


def test_a_word_of_16_bits_costs_3_2_pj_on_chip():
    assert PROBLEM.energy_pj(1, "read") == pytest.approx(3.2)


def test_a_hardware_with_it_is_searched():
    assert search(PROBLEM, budget=500).best is not None
