"""Problems, results and designs go to other processes: they load the plugins again."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from toy_problem import toy_problem

from sparsemap import PluginError, evaluate, load_problem, search
from sparsemap.problem import design_file

PLUGIN = """
import attrs
from sparsemap import Objective, hookimpl


@attrs.frozen(kw_only=True)
class Cubed(Objective):
    type_name = "cubed"

    def score(self, evaluation):
        return evaluation.cycles**3


@hookimpl
def register_objectives():
    return [Cubed]
"""


@pytest.fixture(scope="module")
def result():
    return search(load_problem("mm1", "edge"), 300)


def test_a_problem_evaluates_as_before(result):
    problem = result.found.problem
    again = pickle.loads(pickle.dumps(problem))
    genomes = problem.space.sample(500, np.random.default_rng(0))
    assert np.array_equal(evaluate(again, genomes).energy_pj, evaluate(problem, genomes).energy_pj)
    assert (again.title, again.bound, again.files) == (problem.title, problem.bound, problem.files)
    assert pickle.loads(pickle.dumps(problem.space)).names == problem.space.names


def test_a_problem_on_another_chip_and_one_in_a_scenario_stay_there():
    problem = load_problem("mm1", "edge")
    half = problem.variant(workload=problem.workload.with_densities({"P": 0.5}))
    other = problem.on(pickle.loads(pickle.dumps(problem.chip)))
    found = pickle.loads(pickle.dumps([half, other]))
    assert found[0].tensors[0].density == half.tensors[0].density and found[0].space.problem is not found[0]
    assert found[1].given_chip is not None and found[1].chip.digest == problem.chip.digest


def test_a_result_and_its_design_are_the_same(result, tmp_path):
    again = pickle.loads(pickle.dumps(result))
    assert repr(again) == repr(result)
    assert again.found.text() == result.found.text()
    assert pickle.loads(pickle.dumps(result.found.design)).loops == result.found.design.loops
    result.write(tmp_path)
    read = design_file.load(tmp_path, result.found.problem.registry)
    assert pickle.loads(pickle.dumps(read)).loops == result.found.design.loops


def test_another_process_finds_the_plugins_of_a_folder(tmp_path):
    (tmp_path / "cubed").mkdir()
    (tmp_path / "cubed" / "__init__.py").write_text(PLUGIN, "utf-8")
    found = search(load_problem("mm1", "edge", objective="cubed", plugin_dirs=[tmp_path]), 100)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).found.score)"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(found), capture_output=True, check=True)
    assert float(done.stdout) == found.found.score


def test_a_registry_that_was_filled_by_hand_says_why_it_cannot_go():
    with pytest.raises(PluginError, match="filled by hand cannot be pickled"):
        pickle.dumps(toy_problem())
