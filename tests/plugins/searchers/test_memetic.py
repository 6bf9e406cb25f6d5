"""The default search: what it proposes, when it ends, and that it is better than its parts alone."""

import attrs
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

MEMETIC = {"type": "memetic", "selection": {"type": "greedy-ranking", "greed": 3.0}}


@pytest.fixture(scope="module")
def product():
    return load_problem("mm3", "edge", registry=REGISTRY)


def batches(problem, budget, searcher="sparsemap", seed=0):
    """All genomes that a search proposes, batch by batch, and its result."""
    running, found = Search(problem, searcher, Budget(budget), seed=seed), []
    while (genomes := running.ask()) is not None:
        found.append(genomes.copy())
        running.tell(problem.evaluator.evaluate(genomes))
    return found, running.result()


def test_no_two_designs_that_mean_the_same_are_evaluated():
    """Such as loops of bound one in another order."""
    problem = load_problem("mm1", "cloud", registry=REGISTRY)
    genomes = np.concatenate(batches(problem, 3_000)[0])
    assert len(np.unique(problem.space.canonical(genomes), axis=0)) == len(genomes) == 3_000


def test_a_sample_keeps_what_is_good_in_its_first_designs():
    """Half of mm7 on mobile is decided by formats and mechanisms: random ones are hundreds of times worse than the best."""
    problem = load_problem("mm7", "mobile", registry=REGISTRY)
    (first, *more), _ = batches(problem, 70)
    rest = slice(problem.space.slices["formats"].start, None)
    known = {tuple(genome[rest]) for genome in problem.space.repair(first, np.random.default_rng(0))}
    assert np.mean([tuple(genome[rest]) in known for genome in np.concatenate(more)]) > 0.3
    score = problem.evaluator.score
    guessed = problem.space.repair(problem.space.guess(1_000, np.random.default_rng(0)), np.random.default_rng(0))
    tried = score(problem.evaluator.evaluate(np.concatenate([first, *more])))
    assert np.median(tried) < 0.2 * np.median(score(problem.evaluator.evaluate(guessed)))


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


def test_several_demes_propose_in_one_batch_and_later_one_population(product, monkeypatch):
    """In a round of 20,000 designs four demes share the first part: batches are as large as those of one."""
    monkeypatch.setattr("sparsemap_plugins.searchers.memetic.ROUNDS", (20_000,))
    proposed, _ = batches(product, 20_000, {**MEMETIC, "prune": False})
    sizes = [len(genomes) for genomes in proposed]
    assert sizes[0] == 4 * 64 and 4 * 300 < sum(sizes[:5]) <= 4 * 320  # ten times the 32 survivors of each deme
    assert max(sizes[1:]) <= 4 * 320
    assert np.median(sizes) > 128


def test_a_smaller_budget_tries_the_first_designs_of_a_larger_one(product):
    """So more designs are never worse."""
    all_tried = np.concatenate(batches(product, 700)[0])
    for budget in (3, 170, 560):
        assert np.array_equal(np.concatenate(batches(product, budget)[0]), all_tried[:budget])


def test_designs_are_left_out_unspent_if_their_class_has_nothing_better(product):
    problem = product
    running, best, left_out = Search(problem, "sparsemap", Budget(700)), np.inf, 0
    while (genomes := running.ask()) is not None:
        classes = problem.classes
        least = classes.least[classes.of(problem.space.decode(genomes))]
        assert not np.isfinite(best) or (least < best).all()
        left_out += int((classes.least < np.inf).sum() - (classes.least < best).sum())
        evaluation = problem.evaluator.evaluate(genomes)
        best = min(best, problem.evaluator.score(evaluation).min())
        running.tell(evaluation)
    assert left_out > 0 and running.budget.spent == 700


def test_children_move_into_the_best_classes_where_the_first_round_ends_far_from_all_bounds():
    """Without that this one ends at 16 times the bound."""
    found = search(load_problem("mm7", "edge", registry=REGISTRY), budget=500, seed=3)
    assert found.gap < 2.5


def test_all_guesses_may_be_of_the_best_classes():
    found = search(load_problem("mm1", "mobile", registry=REGISTRY), 200, 0, MEMETIC | {"classes": 1.0})
    assert found.best is not None


def test_a_cost_model_without_classes_is_searched_without_them():
    problem = toy_problem()
    assert problem.space.classes is None
    assert search(problem, budget=700).evaluations == 700


def test_a_search_ends_once_no_class_can_hold_anything_better():
    problem = attrs.evolve(load_problem("mm3", "edge", registry=REGISTRY), raced=False)
    found = search(problem, budget=300, seed=1)
    classes = problem.classes
    object.__setattr__(classes, "least", np.full(len(classes.least), 1.1 * found.best.score))
    again = search(problem, budget=3_000, seed=1)
    assert again.evaluations < 3_000 and again.best.score <= 1.1 * found.best.score


def test_guesses_are_better_than_uniform_genomes():
    problem, rng = load_problem("conv4", "mobile", registry=REGISTRY), np.random.default_rng(0)
    space, evaluator = problem.space, problem.evaluator

    def best(genomes):
        return np.sort(evaluator.score(evaluator.evaluate(space.repair(genomes, rng))))[20]

    assert best(space.guess(500, rng)) < best(space.sample(500, rng))


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


def test_a_start_in_a_valley_of_its_own_costs_at_most_as_many_designs_again():
    """The best tiling for 16 KB fits 32 KB, and no small change of it is better: guesses evolve beside it."""
    layer = TINY | {"dims": {"m": 128, "k": 256, "n": 128}, "density": {"P": 0.4, "Q": 0.1}}
    small, large = (
        load_problem(
            layer,
            {"extends": "edge-16gbps", "name": size, "levels": {"GLB": {"capacity": size}}},
            registry=REGISTRY,
        )
        for size in ("16 KB", "32 KB")
    )
    given = search(small, budget=300, seed=0)
    cold = search(large, budget=200, seed=0)
    started = search(large, budget=400, seed=0, start=[given])
    history = [(batch.evaluations, batch.best_score) for batch in started.history]
    assert min(designs for designs, score in history if score <= 1.1 * cold.best.score) <= 400
