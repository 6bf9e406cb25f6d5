"""A cost that a plugin adds, from the cost model to the files of a search."""

import csv
import json

import numpy as np
import pytest

from sparsemap import PluginError, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.searching.driver import Search
from sparsemap.searching.folder import search_into
from sparsemap.study.cells import Cell
from sparsemap.study.study import run_cell

PLUGIN = """
import attrs
import numpy as np
from sparsemap import Evaluation, hookimpl
from sparsemap.pieces.contracts import CostModel


@attrs.frozen(kw_only=True)
class Priced(CostModel):
    type_name = "priced"
    needs = ("bounds",)
    costs = ("energy_pj", "cycles", "dollars")

    def evaluate(self, designs, problem, detail=False):
        energy_pj, cycles = designs.bounds[:, 0].prod(axis=1), designs.bounds[:, 1].prod(axis=1)
        costs = {"energy_pj": energy_pj, "cycles": cycles, "dollars": 1.0 + designs.bounds[:, -1].sum(axis=1)}
        return Evaluation(costs, np.zeros(len(designs), np.uint64), ("never",))


@hookimpl
def register_cost_models():
    return [Priced]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugins")
    (path / "priced").mkdir()
    (path / "priced" / "__init__.py").write_text(PLUGIN, "utf-8")
    return path


@pytest.fixture(scope="module")
def registry(folder):
    return load(plugin_dirs=[folder])


def priced(registry, objective="dollars"):
    return load_problem("mm1", "edge", cost_model={"type": "priced"}, objective=objective, registry=registry)


def test_a_third_cost_is_minimised_and_in_every_file(registry, tmp_path):
    problem = priced(registry)
    result = search_into(tmp_path, problem, 400, searcher="random")
    genomes = problem.space.sample(400, np.random.default_rng(0))
    assert result.found.costs["dollars"] <= problem.evaluator.evaluate(genomes).costs["dollars"].max()
    assert result.found.score == result.found.costs["dollars"]
    table = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert table["score"] == table["dollars"] == table["costs"]["dollars"] == result.found.score
    assert table["costs"]["seconds"] == table["cycles"] / problem.clock_hz == result.found.seconds
    assert set(table["costs"]) == {"energy_pj", "cycles", "dollars", "edp", "seconds", "power_w", "edp_js", "area_mm2"}
    with (tmp_path / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["dollars"]) == result.found.score
    assert result.bound is None


def test_a_stopped_search_for_a_third_cost_goes_on_from_its_journal(registry, tmp_path):
    def stop(snapshot):
        if snapshot.evaluations >= 200:
            raise KeyboardInterrupt

    whole = search(priced(registry, "dollars * seconds"), 600, searcher="sparsemap", seed=3)
    search_into(tmp_path, priced(registry, "dollars * seconds"), 600, searcher="sparsemap", seed=3, progress=stop)
    seen = []
    problem = priced(registry, "dollars * seconds")
    evaluate = type(problem.evaluator).evaluate_designs
    type(problem.evaluator).evaluate_designs = lambda self, designs, detail=False: (
        seen.append(len(designs)) or evaluate(self, designs, detail)
    )
    try:
        again = search_into(tmp_path, problem, 600, searcher="sparsemap", seed=3)
    finally:
        type(problem.evaluator).evaluate_designs = evaluate
    assert again.found.own_costs == whole.found.own_costs
    assert again.history_csv() == whole.history_csv()
    assert sum(seen) < 600


def test_a_front_of_a_third_cost_has_its_numbers(registry):
    result = search(priced(registry, "pareto:energy,(dollars)"), 400)
    for best in result.front:
        assert best.objectives == {"energy": best.energy_pj, "(dollars)": best.costs["dollars"]}


def test_a_cell_of_a_study_has_every_cost_in_its_row(folder, tmp_path):
    parts = {"workload": "mm1", "hardware": "edge", "cost_model": {"type": "priced"}, "searcher": "random"}
    cell = Cell(
        workload="mm1", hardware="edge", searcher="random", seed=0, budget=50, parts=parts, folder=str(tmp_path / "a")
    )
    for state in ("done", "kept"):
        outcome = run_cell(cell, {"plugin_dirs": [str(folder)]})
        assert (outcome.state, outcome.error) == (state, "")
        assert outcome.row["dollars"] >= 1 and outcome.row["seconds"] == outcome.row["cycles"] / 1e9


def test_a_cost_model_gives_the_costs_that_it_names(registry):
    problem = priced(registry)
    cls = type(problem.cost_model)
    problem.cost_model = type("Fewer", (cls,), {"costs": ("energy_pj", "cycles")})(name="fewer")
    with pytest.raises(PluginError, match="returned the costs energy_pj, cycles, dollars, expected energy_pj, cycles"):
        Search(problem, "random", 10).problem.evaluator.evaluate(problem.space.sample(10, np.random.default_rng(0)))


def test_chips_with_different_clocks_are_compared_by_time(registry):
    slow = load_problem("mm1", {"extends": "edge", "clock": "500 MHz"}, registry=registry)
    fast = load_problem("mm1", "edge", registry=registry)
    genomes = fast.space.repair(fast.space.guess(200, np.random.default_rng(0)), np.random.default_rng(1))
    one, two = (problem.evaluator.evaluate(genomes) for problem in (slow, fast))
    assert (one.cycles <= two.cycles).all()  # memories deliver more words in a longer cycle
    assert (one.costs["seconds"][one.valid] >= two.costs["seconds"][one.valid] * (1 - 1e-12)).all()
