"""The driver: what it counts, checks, remembers and says, for every registered searcher."""

import inspect

import numpy as np
import pytest
from toy_problem import HIGH, ToyModel, toy_problem, toy_registry

from sparsemap import (
    Budget,
    EvaluationError,
    PluginError,
    Search,
    Searcher,
    SearchError,
    evaluate,
    load_problem,
    search,
)

SEARCHERS = toy_registry().names("searcher")


def scripted(*batches, after=None):
    """A searcher that yields these batches, remembers what it hears, and then returns or raises `after`."""

    class Scripted(Searcher):
        type_name = "scripted"
        heard = []

        def search(self, space, budget, rng):
            for batch in batches:
                self.heard.append((yield batch))
            if after is not None:
                raise after

    return Scripted(name="scripted")


def ones(count):
    return np.ones((count, 8), dtype=np.int64)


# ---------------------------------------------------------------------------------------------------- every searcher


@pytest.mark.parametrize("searcher", SEARCHERS)
@pytest.mark.parametrize("budget", [1, 7, 150])
def test_the_budget_is_spent_to_the_last_design_and_never_exceeded(searcher, budget):
    result = search(toy_problem(), budget, seed=3, searcher=searcher)
    assert result.evaluations == budget
    assert result.history[-1].evaluations == budget


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_every_gene_proposed_is_within_its_bounds_and_a_long_search_spends_its_budget(searcher):
    run = Search(toy_problem(), searcher, 1500, seed=1)
    while (genomes := run.ask()) is not None:
        assert genomes.dtype == np.int64
        assert ((genomes >= 1) & (genomes <= HIGH)).all()
        run.tell(run.problem.evaluator.evaluate(genomes))
    assert run.result().evaluations == run.result().history[-1].evaluations == 1500


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_one_seed_gives_one_result_and_another_seed_another(searcher):
    results = [search(toy_problem(), 150, seed, searcher) for seed in (5, 5, 6)]
    first, again, _ = ({**r.to_dict(), "seconds": 0, "seed": 0} for r in results)
    assert first == again
    assert results[0].history_csv() == results[1].history_csv()
    assert results[0].history_csv() != results[2].history_csv()


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_a_problem_without_any_valid_design_ends_and_says_what_the_nearest_one_lacks(searcher):
    result = search(toy_problem(limit=1.5), 600, 0, searcher)
    assert result.best is None
    assert result.evaluations == 600
    assert result.valid_fraction == 0
    assert str(result.shortfalls[0]) == "GLB: needs 2, has 1.5"
    assert result.shortfalls[0].needed == 2.0
    assert result.shortfalls[0].available == 1.5


@pytest.mark.parametrize("searcher", [name for name in SEARCHERS if name != "random"])
def test_evolution_beats_random_search_on_a_smooth_problem(searcher):
    budget = 120 if searcher == "chips" else 400  # which takes long over each design, and needs few
    evolved, random = (
        np.mean([search(toy_problem(), budget, seed, name).best.score for seed in range(3)])
        for name in (searcher, "random")
    )
    assert evolved < random


def test_random_search_does_not_depend_on_its_batches():
    results = [search(toy_problem(), 900, 4, {"type": "random", "batch": batch}) for batch in (1024, 7)]
    assert results[0].best.score == results[1].best.score
    assert (results[0].best.genome == results[1].best.genome).all()


# ---------------------------------------------------------------------------------------------------------- ask, tell


def test_ask_and_tell_do_what_search_does():
    problem = toy_problem()
    run = Search(problem, "sparsemap", 1000, seed=9)
    while (genomes := run.ask()) is not None:
        run.tell(problem.evaluator.evaluate(genomes))
    assert run.finished
    assert {**run.result().to_dict(), "seconds": 0} == {**search(problem, 1000, 9).to_dict(), "seconds": 0}


