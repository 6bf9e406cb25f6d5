"""The game of editing designs, and its gymnasium environment."""

import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
from sparsemap_plugins.searchers.baselines.edits import DECADES, Edits
from toy_problem import toy_problem

import sparsemap

MODULE = "sparsemap_plugins.searchers.baselines.environment"
ID = f"{MODULE}:SparseMap/Design-v0"


@pytest.fixture
def edits():
    return Edits(sparsemap.load_problem("conv4", "edge").space)


def test_an_action_edits_one_gene_and_every_value_can_be_reached(edits):
    space, rng = edits.space, np.random.default_rng(0)
    genomes = space.sample(edits.actions, rng)
    edited = edits.apply(genomes, np.arange(edits.actions))
    assert ((genomes != edited).sum(axis=1) <= 1).all()
    assert (space.check(edited) == edited).all()
    gene, amount, step = edits.table
    small = ~step
    assert (edited[small, gene[small]] == space.low[gene[small]] + amount[small]).all()
    assert set(gene[step]) == set(np.flatnonzero(space.high - space.low + 1 > 24))  # the 720 orders of six loops
    assert {-1, 1} <= set(amount[step])


def test_merits_are_orders_of_magnitude_against_the_first_valid_design(edits):
    assert edits.merits(np.array([np.inf, 1e9, 1e7, 1e12, 1e30])).tolist() == [-DECADES, 0, 2, -3, -DECADES]
    assert edits.merits(np.array([1e8])).tolist() == [1]


def test_observations_are_genes_and_merit_between_zero_and_one(edits):
    space = edits.space
    seen = edits.observe(np.stack([space.low, space.high]), np.array([-DECADES, DECADES]))
    assert seen.dtype == np.float32
    assert (seen[0] == 0).all()
    assert (seen[1] == 1).all()


@pytest.mark.parametrize("mode", ["edit", "whole"])
def test_the_environment_passes_gymnasiums_own_check(mode):
    gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium of the extra 'baselines'")
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make(ID, problem=toy_problem(), mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_a_step_tells_score_reasons_and_the_gain_in_merit():
    pytest.importorskip("gymnasium", reason="needs gymnasium of the extra 'baselines'")
    env = import_module(MODULE).DesignEnv(toy_problem(), steps=3, reference=1e4)
    start = np.array([1, 1, 1, 1, 1, 1, 1, 1])
    _, info = env.reset(seed=1, options={"genome": start})
    assert info["score"] == 10.0
    action = next(a for a in range(env.action_space.n) if env.action_name(a) == "order.b = 6")
    _, reward, terminated, truncated, info = env.step(action)
    assert info["score"] == pytest.approx(5010.0)
    assert reward == pytest.approx(np.log10(10.0 / 5010.0))
    assert (terminated, truncated, info["valid"]) == (False, False, True)
    env.step(action)
    *_, truncated, info = env.step(next(a for a in range(env.action_space.n) if env.action_name(a) == "order.a = 6"))
    assert truncated
    assert info["reasons"] == ("capacity:GLB", "fanout:L2")
    assert info["score"] == np.inf


def test_the_environment_can_be_made_by_its_id():
    gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium of the extra 'baselines'")
    env = gymnasium.make(ID, problem=toy_problem(), mode="whole")
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    _, _, terminated, _, info = env.step(np.zeros(8, int))
    assert terminated
    assert info["score"] == 10.0


def test_an_unknown_mode_is_told():
    pytest.importorskip("gymnasium", reason="needs gymnasium of the extra 'baselines'")
    with pytest.raises(sparsemap.SearchError, match="expected one of edit, whole"):
        import_module(MODULE).DesignEnv(toy_problem(), mode="gene")


def test_without_gymnasium_the_line_to_type_is_told(monkeypatch):
    def absent(module):
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    monkeypatch.setattr("sparsemap.errors.import_module", absent)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(sparsemap.SearchError, match=r"needs the package 'gymnasium'.*pip install .*\[baselines\]"):
        import_module(MODULE).DesignEnv(toy_problem())
