"""How often searches reach the optimum that exhaustive search has found.

The study `optimum` has larger problems, all searchers and 100 seeds: `sparsemap paper optimum`.
"""

import pytest

from sparsemap import load_problem, search
from sparsemap.pieces.loading import load

REGISTRY = load()
WORKLOADS = {
    "product": ("Z[m, n] = P[m, k] * Q[k, n]", {"m": 4, "k": 4, "n": 3}, {"P": 0.3, "Q": 0.6}),
    "convolution": ("Z[k, p] = P[c, p + r] * Q[k, c, r]", {"k": 2, "c": 2, "p": 4, "r": 2}, {"P": 0.5, "Q": 0.25}),
}
LEAST = {
    "sparsemap": 90,
    "sparsemap-paper": 50,
    "es-pfce": 50,
    "gamma": 30,
    "mcts": 5,
    "random-pruned": 1,
    "random": 1,
}
"""Per cent of the searches."""


@pytest.fixture(scope="module", params=["product", pytest.param("convolution", marks=pytest.mark.slow)])
def solved(request):
    """A problem of some hundred thousand designs, and its best score."""
    einsum, dims, density = WORKLOADS[request.param]
    workload = {"name": request.param, "einsum": einsum, "dims": dims, "density": density}
    problem = load_problem(workload, "small", space="small", cost_model="timeloop", registry=REGISTRY)
    best = search(problem, budget=10_000_000, searcher="exhaustive").best
    assert best is not None
    return problem, best.score


@pytest.mark.parametrize("searcher", LEAST)
def test_searches_reach_the_optimum(solved, searcher):
    problem, optimum = solved
    seeds = {"random": 20, "random-pruned": 20, "sparsemap": 5}.get(searcher, 10)
    scores = [search(problem, budget=2_000, seed=seed, searcher=searcher).best.score for seed in range(seeds)]
    assert min(scores) >= optimum * (1 - 1e-12)
    reached = 100 * sum(score <= optimum * (1 + 1e-9) for score in scores) / seeds
    print(f"{problem.workload.name}: {searcher} {reached:.0f} %")  # shown by pytest -s
    assert reached >= LEAST[searcher]
