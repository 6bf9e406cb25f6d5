"""The game of editing designs."""

import numpy as np
import pytest
from sparsemap_plugins.searchers.baselines.edits import DECADES, Edits

import sparsemap


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
