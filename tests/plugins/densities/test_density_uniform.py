"""Uniform density against exact rational arithmetic, and against SciPy where that is too slow."""

import math
from fractions import Fraction

import numpy as np
import pytest
from calls import at_most
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.densities import hypergeometric
from sparsemap_plugins.densities.structured import Structured
from sparsemap_plugins.densities.uniform import Uniform


def ulps(found, exact):
    exact = np.asarray(exact, float)
    return np.max(np.abs(np.asarray(found) - exact) / np.spacing(np.maximum(exact, 1e-300)), initial=0)


def share(part: int, whole: int) -> float:
    return float(Fraction(part, whole))


@st.composite
def tiles(draw, largest=300):
    """(words, density, tile, sub-tile)"""
    words = draw(st.integers(1, largest))
    tile = draw(st.integers(1, words))
    return words, draw(st.floats(0, 1)), tile, draw(st.integers(1, tile))


@given(tiles())
@settings(max_examples=300)
def test_correctly_rounded(case):
    words, density, tile, sub = case
    occupancy = Uniform(density=density).occupancy((words,))
    r = occupancy.nonzeros
    assert r == min(math.ceil(density * words), words)
    k, p = occupancy.distribution((tile,))
    exact = [share(math.comb(r, i) * math.comb(words - r, tile - i), math.comb(words, tile)) for i in k.tolist()]
    assert ulps(p, exact) <= 1
    assert np.all(p > 0) and abs(p.sum() - 1) < 1e-14
    assert ulps(occupancy.empty((tile,)), share(math.comb(words - r, tile), math.comb(words, tile))) <= 1
    within = occupancy.empty_within((sub,), (tile,), k)
    exact = [share(math.comb(tile - i, sub), math.comb(tile, sub)) for i in k.tolist()]
    assert ulps(within, exact) <= 1
    assert within @ p == pytest.approx(occupancy.empty((sub,)), rel=1e-13, abs=1e-300)
    assert p @ k == pytest.approx(tile * r / words, rel=1e-13)
    assert occupancy.largest((tile,)) == min(tile, r) == occupancy.largest_many([(tile,)])[0]
    assert len(k) > 200 or (k[0], k[-1]) == (max(0, tile + r - words), occupancy.largest((tile,))) or p.min() > 0


def test_worked_example():
    """Section 12.2: P[4,8] with density 0.25, tiles of the PE buffer and of the GLB."""
    occupancy = Uniform(density=0.25).occupancy((4, 8))
    assert occupancy.density == 0.25
    assert occupancy.empty((2, 4)) == share(math.comb(24, 8), math.comb(32, 8)) == pytest.approx(0.0699230, abs=5e-8)
    k, p = occupancy.distribution((2, 4))
    sent = p[1:] / (1 - p[0])
    assert sent @ k[1:] / 8 == pytest.approx(0.268795, abs=5e-7)
    assert occupancy.empty((2, 8)) == pytest.approx(0.0012236, abs=5e-8)
    fibers = 2 * (1 - occupancy.empty_within((1, 4), (2, 4), k[1:]))
    coords = np.ceil(4 * (1 - occupancy.empty_within((1, 1), (2, 4), k[1:])))
    assert sent @ (fibers * coords) == pytest.approx(2.166310, abs=5e-7)


