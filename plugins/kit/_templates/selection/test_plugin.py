from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_operator

PROBLEM = load_problem("matmul-32x64x48", "edge-16gbps", registry=load())


def test_it_keeps_the_contract():
    check_operator(PROBLEM.registry.get("selection", "plugin-name"), PROBLEM)


def test_a_searcher_with_it_finds_a_design():
    assert search(PROBLEM, budget=2000, searcher="plugin-name").best is not None
