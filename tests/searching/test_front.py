"""Dominance, crowding and the bounded front, against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparsemap.searching.front import Front, crowding, non_dominated

VALUES = st.tuples(st.integers(0, 30), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 8.0, np.inf]))
)


def dominates(a, b):
    return bool((a <= b).all() and (a < b).any())


def beaten(values, row):
    """The definition, one pair at a time; what is not finite is beaten by being invalid."""
    return not np.isfinite(values[row]).all() or any(
        dominates(other, values[row]) for other in values if np.isfinite(other).all()
    )


# --------------------------------------------------------------------------------------------------------- dominance


@given(VALUES)
def test_non_dominated_rows_are_those_that_no_other_row_beats(values):
    assert non_dominated(values).tolist() == [not beaten(values, row) for row in range(len(values))]


@given(VALUES, st.randoms(use_true_random=False))
def test_dominance_does_not_depend_on_the_order_of_rows_or_objectives(values, random):
    rows, columns = list(range(len(values))), list(range(values.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    assert (non_dominated(values)[rows] == non_dominated(values[rows][:, columns])).all()


# ----------------------------------------------------------------------------------------------------------- crowding


def test_crowding_is_the_gap_between_the_neighbours_relative_to_the_range():
    values = np.array([[0.0, 10.0], [1.0, 4.0], [4.0, 2.0], [10.0, 0.0]])
    expected = [math.inf, 4 / 10 + 8 / 10, 9 / 10 + 4 / 10, math.inf]
    assert crowding(values) == pytest.approx(expected)


def test_crowding_of_positive_values_is_measured_on_a_logarithmic_scale():
    values = np.array([[1.0, 1000.0], [10.0, 100.0], [1000.0, 1.0]])
    assert crowding(values) == pytest.approx([math.inf, 2.0, math.inf])
    assert crowding(values * 7e9) == pytest.approx(crowding(values))


def test_crowding_of_equal_rows_is_nothing():
    assert crowding(np.ones((4, 2))).tolist() == [0, 0, 0, 0]
    assert crowding(np.zeros((0, 2))).tolist() == []


# ------------------------------------------------------------------------------------------------------------- front


def filled(values, limit=1000, sizes=(7, 1, 20)):
    """A front that heard of the rows in batches of these sizes; genomes number the rows."""
    front, start, turn = Front(limit), 0, 0
    genomes = np.arange(len(values))[:, None]
    while start < len(values):
        part = slice(start, start + sizes[turn % len(sizes)])
        front.add(genomes[part], values[part], values[part].prod(axis=1, keepdims=True))
        start, turn = part.stop, turn + 1
    return front


@given(arrays(np.float64, st.tuples(st.integers(1, 60), st.just(2)), elements=st.integers(1, 9).map(float)))
def test_a_front_does_not_depend_on_how_the_designs_arrive(values):
    front, at_once = filled(values), filled(values, sizes=(1000,))
    assert front.values.tolist() == np.unique(values[non_dominated(values)], axis=0).tolist()
    assert front.genomes.tolist() == at_once.genomes.tolist()
    for genome, row in zip(front.genomes, front.values, strict=True):
        assert genome[0] == np.flatnonzero((values == row).all(axis=1))[0]  # of equal designs the first


def test_a_full_front_keeps_its_ends_and_the_best_score_and_spreads_the_rest():
    x = np.geomspace(1, 1e6, 5000)
    values = np.stack([x, 2e6 / x + 3 * x], axis=1)
    front = filled(values, limit=50, sizes=(301,))
    optimal = values[non_dominated(values)]
    assert len(front) == 50
    assert non_dominated(front.values).all()
    assert front.values[0].tolist() == optimal[np.argmin(optimal[:, 0])].tolist()
    assert front.values[-1].tolist() == optimal[np.argmin(optimal[:, 1])].tolist()
    assert values.prod(axis=1).min() == front.numbers[:, 0].min()
    gaps = np.diff(np.log(front.values[:, 0]))
    assert gaps.max() < 8 * np.median(gaps)


def test_add_counts_the_designs_of_the_batch_that_are_on_the_front():
    front = Front()
    rows = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 3.0], [np.inf, np.inf]])
    genomes, scores = np.arange(4)[:, None], rows.prod(axis=1, keepdims=True)
    assert front.add(genomes, rows, scores) == 2
    assert front.add(genomes, rows, scores) == 0
    assert front.add(genomes[:1], np.array([[0.5, 0.5]]), scores[:1]) == 1
    assert front.values.tolist() == [[0.5, 0.5]]


def test_an_empty_front_has_no_genomes():
    front = Front()
    assert front.add(np.zeros((2, 3), np.int64), np.full((2, 2), np.inf), np.zeros((2, 1))) == 0
    assert front.genomes is None
    assert len(front) == 0
