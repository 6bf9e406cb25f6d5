"""Which genomes promise most, by a Gaussian process of those tried."""

from __future__ import annotations

import numpy as np
from sparsemap_plugins.searchers.screening import screened

from sparsemap import load_problem
from sparsemap.pieces.contracts import Scored


def test_of_many_genomes_those_are_chosen_that_lie_where_scores_are_low():
    """A bowl over ordered genes, of which 60 genomes are known."""
    space = load_problem("mm1", "edge", "paper").space
    rng, middle = np.random.default_rng(0), (space.low + space.high) / 2
    span = np.maximum(space.high - space.low, 1)

    def score(genomes):
        return np.exp((((genomes - middle) / span) ** 2).sum(axis=1))

    known, new = space.sample(60, rng), space.sample(200, rng)
    rows = screened(space, Scored(known, score(known)), new, 10)
    assert len(set(rows.tolist())) == 10
    assert score(new[rows]).mean() < score(new).mean() - score(new).std() / 2


def test_one_batch_does_not_try_one_thing_alone():
    """Of three genomes that are there five times, each is chosen once."""
    space = load_problem("mm1", "edge", "paper").space
    rng = np.random.default_rng(0)
    known, few = space.sample(10, rng), np.repeat(space.sample(3, rng), 5, axis=0)
    rows = screened(space, Scored(known, np.full(10, 2.0)), few, 3)
    assert len(np.unique(few[rows], axis=0)) == 3


def test_without_anything_known_the_first_are_chosen():
    space = load_problem("mm1", "edge", "paper").space
    nothing = Scored(space.sample(3, np.random.default_rng(0)), np.full(3, np.inf))
    assert screened(space, nothing, space.sample(9, np.random.default_rng(1)), 4).tolist() == [0, 1, 2, 3]
