"""Every design that the cost model sees in a search counts against the budget."""

import attrs
import numpy as np
import pytest

from sparsemap import PluginError, load_problem, search
from sparsemap.pieces.contracts import Searcher
from sparsemap.pieces.loading import load

REGISTRY = load()
OTHER = {"mind-mappings": "needs a trained surrogate", "exhaustive": "needs a small space"}
PACKAGES = {"pso": "nevergrad", "tbpsa": "nevergrad", "ppo": "stable_baselines3", "dqn": "stable_baselines3"}


def counting(problem, seen):
    """The problem with a cost model that notes how many designs it sees."""
    cls = type(problem.cost_model)

    def evaluate(self, designs, problem, detail=False):
        if not detail:  # what explains a result comes after the search
            seen.append(len(designs))
        return cls.evaluate(self, designs, problem, detail)

    made = attrs.asdict(problem.cost_model, recurse=False)
    return problem.variant(cost_model=type("Counting", (cls,), {"evaluate": evaluate})(**made))


@pytest.mark.parametrize("searcher", [name for name in REGISTRY.names("searcher") if name not in OTHER])
def test_the_designs_that_the_model_sees_are_the_evaluations_of_the_result(searcher):
    if searcher in PACKAGES:
        pytest.importorskip(PACKAGES[searcher])
    seen = []
    problem = counting(load_problem("mm1", "edge", registry=REGISTRY), seen)
    result = search(problem, 160, searcher=searcher)
    assert sum(seen) == result.proposed == result.evaluations <= 160


def test_a_searcher_cannot_evaluate_past_the_driver():
    class Cheat(Searcher):
        type_name = "cheat"

        def search(self, space, budget, rng):
            while True:
                genomes = space.sample(1000, rng)
                found = space.problem.evaluator.evaluate(genomes)
                yield genomes[np.argsort(space.problem.evaluator.score(found))[:1]]

    with pytest.raises(PluginError, match=r"'cheat'.*yielding their genomes, which count against its budget"):
        search(load_problem("mm1", "edge", registry=REGISTRY), 100, searcher=Cheat(name="cheat"))
