"""Random search as Timeloop's mapper does it: what it prunes."""

import numpy as np
from sparsemap_plugins.searchers.baselines.random_search import innermost_orders

from sparsemap import Search, load_problem


def problem_of(density, space="sparseloop-mapper"):
    workload = {"name": "w", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 8, "k": 12, "n": 4}}
    return load_problem({**workload, "density": {"P": density, "Q": 1.0}}, "edge-16gbps", space)


def proposals(problem, **keys):
    run = Search(problem, {"type": "random-pruned", "batch": 512, **keys}, 512)
    return run.ask()


def first_orders(problem, genes, genomes):
    """Whether all have the order of the workload at these genes, but for loops of bound one."""
    first = genomes.copy()
    first[:, genes] = 1
    return (problem.space.canonical(first) == genomes).all()


def test_orders_of_the_innermost_level_are_kept_where_nothing_can_be_compressed():
    dense, sparse = problem_of(1.0), problem_of(0.2)
    genes = innermost_orders(dense.space)
    assert [dense.space.names[gene] for gene in genes] == ["order.L3_T", "order.L3_S"]
    assert first_orders(dense, genes, proposals(dense)) and not first_orders(sparse, genes, proposals(sparse))
    rng = np.random.default_rng(0)
    genomes = dense.space.repair(dense.space.sample(300, rng), rng)
    kept = genomes.copy()
    kept[:, genes] = 1
    assert np.allclose(dense.evaluator.evaluate(kept).edp, dense.evaluator.evaluate(genomes).edp, rtol=1e-12)
