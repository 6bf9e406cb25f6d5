from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_objective

REGISTRY = load()


def test_it_keeps_the_contract():
    check_objective(REGISTRY.get("objective", "plugin-name"))


def test_a_search_finds_a_design_that_is_fast_enough():
    best = search(
        load_problem("matmul-32x64x48", "edge-16gbps", objective="plugin-name", registry=REGISTRY), budget=1000
    ).found
    assert best.cycles <= 5_000
    assert best.score == best.energy_pj