def test_plain_scores_may_be_told():
    problem = toy_problem()
    run = Search(problem, scripted(ones(3)), 10)
    run.ask()
    run.tell([7.0, 5.0, np.inf])
    assert run.archive.score == 5.0
    assert run.archive.valid == 2
    assert run.ask() is None
    assert run.result().best.energy_pj == 1.0


@pytest.mark.parametrize("scale", [np.log, lambda edp: edp / 1e12, np.ones_like])
def test_no_bound_of_the_objective_speaks_of_plain_scores(scale):
    problem = load_problem("mm1", "edge-16gbps", "paper")
    run = Search(problem, budget=100)
    while (genomes := run.ask()) is not None:
        edp = problem.evaluator.evaluate(genomes).score("edp")
        run.tell(np.where(np.isfinite(edp), scale(edp), np.inf))
        assert run.snapshot().gap is None
    result = run.result()
    assert result.evaluations == 100
    assert (result.bound, result.gap, result.best.gap, result.broken_bound) == (None, None, None, "")
    assert "optimum" not in repr(result) + result.report("summary")
    assert search(problem, 100).gap > 1.0  # that of the next search is as it was


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ([1.0, np.nan], "score 1 is nan, expected a number, or inf"),
        (["low", 1.0], "scores are .'low', 1.0., expected 2"),
    ],
)
def test_scores_that_are_no_numbers_are_refused(scores, found):
    run = Search(toy_problem(), scripted(ones(2)), 10)
    run.ask()
    with pytest.raises(EvaluationError, match=f"tell: {found}"):
        run.tell(scores)


def test_ask_before_tell_and_tell_before_ask_are_errors():
    run = Search(toy_problem(), "random", 10)
    with pytest.raises(SearchError, match="tell\\(\\) without ask"):
        run.tell([1.0])
    run.ask()
    with pytest.raises(SearchError, match="ask\\(\\) again before tell"):
        run.ask()


@pytest.mark.parametrize("scores", [[1.0], [[1.0, 2.0]]])
def test_scores_of_the_wrong_shape_are_refused(scores):
    run = Search(toy_problem(), scripted(ones(2)), 10)
    run.ask()
    with pytest.raises(EvaluationError, match=r"expected \(2,\)"):
        run.tell(scores)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"problem": "mm1", "budget": "edge"}, "the problem is 'mm1', expected a Problem, as load_problem"),
        ({"budget": "100"}, "the budget is '100' designs, expected a whole number, at least 1"),
        ({"budget": 1.5}, "the budget is 1.5 designs, expected a whole number, at least 1"),
        ({"seed": -1}, "the seed is -1, expected a whole number, at least 0"),
        ({"seed": 1.5}, "the seed is 1.5, expected"),
        ({"seed": None}, "the seed is None, expected"),
        ({"start": [1, 2]}, "start: found 1, expected design files, folders"),
        ({"start": 3}, "start: found 3, expected design files, folders"),
    ],
)
def test_arguments_that_are_none_are_named_with_what_is_expected(given, text):
    with pytest.raises(SearchError, match=text):
        search(**{"problem": toy_problem(), "budget": 10, **given})


def test_what_is_no_problem_is_not_evaluated():
    with pytest.raises(EvaluationError, match="evaluate: the problem is 'mm1', expected a Problem, as load_problem"):
        evaluate("mm1", ones(2))


@pytest.mark.parametrize("objective", ["pareto:energy,delay", {"type": "pareto"}, 3, "edpp"])
def test_an_objective_that_an_evaluation_cannot_score_is_named(objective):
    evaluation = toy_problem().evaluator.evaluate(ones(2))
    with pytest.raises(EvaluationError, match=r"score: .+expected an objective, or an expression of costs"):
        evaluation.score(objective)


