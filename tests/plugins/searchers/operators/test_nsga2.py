"""Ranks of non-dominated sorting, against their definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sparsemap_plugins.searchers.operators.selection import ranks

VALUES = st.tuples(st.integers(0, 30), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 8.0, np.inf]))
)


def dominates(a, b):
    return bool((a <= b).all() and (a < b).any())


@given(VALUES)
def test_a_rank_is_dominated_by_every_rank_before_it(values):
    found = ranks(values)
    for row in range(len(values)):
        if not np.isfinite(values[row]).all():
            assert found[row] == found.max()
            continue
        above = [other for other in range(len(values)) if dominates(values[other], values[row])]
        assert found[row] == max((found[other] + 1 for other in above), default=0)


@given(VALUES, st.integers(1, 30))
def test_ranks_may_stop_once_enough_rows_have_one(values, enough):
    full, some = ranks(values), ranks(values, enough)
    order = np.argsort(full, kind="stable")[:enough]
    finite = np.isfinite(values[order]).all(axis=1)
    assert (some[order][finite] == full[order][finite]).all()


def test_rows_that_are_not_finite_come_after_all_others_even_when_ranking_stops_early():
    values = np.array([[1.0, 1.0], [2.0, 2.0], [np.inf, 0.0], [3.0, np.nan]])
    assert ranks(values).tolist() == [0, 1, 2, 2]
    assert ranks(values, 1).tolist() == [0, 1, 2, 2]
    assert ranks(values[2:]).tolist() == [0, 0]
    assert ranks(np.zeros((0, 2))).tolist() == []
