"""How parents become children is the same in C and in NumPy, and draws the same random numbers."""

import numpy as np
import pytest
from sparsemap_plugins.searchers import plain_breeding
from sparsemap_plugins.searchers.genes import breeding

pytestmark = pytest.mark.skipif(breeding is None, reason="not compiled")


def streams():
    return np.random.default_rng(5), np.random.default_rng(5)


@pytest.mark.parametrize(("mutations", "count"), [(1, 1), (4, 72), (7, 0), (3, 500)])
def test_how_often_each_genome_mutates(mutations, count):
    own, other = streams()
    ends = np.linspace(0.0, 1.0, mutations + 1)[1:]
    times, first = np.zeros((mutations, count), dtype=np.int64), np.empty(count, dtype=np.int64)
    assert breeding.times(times, first, ends, 0.45, own) == count
    expected = plain_breeding.times(ends, 0.45, count, other)
    assert np.array_equal(times, expected[0]) and np.array_equal(first, expected[1])
    assert own.random() == other.random() and (count < 70 or times.max() > 1)


@pytest.mark.parametrize("ends", [[9], [2, 2, 5, 9], [0, 9]])
def test_children_of_pairs(ends):
    own, other = streams()
    pairs = own.integers(0, 50, size=(60, 2, 9))
    other.integers(0, 50, size=(60, 2, 9))
    children = np.empty((60, 9), dtype=np.int64)
    assert breeding.cross(children, pairs, np.array(ends), own) == 60
    assert np.array_equal(children, plain_breeding.cross(pairs, np.array(ends), other))
    assert own.random() == other.random()


@pytest.mark.parametrize(("known", "greed"), [(1, 3.0), (64, 3.0), (33, 4.5)])
def test_pairs_of_parents(known, greed):
    own, other = streams()
    genomes, pairs = np.arange(known * 6).reshape(known, 6), np.empty((80, 2, 6), dtype=np.int64)
    assert breeding.pick(pairs, genomes, greed, np.power, own) == 80
    assert np.array_equal(pairs, plain_breeding.pick(genomes, 80, greed, other)) and own.random() == other.random()


def test_what_does_not_fit_together_is_left_to_numpy_and_draws_nothing():
    rng, some = np.random.default_rng(0), np.zeros((4, 6), dtype=np.int64)
    state, one, pairs, ends = (
        rng.bit_generator.state,
        np.zeros(6, dtype=np.int64),
        np.zeros((4, 2, 6), np.int64),
        np.ones(4),
    )
    for found in (
        breeding.times(some, one[1:], ends, 0.45, rng), breeding.times(some, one, ends[1:], 0.45, rng),
        breeding.times(some, one, 0.9 * ends, 0.45, rng), breeding.times(some, one, ends, 1.0, rng),
        breeding.times(some, one, ends, "x", rng), breeding.times(some, one, ends, 0.45, None), breeding.times(),
        breeding.cross(some, pairs[1:], np.array([6]), rng), breeding.cross(some, pairs, np.array([5]), rng),
        breeding.cross(some, pairs, np.zeros(0, np.int64), rng), breeding.cross(some, pairs, np.array([6]), rng.bit_generator),
        breeding.pick(pairs, some[:0], 3.0, np.power, rng), breeding.pick(pairs, some, 2.0, np.power, rng),
        breeding.pick(pairs, some[:, 1:], 3.0, np.power, rng), breeding.pick(pairs, some, 3.0, np.exp, rng),
        breeding.pick(pairs, some.astype(float), 3.0, np.power, rng), breeding.pick(pairs, some, None, np.power, rng),
    ):  # fmt: skip
        assert found is None
    assert rng.bit_generator.state == state