@pytest.mark.parametrize("words", [1, 2, 7, 4096, 2**62])
def test_edges_of_density(words):
    none, all_ = (Uniform(density=d).occupancy((words,)) for d in (0.0, 1.0))
    for tile in {1, (words + 1) // 2, words}:
        assert [x.tolist() for x in none.distribution((tile,))] == [[0], [1.0]]
        assert [x.tolist() for x in all_.distribution((tile,))] == [[tile], [1.0]]
        assert (none.empty((tile,)), all_.empty((tile,))) == (1.0, 0.0)
        assert (none.largest((tile,)), all_.largest((tile,))) == (0, tile)
    k, p = Uniform(density=0.3).occupancy((words,)).distribution((words,))
    assert len(k) == 1 and p[0] == 1.0


def test_very_sparse():
    occupancy = Uniform(density=1e-9).occupancy((1000, 1000))
    assert occupancy.nonzeros == 1
    assert occupancy.empty((1, 1000)) == 0.999
    k, p = occupancy.distribution((1, 1000))
    assert k.tolist() == [0, 1] and p == pytest.approx([0.999, 0.001], rel=1e-15)


@pytest.mark.parametrize("density", [-0.1, 1.0001, math.nan, math.inf])
def test_density_must_be_a_share(density):
    with pytest.raises(ValueError):
        Uniform(density=density)


def test_smallest_as_timeloop_has_it():
    occupancy = Uniform(density=0.75).occupancy((64,))
    assert occupancy.distribution((32,))[0][0] == 16 and occupancy.timeloop_smallest((32,)) == 0
    assert occupancy.distribution((16,))[0][0] == occupancy.timeloop_smallest((16,)) == 0
    assert occupancy.timeloop_smallest((64,)) == 48
    full = Uniform(density=1.0).occupancy((49,))
    assert full.timeloop_smallest((49,)) == 49
    assert Uniform(density=0.02).occupancy((49,)).timeloop_smallest((49,)) == 0  # floor(1 / 49 * 49)
    sizes = [Uniform(density=0.9).occupancy((1000,)).timeloop_smallest((n,)) for n in range(101, 1000)]
    assert {size == 0 or size > 1e19 for size in sizes} == {True} and max(sizes) > 1e19


# ---------------------------------------------------------------------------------------------------------- large tiles


@pytest.mark.parametrize(
    ("words", "tile", "density"),
    [
        (10**6, 10**4, 0.1),
        (10**6, 999_000, 0.3),
        (10**7, 10**6, 0.25),
        (10**8, 5 * 10**6, 1e-4),
        (3 * 10**9, 10**8, 0.01),
    ],
)
def test_large_tiles_against_scipy(words, tile, density):
    stats = pytest.importorskip("scipy.stats")
    occupancy = Uniform(density=density).occupancy((words,))
    exact = stats.hypergeom(words, occupancy.nonzeros, tile)
    k, p = occupancy.distribution((tile,))
    step = int(k[1] - k[0])
    assert len(k) <= 70_000 and len(set(np.diff(k))) == 1
    likely = p > 1e-15
    # SciPy itself is no better for large sizes
    assert p[likely] / step == pytest.approx(exact.pmf(k[likely]), rel=1e-5)
    assert p @ k == pytest.approx(exact.mean(), rel=1e-14)
    assert p @ (k - exact.mean()) ** 2 == pytest.approx(exact.var(), rel=1e-12)
    for sub in (1, 2, 40, tile // 1000, tile // 3):
        within = occupancy.empty_within((sub,), (tile,), k)
        assert within @ p == pytest.approx(occupancy.empty((sub,)), rel=1e-11, abs=1e-23)


@pytest.mark.parametrize("words", [2**40, 2**62])
def test_huge_tiles_stay_small(words):
    occupancy = Uniform(density=0.5).occupancy((words,))
    k, p = occupancy.distribution((words // 2,))
    assert len(k) <= 70_000
    assert abs(p.sum() - 1) < 1e-14
    off = (k - words // 4).astype(float)
    assert p @ off / math.sqrt(words) == pytest.approx(0, abs=1e-9)
    assert p @ off**2 == pytest.approx(words / 16, rel=1e-9)
    assert occupancy.empty((words // 2,)) == 0
    assert occupancy.empty((40,)) == pytest.approx(0.5**40, rel=1e-9)


def test_scattered_occupancies_equal_consecutive_ones():
    occupancy = Uniform(density=0.2).occupancy((5000,))
    k = np.arange(1, 900)
    whole = occupancy.empty_within((30,), (1000,), k)
    picked = [3, 40, 41, 700, 898]
    assert ulps(occupancy.empty_within((30,), (1000,), k[picked].astype(float)), whole[picked]) <= 2
    assert occupancy.empty_within((30,), (1000,), np.zeros(0)).shape == (0,)
    assert occupancy.empty_within((1000,), (1000,), np.array([0, 1])).tolist() == [1, 0]


def test_double_precision_between_whole_numbers():
    rng = np.random.default_rng(6)
    total = (10 ** rng.uniform(2, 12, 5000)).astype(np.int64)
    marked = 1 + (total * rng.random(5000) ** 6).astype(np.int64)
    taken = np.minimum(total, 1 + (30 * total / marked * rng.random(5000)).astype(np.int64))
    exact = hypergeometric.none_many(total, marked, taken)
    found = hypergeometric.none_real(*(x.astype(float) for x in (total, marked, taken)))
    assert found == pytest.approx(exact, rel=1e-12, abs=5e-18)
    # (n-n')! (n-k)! / (n! (n-n'-k)!) with Gamma functions in place of factorials
    for n, sub, k in ((30, 4, 7.5), (2000, 12, 31.25), (100, 90, 2.5), (70, 1, 0.75)):
        log = sum(sign * math.lgamma(x + 1) for sign, x in ((1, n - sub), (1, n - k), (-1, n), (-1, n - sub - k)))
        found = hypergeometric.none_real(*(np.array([float(x)]) for x in (n, sub, k)))
        assert found[0] == pytest.approx(math.exp(log), rel=1e-10)


@pytest.mark.parametrize("model", [Uniform(density=0.2), Structured(density=0.3)])
def test_many_pairs_at_once(model):
    occupancy, rng = model.occupancy((4096,)), np.random.default_rng(7)
    tiles = 2 ** rng.integers(0, 12, (200, 1))
    subs = np.maximum(tiles // 2 ** rng.integers(0, 6, (200, 1)), 1)
    parts = [np.sort(rng.choice(int(t) + 1, min(int(t) + 1, rng.integers(0, 5)), replace=False)) for t in tiles[:, 0]]
    parts[::2] = [np.arange(int(t) // 4, int(t) // 2 + 1) for t in tiles[::2, 0]]
    counts = np.array([len(part) for part in parts])
    many = occupancy.empty_within_many(subs, tiles, np.concatenate(parts), counts)
    pairs = zip(subs.tolist(), tiles.tolist(), parts, strict=True)
    assert np.array_equal(many, np.concatenate([occupancy.empty_within(*pair) for pair in pairs]))


def test_a_large_tile_takes_as_many_calls_as_a_small_one_and_few_numbers():
    occupancy = Uniform(density=0.25).occupancy((10**7,))
    for tile in (16, 10**5):
        with at_most(2_000):
            k, _ = occupancy.distribution((tile,))
            for sub in (1, 4, tile // 4):
                occupancy.empty_within((sub,), (tile,), k)
        assert len(k) < 5000


def test_draw():
    occupancy = Uniform(density=0.3).occupancy((7, 11))
    drawn = occupancy.draw(np.random.default_rng(1))
    assert drawn.shape == (7, 11) and drawn.dtype == bool and drawn.sum() == occupancy.nonzeros
    counts = sum(occupancy.draw(np.random.default_rng(seed)) for seed in range(2000))
    assert np.abs(counts / 2000 - occupancy.density).max() < 0.06
