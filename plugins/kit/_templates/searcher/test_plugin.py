from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_searcher

PROBLEM = load_problem("matmul-32x64x48", "edge-16gbps", registry=load())


def test_it_keeps_the_contract():
    check_searcher(PROBLEM.registry.get("searcher", "plugin-name"), PROBLEM)


def test_it_improves_on_its_first_designs():
    history = search(PROBLEM, budget=1000, searcher="plugin-name").history
    assert history[-1].best_score < history[0].best_score