def test_an_evaluation_of_another_problem_or_of_other_genomes_is_refused():
    run, other = Search(load_problem("small-sparse", "small")), load_problem("small-sparse", "mobile")
    genomes = run.ask()
    fewer = run.problem.evaluator.evaluate(genomes[1:])
    turned = run.problem.evaluator.evaluate(genomes[::-1])
    of_other = other.evaluator.evaluate(other.space.guess(len(genomes), np.random.default_rng(0)))
    for wrong, text in [
        (of_other, "the evaluation is of small-sparse on mobile, expected one of small-sparse on small"),
        (fewer, f"{len(genomes) - 1} designs were evaluated, expected {len(genomes)}"),
        (turned, "the evaluation is of other genomes"),
    ]:
        with pytest.raises(EvaluationError, match=f"tell: {text}"):
            run.tell(wrong)
    run.tell(turned.take(np.arange(len(genomes))[::-1]))
    parts = [run.problem.evaluator.evaluate(half) for half in np.array_split(run.ask(), 2)]
    run.tell(type(turned).join(parts))
    assert run.archive.evaluations == len(genomes) + sum(map(len, parts))


def test_the_last_batch_is_cut_and_the_searcher_closed():
    searcher = scripted(ones(4), ones(4), ones(4))
    searcher.heard.clear()
    result = search(toy_problem(), 6, searcher=searcher)
    assert result.evaluations == 6
    assert [len(scored) for scored in searcher.heard] == [4]


def test_a_searcher_that_returns_early_ends_the_search():
    result = search(toy_problem(), 100, searcher=scripted(ones(4), ones(1)))
    assert result.evaluations == 5
    assert not result.interrupted
    assert result.best.score == 10.0


def test_empty_batches_are_answered_but_not_counted():
    searcher = scripted(np.zeros((0, 8), np.int64), ones(1), [][:0] or np.zeros((0, 0)), ones(2))
    searcher.heard.clear()
    result = search(toy_problem(), 100, searcher=searcher)
    assert result.evaluations == 3
    assert [len(scored) for scored in searcher.heard] == [0, 1, 0, 2]


def test_a_searcher_that_yields_only_empty_batches_is_stopped():
    class Idle(Searcher):
        def search(self, space, budget, rng):
            while True:
                yield np.zeros((0, 8), np.int64)

    with pytest.raises(PluginError, match="empty batches in a row"):
        search(toy_problem(), 10, searcher=Idle(name="idle"))


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (np.ones((2, 7), np.int64), r"shape \(2, 7\), expected \(B, 8\)"),
        (np.ones((2, 8)), "float64, expected integers"),
        (np.ones(8, np.int64), r"shape \(8,\), expected an array of integers of shape \(n, 8\)"),
        (ones(2) * 9, "gene 'order.a' is 9, expected 1..6"),
        ("abc", "a value of type str"),
        (None, "a value of type NoneType"),
    ],
)
def test_wrong_genomes_are_told_with_the_searcher_and_what_was_expected(batch, text):
    with pytest.raises(PluginError, match=text) as caught:
        search(toy_problem(), 10, searcher=scripted(batch))
    lines, start = inspect.getsourcelines(scripted)
    line = start + next(number for number, line in enumerate(lines) if "yield batch" in line)
    assert f"test_driver.py, line {line}: searcher 'scripted': search yielded" in str(caught.value)


def test_a_searcher_that_raises_leaves_the_best_design_so_far():
    with pytest.raises(PluginError, match=r"searcher 'scripted'.*raised ZeroDivisionError: oops") as caught:
        search(toy_problem(), 10, searcher=scripted(ones(2), after=ZeroDivisionError("oops")))
    assert caught.value.result.best.score == 10.0
    assert caught.value.result.evaluations == 2


def test_a_cost_model_that_raises_is_named():
    class Broken(ToyModel):
        def evaluate(self, designs, problem, detail=False):
            raise ZeroDivisionError("oops")

    problem = toy_problem()
    problem.cost_model = Broken(name="toy-model")
    with pytest.raises(PluginError, match=r"cost model 'toy-model'.*ZeroDivisionError"):
        search(problem, 10, searcher="random")


