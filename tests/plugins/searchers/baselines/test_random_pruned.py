"""Random search as Timeloop's mapper does it: how it draws, what it prunes, when it ends."""

import math
from collections import Counter

import numpy as np
import pytest
from sparsemap_plugins.searchers.baselines.random_search import Patience, innermost_orders, interchangeable, multisets

from sparsemap import Search, load_problem, search


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


def test_every_multiset_is_drawn_equally_often():
    drawn = multisets(2, 4, (30_000, 2), np.random.default_rng(0))
    counts = Counter(map(tuple, drawn.tolist()))
    assert set(counts) == {(a, b) for a in (2, 3, 4) for b in range(a, 5)}
    assert max(abs(count - 5000) for count in counts.values()) < 4 * math.sqrt(5000)


def test_equal_prime_factors_are_interchangeable_and_nothing_else():
    space = problem_of(0.2, "paper").space
    runs = [list(space.names[genes]) for genes in interchangeable(space)]
    assert runs == [["tile.m.1", "tile.m.2", "tile.m.3"], ["tile.k.1", "tile.k.2"], ["tile.n.1", "tile.n.2"]]


def test_with_factorizations_few_even_splits_are_drawn():
    space = problem_of(0.2).space
    split = [
        (np.diff(np.sort(proposals(problem_of(0.2), draw=draw)[:, space.slices["tiling"]][:, :3])) > 0)
        .all(axis=1)
        .mean()
        for draw in ("primes", "factorizations")
    ]
    levels = int(space.high[space.slices["tiling"]][0])
    shares = [math.perm(levels, 3) / levels**3, math.comb(levels, 3) / math.comb(levels + 2, 3)]
    assert split == pytest.approx(shares, abs=0.08)


def test_orders_of_the_innermost_level_are_kept_where_nothing_can_be_compressed():
    dense, sparse = problem_of(1.0), problem_of(0.2)
    genes = innermost_orders(dense.space)
    assert [dense.space.names[gene] for gene in genes] == ["order.L3_T", "order.L3_S"]
    assert first_orders(dense, genes, proposals(dense)) and not first_orders(sparse, genes, proposals(sparse))
    assert not first_orders(dense, genes, proposals(dense, prune_innermost="never"))
    rng = np.random.default_rng(0)
    genomes = dense.space.repair(dense.space.sample(300, rng), rng)
    kept = genomes.copy()
    kept[:, genes] = 1
    assert np.allclose(dense.evaluator.evaluate(kept).edp, dense.evaluator.evaluate(genomes).edp, rtol=1e-12)


def test_a_search_ends_after_so_many_designs_without_success():
    scores = np.array([5.0, math.inf, 6.0, 4.0, 4.5, math.inf])
    assert not Patience(0, 0).ends(scores)
    assert Patience(2, 0).ends(np.append(scores, 5.0)) and not Patience(2, 0).ends(scores)
    both = Patience(0, 3)
    assert not both.ends(scores) and both.ends(np.array([math.inf, math.inf, 1.0]))  # counted over batches
    ended = search(problem_of(0.2), 20_000, searcher={"type": "random-pruned", "victory": 50, "batch": 64})
    assert ended.evaluations < 20_000
