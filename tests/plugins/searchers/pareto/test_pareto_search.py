"""Fronts that searches find, against every design of a small space."""

import csv
import json

import numpy as np
import pytest
import trade_offs
from toy_problem import toy_problem
from trade_offs import EVERY, hypervolume, problem, registry

from sparsemap import Budget, Evaluation, PluginError, Search, Searcher, SearchError, load_problem, search
from sparsemap.pieces.contracts import Context, Scored
from sparsemap.pieces.loading import load
from sparsemap.searching.front import non_dominated
from sparsemap.testing import check_operator, check_searcher


class InOrder(Searcher):
    """Proposes every genome, in an order of its own."""

    type_name = "in-order"

    def search(self, space, budget, rng):
        genomes = rng.permutation(EVERY)
        for start in range(0, len(genomes), 97):
            yield genomes[start : start + 97]


@pytest.fixture(scope="module")
def everything():
    """The values of all valid designs, (n, 2)."""
    found = problem().evaluator.values(problem().evaluator.evaluate(EVERY))
    return found[np.isfinite(found).all(axis=1)]


@pytest.fixture(scope="module")
def true_front(everything):
    return np.unique(everything[non_dominated(everything)], axis=0)


def values_of(result):
    return np.array([best.values for best in result.front])


# ------------------------------------------------------------------------------------------------------ the driver


def test_the_front_holds_what_no_design_dominates_and_the_best_of_each_objective(everything, true_front):
    result = search(problem(), len(EVERY), searcher=InOrder(name="in-order"))
    assert 10 < len(true_front) < 1000
    assert values_of(result).tolist() == true_front.tolist()
    assert result.front[0].energy_pj == everything[:, 0].min()
    assert result.front[-1].cycles == everything[:, 1].min()
    assert result.best.score == everything.prod(axis=1).min() == min(best.score for best in result.front)


def test_every_design_on_the_front_evaluates_to_the_numbers_it_carries():
    result = search(problem(), 600, seed=2)
    evaluation = result.best.problem.evaluator.evaluate(np.stack([best.genome for best in result.front]))
    assert [best.energy_pj for best in result.front] == evaluation.energy_pj.tolist()
    assert [best.cycles for best in result.front] == evaluation.cycles.tolist()
    assert [best.objectives["delay"] for best in result.front] == evaluation.cycles.tolist()
    assert [best.score for best in result.front] == evaluation.edp.tolist()


def test_with_one_objective_there_is_no_front_and_no_values():
    heard = []

    class Listener(InOrder):
        def search(self, space, budget, rng):
            heard.append((yield EVERY[:10]))

    result = search(problem("energy"), 50, searcher=Listener(name="listener"))
    assert result.front == ()
    assert "front" not in result.to_dict()
    assert heard[0].values is None


def test_scores_told_without_an_evaluation_leave_the_front_empty():
    run = Search(problem(), InOrder(name="in-order"), Budget(97))
    genomes = run.ask()
    run.tell(np.arange(len(genomes), dtype=np.float64))
    assert run.result().front == ()
    assert run.result().best is not None


def test_invalid_designs_have_infinite_values():
    evaluator = problem().evaluator
    evaluation = evaluator.evaluate(EVERY)
    assert (np.isinf(evaluator.values(evaluation)).all(axis=1) == ~evaluation.valid).all()


def test_values_of_a_wrong_shape_are_told():
    wrong = problem()

    class Wrong(type(wrong.objective)):
        def values(self, evaluation):
            return super().values(evaluation)[:, :1]

    wrong.objective = Wrong(name="wrong", objectives=wrong.objective.objectives)
    text = r"objective 'wrong': values returned an array of shape \(5, 1\) for 'values', .* shape \(5, 2\)"
    with pytest.raises(PluginError, match=text):
        search(wrong, 5, searcher=InOrder(name="in-order"))


def test_scored_designs_keep_their_values_when_taken_and_joined():
    scored = Scored(EVERY[:3], np.array([3.0, 1.0, 2.0]), np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0]]))
    assert scored.best(2).values.tolist() == [[1, 1], [2, 1]]
    assert Scored.join([scored, scored]).values.shape == (6, 2)
    assert Scored.join([scored, Scored(EVERY[:1], np.zeros(1))]).values is None


# --------------------------------------------------------------------------------------------------- the searcher


def test_nsga2_is_what_searches_several_objectives_and_finds_the_front(true_front):
    result = search(problem(), 1500, seed=1)
    assert result.searcher == "nsga2"
    reference = true_front.max(axis=0) * 1.1
    share = hypervolume(values_of(result), reference) / hypervolume(true_front, reference)
    assert share > 0.999
    assert values_of(result)[0].tolist() == true_front[0].tolist()
    assert values_of(result)[-1].tolist() == true_front[-1].tolist()
    assert non_dominated(values_of(result)).all()


def test_a_search_goes_on_when_all_designs_are_known(monkeypatch):
    monkeypatch.setattr(trade_offs, "HIGH", np.array([3, 3, 3, 1]))  # 128 designs
    assert search(problem(), 400, seed=0).evaluations == 400


def test_one_seed_gives_one_front():
    first, again, other = (search(problem(), 400, seed).to_dict() for seed in (4, 4, 5))
    assert first["front"] == again["front"]
    assert first["genome"] == again["genome"]
    assert first["front"] != other["front"]