def test_interrupting_returns_the_result_so_far():
    def interrupt(snapshot):
        if snapshot.evaluations >= 300:
            raise KeyboardInterrupt

    result = search(toy_problem(), 5000, searcher="es-pfce", progress=interrupt)
    assert result.interrupted
    assert 300 <= result.evaluations < 5000
    assert result.best is not None


def test_progress_hears_of_every_batch():
    heard = []
    search(toy_problem(), 250, searcher={"type": "random", "batch": 100}, progress=heard.append)
    assert [snapshot.evaluations for snapshot in heard] == [100, 200, 250]
    assert all(snapshot.budget == 250 and snapshot.seconds >= 0 for snapshot in heard)
    assert heard[-1].best_score == min(snapshot.best_score for snapshot in heard)


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_below_one_is_refused(budget):
    with pytest.raises(SearchError, match="at least 1"):
        search(toy_problem(), budget)


def test_progress_is_the_share_of_the_budget_that_is_spent():
    budget = Budget(200)
    assert (budget.progress, budget.left) == (0.0, 200)
    budget.spend(50)
    assert (budget.progress, budget.left) == (0.25, 150)
    budget.spend(200)
    assert (budget.progress, budget.left) == (1.0, 0)


# ------------------------------------------------------------------------------------------------------ own proposals


def test_own_proposals_count_and_are_in_the_result_as_those_of_a_searcher():
    problem, rng = toy_problem(), np.random.default_rng(0)
    run, seen = Search(problem, budget=250), []
    while run.budget.left:
        seen.append(run.evaluate(problem.space.sample(100, rng)))
    assert [len(evaluation) for evaluation in seen] == [100, 100, 50]
    result = run.result()
    assert (result.evaluations, result.searcher) == (250, "own proposals")
    assert result.arrays()["evaluations"].tolist() == [100, 200, 250]
    best = min(float(problem.evaluator.score(evaluation).min()) for evaluation in seen)
    assert result.best.score == result.arrays()["best_score"][-1] == best
    assert result.valid_fraction == sum(evaluation.valid.sum() for evaluation in seen) / 250
    with pytest.raises(SearchError, match="the budget of 250 designs is spent"):
        run.evaluate(ones(1))


def test_own_proposals_may_go_between_those_of_a_searcher():
    run = Search(toy_problem(), "random", 2000, seed=1)
    run.ask()
    with pytest.raises(SearchError, match="own proposals before tell"):
        run.evaluate(ones(3))
    run.tell(run.evaluate())
    run.evaluate(ones(3))
    while run.ask() is not None:
        run.tell(run.evaluate())
    assert (run.own, run.result().evaluations, run.result().searcher) == (3, 2000, "random")


def test_own_proposals_are_checked_and_cost_nothing_if_they_are_wrong():
    run = Search(toy_problem(), budget=10)
    for wrong in (np.ones((2, 3), np.int64), np.full((2, 8), 99), np.full((2, 8), 1.5)):
        with pytest.raises(EvaluationError):
            run.evaluate(wrong)
    assert len(run.evaluate(np.zeros((0, 8), np.int64))) == 0
    assert (run.budget.spent, run.result().evaluations) == (0, 0)


def test_what_is_no_genome_or_no_segment_is_told():
    problem = load_problem("mm1", "mobile")
    with pytest.raises(EvaluationError, match=r"genomes have shape \(1, 1\)"):
        Search(problem, budget=5).evaluate("abc")
    assert len(Search(problem, budget=5).evaluate(problem.space.sample(1, np.random.default_rng(0))[0])) == 1
    with pytest.raises(EvaluationError, match="no segment 'order'; "):
        problem.space.vary(problem.space.sample(2, np.random.default_rng(0)), "order", np.random.default_rng(0))
