"""Islands: the parts of a batch go to whom they belong, guests replace the worst, and one island is the searcher alone."""

import numpy as np
import pytest
from sparsemap_plugins.searchers.islands import Islands
from sparsemap_plugins.searchers.memetic import Memetic
from toy_problem import toy_problem, toy_registry

from sparsemap import Budget, Scored, Searcher, SpecError, search
from sparsemap.pieces.loading import load


class Logged(Searcher):
    """Yields its own numbers, and remembers what it hears."""

    type_name = "logged"
    takes_migrants = True
    runs = []

    def search(self, space, budget, rng):
        heard = []
        number = len(type(self).runs)
        type(self).runs.append((heard, budget))
        for batch in range(3 if number == 0 else 6):
            genomes = np.ones((2 + number, 8), dtype=np.int64)
            genomes[:, 2] = 1 + number
            genomes[:, 3] = 1 + batch % 5
            heard.append((yield genomes))


@pytest.fixture(autouse=True)
def forget():
    Logged.runs.clear()


def test_every_island_hears_about_its_own_designs_until_it_ends():
    islands = Islands(searcher=Logged(), islands=3, migrants=0)
    result = search(toy_problem(), 1000, searcher=islands)
    assert result.evaluations == 3 * 2 + 6 * 3 + 6 * 4
    for number, (heard, budget) in enumerate(Logged.runs):
        assert len(heard) == (3 if number == 0 else 6)
        assert all((scored.genomes[:, 2] == 1 + number).all() for scored in heard)
        assert all(len(scored) == 2 + number for scored in heard)
        assert (budget.total, budget.spent) == (334, sum(map(len, heard)))


def test_guests_from_the_island_before_take_the_place_of_the_worst():
    islands = Islands(searcher=Logged(), islands=3, migrants=1, every=2)
    search(toy_problem(), 1000, searcher=islands)
    for number, (heard, _) in enumerate(Logged.runs):
        strangers = [int((scored.genomes[:, 2] != 1 + number).sum()) for scored in heard]
        assert strangers == [0, 1, 0, 1, 0, 1][: len(strangers)]
    first, second = Logged.runs[0][0], Logged.runs[1][0]
    assert second[1].genomes[:, 2].tolist().count(1) == 1  # from island 0
    assert first[1].genomes[:, 2].tolist().count(3) == 1  # from the last one
    guest = second[1].genomes[:, 2] == 1
    assert (second[1].scores[guest] == min(scored.scores.min() for scored in first[:2])).all()


def test_the_scores_of_guests_are_theirs():
    problem = toy_problem()
    search(problem, 1000, searcher=Islands(searcher=Logged(), islands=3, every=1))
    for heard, _ in Logged.runs:
        for scored in heard:
            expected = problem.evaluator.score(problem.evaluator.evaluate(scored.genomes))
            assert (scored.scores == expected).all()


def test_one_island_is_the_searcher_itself():
    class Alone(Searcher):
        def search(self, space, budget, rng):
            yield from Memetic().search(space, budget, rng.spawn(1)[0])

    one = search(toy_problem(), 2000, 4, Islands(searcher=Memetic(), islands=1))
    assert one.history_csv() == search(toy_problem(), 2000, 4, Alone(name="alone")).history_csv()


@pytest.mark.parametrize("searcher", ["sparsemap", "es-pfce", {"type": "evolution"}])
@pytest.mark.parametrize("budget", [1, 7, 150, 3000])
def test_the_budget_is_spent_to_the_last_design(searcher, budget):
    problem = toy_problem()
    piece = toy_registry().build("searcher", searcher)
    results = [search(problem, budget, 3, Islands(searcher=piece, every=2)) for _ in range(2)]
    assert results[0].evaluations == budget
    assert results[0].history_csv() == results[1].history_csv()


def test_several_objectives_travel_with_their_values():
    registry = load()
    if "nsga2" not in registry.types("searcher"):
        pytest.skip("no searcher for several objectives")
    from sparsemap import load_problem

    problem = load_problem("mm1", "cloud", "paper", objective="pareto:energy,delay", registry=registry)
    result = search(problem, 3000, searcher={"type": "islands", "searcher": "nsga2", "every": 2})
    assert result.evaluations == 3000 and len(result.front) > 3


def test_islands_are_a_spec():
    registry = load()
    piece = registry.build("searcher", {"type": "islands", "searcher": "sparsemap-paper", "islands": 2})
    assert piece.searcher.name == "sparsemap-paper"
    assert isinstance(registry.get("searcher", "islands").searcher, Memetic)
    with pytest.raises(SpecError, match="searcher 'random' takes no migrants; set migrants = 0"):
        registry.build("searcher", {"type": "islands", "searcher": "random"})
    assert (
        registry.build("searcher", {"type": "islands", "searcher": "random", "migrants": 0}).searcher.name == "random"
    )


def test_a_batch_that_is_cut_short_is_split_in_order():
    proposals = Islands(searcher=Logged(), islands=3, migrants=0).search(
        toy_problem().space, Budget(100), np.random.default_rng(0)
    )
    genomes = next(proposals)
    proposals.send(Scored(genomes[:3], np.arange(3.0)))
    assert [heard[0].scores.tolist() for heard, _ in Logged.runs] == [[0.0, 1.0], [2.0], []]
