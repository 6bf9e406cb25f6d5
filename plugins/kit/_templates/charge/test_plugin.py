import pytest

from sparsemap import evaluate, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_cost_model

REGISTRY = load()
PLAIN = load_problem(
    "matmul-32x64x48", "edge-16gbps", cost_model={"type": "analytic", "charges": []}, registry=REGISTRY
)
CHARGED = load_problem("matmul-32x64x48", "edge-16gbps", cost_model="plugin-name", registry=REGISTRY)


def test_a_model_with_it_keeps_the_contract():
    check_cost_model(CHARGED.cost_model, CHARGED)


def test_a_cycle_costs_80_pj_more():
    best = search(PLAIN, budget=500).found
    charged = evaluate(CHARGED, best.genome[None, :])
    assert charged.cycles == [best.cycles]
    assert charged.energy_pj[0] == pytest.approx(best.energy_pj + 80 * best.cycles)