@pytest.mark.parametrize("objective", ["pareto:energy,delay", "energy", "pareto:energy,delay,energy_pj + cycles"])
def test_the_searcher_keeps_the_contract_for_any_number_of_objectives(objective):
    check_searcher(registry().get("searcher", "nsga2"), problem(objective))


def test_the_searcher_also_finds_the_best_of_a_single_objective():
    best = problem("energy").evaluator.evaluate(EVERY).energy_pj.min()
    assert search(problem("energy"), 600, searcher="nsga2").best.energy_pj == best


@pytest.mark.parametrize("searcher", ["nsga2", "evolution"])
def test_a_problem_without_any_valid_design_has_no_front(searcher):
    impossible = problem()

    class Never(type(impossible.cost_model)):
        def evaluate(self, designs, problem, detail=False):
            count = len(designs)
            inf = np.full(count, np.inf)
            return Evaluation({"energy_pj": inf, "cycles": inf}, np.ones(count, np.uint64), ("fit",))

    impossible.cost_model = Never(name="never")
    result = search(impossible, 200, searcher=searcher)
    assert result.front == ()
    assert result.best is None


# -------------------------------------------------------------------------------------------------- the operator


def test_the_operator_keeps_its_contract():
    check_operator(registry().get("selection", "nsga2"), toy_problem())


def test_survivors_are_ranked_then_spread_and_repeated_values_come_last():
    values = np.array([[1.0, 9.0], [9.0, 1.0], [4.0, 4.0], [4.0, 4.0], [5.0, 5.0], [np.inf, np.inf]])
    scored = Scored(np.arange(6)[:, None], values.prod(axis=1), values)
    nothing = scored.take(slice(0))
    selection = registry().get("selection", "nsga2")
    assert selection.survive(nothing, scored, 6).genomes[:, 0].tolist() == [0, 1, 2, 4, 5, 3]
    assert selection.survive(nothing, scored, 3).genomes[:, 0].tolist() == [0, 1, 2]


def test_with_scores_alone_the_best_survive():
    scored = Scored(np.arange(5)[:, None], np.array([5.0, 2.0, 4.0, np.inf, 1.0]))
    survivors = registry().get("selection", "nsga2").survive(scored.take(slice(2)), scored.take(slice(2, None)), 3)
    assert survivors.scores.tolist() == [1, 2, 4]


def test_better_designs_are_picked_more_often():
    values = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [np.inf, np.inf]])
    genomes = np.ones((4, 8), np.int64)
    genomes[:, 0] += np.arange(4)
    scored = Scored(genomes, values.prod(axis=1), values)
    mates = (
        registry().get("selection", "nsga2").pick(scored, 4000, Context(toy_problem().space, np.random.default_rng(0)))
    )
    counts = np.bincount(mates[:, :, 0].ravel() - 1, minlength=4)
    assert counts / 8000 == pytest.approx([7 / 16, 5 / 16, 3 / 16, 1 / 16], abs=0.02)


def test_the_evolution_strategy_may_use_it(true_front):
    table = {"type": "evolution", "selection": "nsga2", "crossover": "one-point", "population": 60}
    result = search(problem(), 3000, searcher=table)
    reference = true_front.max(axis=0) * 1.1
    assert hypervolume(values_of(result), reference) > 0.95 * hypervolume(true_front, reference)


# ----------------------------------------------------------------------------------------------------- files, plot


@pytest.fixture
def without_design(monkeypatch):
    """The small problem has a column that a design file cannot hold."""
    monkeypatch.setattr("sparsemap.problem.design_file.dump", lambda design, numbers, _: {"score": dict(numbers)})


def test_the_files_of_a_front_hold_its_numbers_and_replace_older_ones(tmp_path, without_design):
    result = search(problem(), 800, seed=0)
    (tmp_path / "front").mkdir()
    (tmp_path / "front" / "0999.toml").write_text("old", "utf-8")
    (tmp_path / "front" / "mine.toml").write_text("kept", "utf-8")
    assert "front.csv" in [path.name for path in result.write(tmp_path)]
    with open(tmp_path / "front.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["energy"]) for row in rows] == [best.energy_pj for best in result.front]
    assert [float(row["delay"]) for row in rows] == [best.cycles for best in result.front]
    names = {row["design"] for row in rows} | {"front/mine.toml"}
    assert {f"front/{path.name}" for path in (tmp_path / "front").iterdir()} == names
    table = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert [row["objectives"]["delay"] for row in table["front"]] == [best.cycles for best in result.front]
    assert [row["genome"] for row in table["front"]] == [best.genome.tolist() for best in result.front]
    other = search(problem("energy"), 20, searcher="nsga2")
    with pytest.raises(SearchError, match="is of another search"):
        other.write(tmp_path)
    other.write(tmp_path, overwrite=True)
    assert not (tmp_path / "front.csv").exists()
    assert [path.name for path in (tmp_path / "front").iterdir()] == ["mine.toml"]


@pytest.mark.parametrize(("objective", "cost"), [("energy", "energy_pj"), ("delay", "cycles")])
def test_the_ends_of_a_front_are_near_those_of_searches_by_one_objective(objective, cost):
    """A front of 2,000 designs has at most a twentieth more than a search of 1,000 by one objective finds."""
    front = search(load_problem("mm12", "mobile", objective="pareto:energy_pj,cycles", registry=load()), 2_000).front
    alone = search(load_problem("mm12", "mobile", objective=objective, registry=load()), 1_000).best
    assert min(getattr(best, cost) for best in front) <= 1.05 * getattr(alone, cost)
