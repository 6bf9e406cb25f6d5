"""Which genomes promise most, by a Gaussian process of those tried."""

from __future__ import annotations

import numpy as np
import pytest
from sparsemap_plugins.searchers.screening import improvement, ordered_of, screened, steps_of
from toy_problem import toy_problem

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


def test_what_genes_do_by_themselves_is_told_of_those_that_nobody_had_together():
    """Low scores have one of two genes at its end, never both; of what is left the genome with both comes first."""
    space = load_problem("mm1", "edge", "paper").space
    rng, (one, other) = np.random.default_rng(0), np.flatnonzero(space.high > space.low)[[0, -1]]

    def score(genomes):
        return np.exp(2.0 * (genomes[:, one] == space.high[one]) + 2.0 * (genomes[:, other] == space.high[other]))

    known, new = space.sample(120, rng), np.repeat(space.sample(1, rng), 4, axis=0)
    known[:, one], known[:, other] = (
        np.where(np.arange(120) % 3 == 0, space.low[one], space.high[one]),
        space.high[other],
    )
    known[1::3, other] = space.low[other]
    new[:, [one, other]] = [[b[one], a[other]] for a in (space.low, space.high) for b in (space.low, space.high)]
    assert screened(space, Scored(known, score(known)), new, 1).tolist() == [0]


def test_of_what_is_expected_to_be_alike_the_less_known_may_improve_more():
    """The mean of what a normal variable falls short of a score, held against sums over many draws."""
    better, spread = np.array([0.0, 0.0, -1.0, 2.0]), np.array([0.1, 1.0, 1.0, 0.5])
    draws = np.random.default_rng(0).standard_normal((200_000, 1))
    expected = np.maximum(better + spread * draws, 0.0).mean(axis=0)
    assert improvement(better, spread) == pytest.approx(expected, rel=0.02)


def test_one_batch_does_not_try_one_thing_alone():
    """Of three genomes that are there five times, each is chosen once."""
    space = load_problem("mm1", "edge", "paper").space
    rng = np.random.default_rng(0)
    known, few = space.sample(10, rng), np.repeat(space.sample(3, rng), 5, axis=0)
    rows = screened(space, Scored(known, np.full(10, 2.0)), few, 3)
    assert len(np.unique(few[rows], axis=0)) == 3


def test_steps_beside_a_genome_change_one_gene_with_an_order_and_those_least_known_come_first(monkeypatch):
    """All steps but the last one are known."""
    monkeypatch.setattr("toy_problem.HIGH", np.array([3, 3, 1, 1, 1, 1, 1, 1]))
    space = toy_problem().space
    ordered = ordered_of(space)
    genome = space.sample(1, np.random.default_rng(0))
    genome[:, ordered] = space.low[ordered]
    steps = steps_of(space, genome)
    changed = steps != genome
    assert changed[:, ordered].any(axis=1).all() and (changed.sum(axis=1) == 1).all()
    assert len(steps) == (space.high > space.low)[ordered].sum()
    known = np.concatenate([np.repeat(genome, 20, axis=0), np.repeat(steps[:-1], 5, axis=0)])
    scores = 1.0 + np.random.default_rng(1).random(len(known))
    assert screened(space, Scored(known, scores), steps, 1, unknown=True).tolist() == [len(steps) - 1]


def test_without_anything_known_the_first_are_chosen():
    space = load_problem("mm1", "edge", "paper").space
    nothing = Scored(space.sample(3, np.random.default_rng(0)), np.full(3, np.inf))
    assert screened(space, nothing, space.sample(9, np.random.default_rng(1)), 4).tolist() == [0, 1, 2, 3]
