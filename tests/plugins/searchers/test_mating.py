"""How often parents mutate, whom they mate with, and what their children take from either."""

import numpy as np
import pytest
from sparsemap_plugins.searchers import mating


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_each_genome_mutates_once_and_some_again(rng):
    times, first = mating.times(np.array([0.25, 0.25, 1.0]), 0.45, 20_000, rng)
    assert times.sum(axis=0).min() == 1 and np.all(times[first, np.arange(20_000)] >= 1)
    assert times.mean(axis=1).tolist() == pytest.approx([0.25 / 0.55, 0.0, 0.75 / 0.55], rel=0.03, abs=1e-12)


def test_no_genome_mutates_where_there_is_none(rng):
    times, first = mating.times(np.array([1.0]), 0.45, 0, rng)
    assert times.shape == (1, 0) and first.shape == (0,)


@pytest.mark.parametrize("ends", [[9], [2, 2, 5, 9], [0, 9]])
def test_half_of_the_children_take_whole_segments(ends, rng):
    pairs = np.stack([np.zeros((4_000, 9), np.int64), np.ones((4_000, 9), np.int64)], axis=1)
    children = mating.cross(pairs, np.array(ends), rng)
    parts = [part for part in np.split(children, ends[:-1], axis=1) if part.shape[1]]
    whole = np.mean(np.all([(part == part[:, :1]).all(axis=1) for part in parts], axis=0))
    by_chance = 0.5 ** (9 - len(parts))
    assert whole == pytest.approx(0.5 + 0.5 * by_chance, abs=0.03)
    assert children.mean(axis=0) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("known", "greed"), [(1, 3.0), (64, 3.0), (33, 4.5)])
def test_better_parents_mate_more_often(known, greed, rng):
    genomes = np.arange(known)[:, None]
    pairs = mating.pick(genomes, 20_000, greed, rng)
    assert pairs.shape == (20_000, 2, 1) and pairs.max() == known - 1
    assert np.mean(pairs == 0) == pytest.approx(known ** (-1.0 / greed), abs=0.01)


def test_the_largest_number_drawn_is_a_parent_as_well():
    assert mating.places(10**9, np.array([0.0, 1.0 - 2.0**-53]), 1e-3).tolist() == [0, 10**9 - 1]
