"""What every baseline keeps to, whatever its method: the driver's contract, the budget, its seed, its clean end."""

import gc
import threading
from importlib.util import find_spec

import numpy as np
import pytest
from toy_problem import HIGH, toy_problem

from sparsemap import Search, SearchError, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.testing import check_searcher

REGISTRY = load()
LEARNING = ["torch", "gymnasium", "stable_baselines3"]
EXTRAS = {"pso": ["nevergrad"], "tbpsa": ["nevergrad"], "ppo": LEARNING, "dqn": LEARNING}
NAMES = ["gamma", "mcts", "pso", "tbpsa", "ppo", "dqn", "random-pruned"]


def searcher(name, **keys):
    missing = [package for package in EXTRAS.get(name, []) if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} of the extra 'baselines'")
    return REGISTRY.build("searcher", {"extends": name, "name": name, **keys})


def real_problem(space="paper"):
    return load_problem("matmul-32x64x48", "edge", space=space, registry=REGISTRY)


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_the_contract_on_the_genome_of_the_paper(name):
    check_searcher(searcher(name), real_problem(), budget=300)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [1, 7, 150])
def test_the_budget_is_spent_to_the_last_design_and_never_exceeded(name, budget):
    assert search(toy_problem(), budget, seed=3, searcher=searcher(name)).evaluations == budget


@pytest.mark.parametrize("name", NAMES)
def test_genes_stay_within_their_bounds_and_a_longer_search_spends_its_budget(name):
    run = Search(toy_problem(), searcher(name), 1100, seed=1)
    while (genomes := run.ask()) is not None:
        assert genomes.dtype == np.int64
        assert ((genomes >= 1) & (genomes <= HIGH)).all()
        run.tell(run.problem.evaluator.evaluate(genomes))
    assert run.result().evaluations == 1100


@pytest.mark.parametrize("name", NAMES)
def test_one_seed_gives_one_result_and_another_seed_another(name):
    first, again, other = (search(toy_problem(), 300, seed, searcher(name)).history_csv() for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_without_any_valid_design_ends_within_the_budget(name):
    result = search(toy_problem(limit=1.5), 400, 0, searcher(name))
    assert result.best is None
    assert result.evaluations == 400


@pytest.mark.parametrize("name", NAMES)
def test_a_search_that_is_given_up_leaves_no_thread_behind(name):
    before = set(threading.enumerate())
    run = Search(toy_problem(), searcher(name), 5000, seed=0)
    for _ in range(2):
        genomes = run.ask()
        run.tell(run.problem.evaluator.evaluate(genomes))
    run.ask()
    run.close()
    gc.collect()
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize(("name", "package"), [("pso", "nevergrad"), ("tbpsa", "nevergrad"), ("ppo", "torch")])
def test_a_missing_package_is_told_with_the_line_to_type(monkeypatch, name, package):
    def absent(module):
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    monkeypatch.setattr("sparsemap.extras.import_module", absent)
    line = rf"'{name}' needs the package '{package}'.*pip install .*\[baselines\]'"
    with pytest.raises(SearchError, match=line):
        search(toy_problem(), 10, searcher=REGISTRY.resolve("searcher", name))
