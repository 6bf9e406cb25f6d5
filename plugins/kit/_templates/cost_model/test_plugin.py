from sparsemap import evaluate, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_cost_model

PROBLEM = load_problem("matmul-32x64x48", "edge-16gbps", cost_model="plugin-name", registry=load())


def test_it_keeps_the_contract():
    check_cost_model(PROBLEM.cost_model, PROBLEM)


def test_no_design_is_faster_than_all_multiplications_on_all_units():
    best = search(PROBLEM, budget=1000).found
    sizes = PROBLEM.sizes
    assert best.cycles >= sizes["m"] * sizes["k"] * sizes["n"] / PROBLEM.compute_instances
    assert evaluate(PROBLEM, best.genome[None, :]).cycles == [best.cycles]
