"""Structured and n-of-m densities (section 5.2)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparsemap_plugins.densities.structured import NOfM, Structured


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_splits_the_expected_occupancy(tile, density):
    occupancy = Structured(density=density).occupancy((2000, 1000))
    k, p = occupancy.distribution((tile,))
    assert 1 <= len(k) <= 2 and np.all(p > 0) and p.sum() == pytest.approx(1, abs=1e-15)
    assert p @ k == pytest.approx(tile * density, rel=1e-12)
    assert occupancy.largest((tile,)) == k[-1]
    assert occupancy.empty((tile,)) == (p[0] if k[0] == 0 else 0)
    assert occupancy.largest_many([(tile,)]) == [occupancy.largest((tile,))]


def test_two_of_four():
    occupancy = NOfM(n=2, m=4).occupancy((8, 8))
    assert occupancy.density == 0.5
    assert occupancy.distribution((2, 4))[0].tolist() == [4]
    assert occupancy.empty((1, 1)) == 0.5 and occupancy.empty((1, 2)) == 0
    assert occupancy.empty_within((1, 1), (2, 4), np.array([0, 4, 8])).tolist() == [1, 0.5, 0]
    drawn = occupancy.draw(np.random.default_rng(0))
    assert np.all(drawn.reshape(8, 2, 4).sum(axis=-1) == 2)


def test_dense():
    occupancy = Structured().occupancy((3, 5))
    assert occupancy.density == 1 and occupancy.empty((1, 1)) == 0 and occupancy.largest((3, 5)) == 15
    assert occupancy.draw(np.random.default_rng(0)).all()


def test_n_of_m_is_exact_where_doubles_are_not():
    assert NOfM(n=1, m=49).occupancy((49,)).distribution((49,))[0].tolist() == [1]
    assert Structured(density=1 / 49).occupancy((49,)).distribution((49,))[0].tolist() == [0, 1]


def test_smallest_as_timeloop_has_it():
    occupancy = NOfM(n=1, m=49).occupancy((49,))
    assert occupancy.distribution((49,))[0].tolist() == [1] and occupancy.timeloop_smallest((49,)) == 0


def test_draw_splits_fractions():
    occupancy = Structured(density=0.3).occupancy((400, 7))
    drawn = occupancy.draw(np.random.default_rng(0))
    assert set(drawn.sum(axis=1)) == {2, 3} and drawn.mean() == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("make", [lambda: Structured(density=1.5), lambda: NOfM(n=5, m=4), lambda: NOfM(n=1, m=0)])
def test_errors(make):
    with pytest.raises(ValueError):
        make()
