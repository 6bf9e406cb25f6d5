"""The default search: what it proposes, when it ends, and that it is better than its parts alone."""

import numpy as np
import pytest
from sparsemap_plugins.searchers.memetic import Deme
from toy_problem import toy_problem

from sparsemap import Budget, Scored, Search, load_problem, search
from sparsemap.pieces.loading import load

REGISTRY = load()
TINY = {
    "name": "tiny",
    "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
    "dims": {"m": 2, "k": 1, "n": 1},
    "density": {"P": 0.3, "Q": 0.6},
}
FEW = {
    "name": "few",
    "segments": ["orders", "tiling", "rest"],
    "orders": {"type": "cantor"},
    "tiling": {"type": "prime-factors"},
    "rest": {"type": "fixed", "formats": {t: ["uncompressed"] for t in "PQZ"}, "mechanisms": {"Buffer": "none", "MAC": "none"}},
}  # fmt: skip


def batches(problem, budget, searcher="sparsemap", seed=0):
    """All genomes that a search proposes, batch by batch, and its result."""
    running, found = Search(problem, searcher, Budget(budget), seed=seed), []
    while (genomes := running.ask()) is not None:
        found.append(genomes.copy())
        running.tell(problem.evaluator.evaluate(genomes))
    return found, running.result()


def test_no_genome_is_evaluated_twice():
    proposed, _ = batches(load_problem("mm1", "cloud", registry=REGISTRY), 3_000)
    genomes = np.concatenate(proposed)
    assert len(np.unique(genomes, axis=0)) == len(genomes) == 3_000


def test_it_ends_when_the_space_has_no_more_to_offer():
    problem = load_problem(TINY, "small", space=FEW, registry=REGISTRY)
    size = round(10**problem.space.log10_size)
    result = search(problem, budget=10 * size)
    assert result.evaluations <= size
    assert result.best.score == search(problem, budget=10 * size, searcher="exhaustive").best.score


@pytest.mark.parametrize("budget", [1, 7, 40, 500])
def test_small_budgets_are_kept(budget):
    result = search(toy_problem(), budget=budget)
    assert result.evaluations == budget


def test_several_demes_propose_in_one_batch_and_later_one_population():
    """With 20,000 designs four demes share the first part of the budget: batches are as large as those of one."""
    proposed, _ = batches(load_problem("mm3", "edge", registry=REGISTRY), 20_000)
    sizes = [len(genomes) for genomes in proposed]
    assert sizes[0] == 4 * 320  # ten times the 32 survivors of each deme
    assert max(sizes[1:]) <= 4 * 320
    assert np.median(sizes) > 256


def test_demes_find_what_one_population_misses():
    """On mm5 on edge in the mean of several seeds, not with every one of them."""
    problem = load_problem("mm5", "edge", registry=REGISTRY)

    def mean(**options):
        scores = [search(problem, 10_000, s, {"type": "memetic", **options}).best.score for s in range(4)]
        return np.exp(np.mean(np.log(scores)))

    assert mean() < mean(demes=1)


def test_guesses_are_better_than_uniform_genomes():
    problem, rng = (
        load_problem("mm5", "mobile", "paper", cost_model="timeloop", registry=REGISTRY),
        np.random.default_rng(0),
    )
    space, evaluator = problem.space, problem.evaluator

    def best(genomes):
        return np.sort(evaluator.score(evaluator.evaluate(space.repair(genomes, rng))))[50]

    assert best(space.guess(2_000, rng)) < best(space.sample(2_000, rng))


@pytest.mark.parametrize(
    ("stalled", "proposes", "converged"), [(3, "children", False), (4, "sweep", False), (8, "sweep", False)]
)
def test_a_deme_sweeps_after_its_patience(stalled, proposes, converged):
    parents = Scored(np.zeros((1, 3), np.int64), np.ones(1))
    deme = Deme(8, 4, None, parents, stalled)
    assert (deme.proposes, deme.converged) == (proposes, converged)


@pytest.mark.parametrize(("stalled", "converged"), [(4, False), (7, False), (8, True)])
def test_a_deme_that_has_swept_converges_after_twice_its_patience(stalled, converged):
    parents = Scored(np.zeros((1, 3), np.int64), np.ones(1))
    assert Deme(8, 4, None, parents, stalled, swept=True).converged is converged
    assert not Deme(8, 4, None, Scored(parents.genomes, np.array([np.inf])), stalled, swept=True).converged
