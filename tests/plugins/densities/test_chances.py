"""Hypergeometric probabilities in C are those of NumPy, to the last bit."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sparsemap_plugins.densities import band_sums, hypergeometric
from sparsemap_plugins.densities.crisp import Crisp
from test_native import COMPILER, built

SOURCE = Path(hypergeometric.__file__).with_name("chances.c")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler")
    return built(SOURCE.read_text(), tmp_path_factory.mktemp("chances"), "chances")


def found(compiled, seed: int) -> bytes:
    """Probabilities of random numbers of many sizes, by these loops or NumPy."""
    rng = np.random.default_rng(seed)
    total = np.exp(rng.uniform(0.0, np.log(10.0 ** (1 + seed % 12)), 300)).astype(np.int64) + 1
    marked, taken = ((total * rng.random(300) ** rng.integers(1, 6)).astype(np.int64) for _ in range(2))
    count = np.minimum(rng.integers(0, 40, 300), total - taken + 1)
    few, part = np.minimum(marked, 3000).astype(np.float64), np.minimum(taken + rng.random(300), total)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hypergeometric, "COMPILED", compiled)
        parts = [
            hypergeometric.none_many(total, marked, taken), hypergeometric.none_runs(total, marked, taken, count),
            hypergeometric.none_real(total.astype(np.float64), few, part), hypergeometric.none_many(500, 20, taken),
        ]  # fmt: skip
    return b"".join(part.tobytes() for part in parts)


def held(compiled, seed: int) -> bytes:
    """What tiles of `crisp` densities of random sizes hold and how often their sub-tiles are empty, by these loops or NumPy."""
    rng = np.random.default_rng(seed)
    m, columns, rows = int(rng.choice([2, 4, 8])), int(rng.integers(40, 700)), int(rng.choice([32, 96]))
    width = m * int(rng.integers(1, 9))
    model = Crisp(n=int(rng.integers(1, m + 1)), m=m, block=(int(rng.choice([4, 16, 64])), width), block_density=0.4)
    tile = np.array([rng.integers(1, rows + 1), rng.integers(1, columns + 1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hypergeometric, "COMPILED", compiled)
        occupancy = model.occupancy((rows, columns))
        k, p = occupancy.distribution(tuple(tile.tolist()))
        subs = [tuple(rng.integers(1, tile + 1).tolist()) for _ in range(4)]
        largest = np.array([occupancy.largest(tuple(tile.tolist()))])
        parts = [k, p, *(occupancy.empty_within(sub, tuple(tile.tolist()), x) for sub in subs for x in (k, largest))]
    return b"".join(part.tobytes() for part in parts)


def fullest(compiled, seed: int) -> bytes:
    """The share of empty sub-tiles in the fullest tiles, of random logarithms and of as many as NumPy sums in several ways."""
    rng, found = np.random.default_rng(seed), []
    for strips in (1, 5, 8, 23, 128, 129, 300, 1000):

        def chances(count: int, strips: int = strips) -> list[tuple[int, np.ndarray]]:
            return [(int(rng.integers(1, 9)), -rng.exponential(3.0, strips)) for _ in range(count)]

        bands = [(rng.normal(0.0, 4.0, strips), chances(i), chances(2 - i)) for i in range(1 + seed % 3)]
        bands[0][0][rng.random(strips) < 0.2] = -np.inf
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hypergeometric, "COMPILED", compiled)
            found.append(band_sums.fullest(bands))
    return repr(found).encode()


@pytest.mark.parametrize("seed", range(24))
def test_probabilities_are_the_same_to_the_last_bit(seed, compiled):
    assert found(compiled, seed) == found(None, seed)


@pytest.mark.parametrize("seed", range(40))
def test_sums_of_bands_are_the_same_to_the_last_bit(seed, compiled):
    assert held(compiled, seed) == held(None, seed)
    assert fullest(compiled, seed) == fullest(None, seed)


def test_bands_are_known_or_asked_for_in_the_same_way(compiled, monkeypatch):
    """Cut groups by their rows, whole ones by one; without the sub-tile where it makes no difference."""
    shares = [(1, "a", 0.5, True, False), (0, "b", 0.25, False, False), (2, "c", 0.125, True, True)]
    asked: list[tuple] = []
    for module in (compiled, None):
        monkeypatch.setattr(hypergeometric, "COMPILED", module)
        known = {("_joined", ("b", 1, 4)): "known"}
        found = band_sums.gathered(shares, 6, 4, known, lambda *one: asked.append(one) or one)
        assert found == [(("a", 6, 4), 1, 1, 0.5), ("known", 6, 0, 0.25), (("c", 6, 0), 1, 2, 0.125)]
        with pytest.raises(ZeroDivisionError):
            band_sums.gathered(shares, 6, 4, {}, lambda *one: 1 / 0)
    assert asked == 2 * [("a", 6, 4), ("c", 6, 0)]


def test_what_is_not_known_is_left_to_numpy(compiled):
    whole, real, out = np.arange(1, 4), np.arange(1.0, 4.0), np.empty(3)
    loops = np.exp, np.log1p
    assert compiled.many(whole, whole, whole, loops, out) == 3
    assert compiled.many(whole - 1, whole, whole, loops, out) is None
    assert compiled.many(whole, -whole, whole, loops, out) is None
    assert compiled.many(whole, whole, whole + (1 << 62), loops, out) is None
    assert compiled.many(whole, whole, real, loops, out) is None
    assert compiled.many(whole, whole, whole[:2], loops, out) is None
    assert compiled.many(whole, whole, whole, (np.exp,), out) is None
    assert compiled.real(real, real, real, loops, out[:2]) is None
    assert compiled.runs(whole, whole, whole, np.array([1, 1, 2]), loops, out) is None
    assert compiled.runs(whole, whole, whole, np.array([1, -1, 1]), loops, out) is None
    assert compiled.runs(whole, whole, whole, np.array([1, 0, 1]), loops, out) is None
    places, band = np.zeros((2, 8)), ((whole, real), 2, 1, 0.5)
    assert compiled.placed([band], 1, places) == 2
    assert places.tolist() == [[0.0] * 8, [0.0, 0.0, 0.5, 0.0, 1.0, 0.0, 1.5, 0.0]]
    for wrong in (((whole, real[:2]), 2, 1, 0.5), ((-whole, real), 2, 1, 0.5), ((whole, real), 2, 2, 0.5)):
        assert compiled.placed([band, wrong], 1, places) is None
        assert not places.any()
    assert compiled.placed([band], 0, places) is compiled.placed([band], 1, np.zeros((2, 6))) is None
    drawn = hypergeometric.table(9, 4, 3)
    assert np.frombuffer(compiled.joined([(3, 5, np.ones(4), None)], 9, 4, 1.0, lambda *_: drawn)).argmax() == 5
    for wrong in ((3, 5, np.ones(3), None), (3, 5, None, None), (3, 5, None, [band[0]])):
        assert compiled.joined([wrong], 9, 4, 1.0, lambda *_: drawn) is None
    assert compiled.joined([], 9, 4, 1.0, lambda *_: drawn) is None
    assert compiled.gathered((), 1, 1, {}, len) is compiled.gathered([], 1, 1, [], len) is None
    assert compiled.fullest([(real, [(2, real)], [])], loops) == 1.0
    assert np.isnan(compiled.fullest([(np.full(3, -np.inf), [], [])], loops))
    for strips in (real[:2], real[::2], whole, real.astype(">f8"), real.astype("f4")):
        assert compiled.fullest([(real, [(2, strips)], [])], loops) is None
    assert compiled.fullest([], loops) is compiled.fullest([(real, [], [])], ()) is None
    with pytest.raises(ZeroDivisionError):
        compiled.joined([(3, 5, np.ones(4), None)], 9, 4, 1.0, lambda *_: 1 / 0)


MUTANTS = [
    ("few + many <= total - 256", "few + many <= total - 2560"),
    ("31 * third / 40320", "30 * third / 40320"),
    (">= -800.0", ">= -8.0"),
    ("room >= 64.0", "room >= 640.0"),
    ("(Long)(left > 0 ? left : 0) / (Long)(of", "(double)(left > 0 ? left : 0) / (double)(of"),
    ("return 1 + (1 - u) * log1pl(-u) / u;", "return 1 + (1 - u) * log1p(-u) / u;"),
    ("to_next[(place + 1) & (size - 1)] += p * part", "to_next[(place + 1) & (size - 1)] += p - p * (1.0 - part)"),
    ("from->p[i] * (draw.p[j] * of[draw.x[j]])", "from->p[i] * draw.p[j] * of[draw.x[j]]"),
    ("(from->parts == 1 || merged(from, dense))", "from->parts"),
    ("first->p[i] * chance * second->p[j]", "first->p[i] * (chance * second->p[j])"),
    ("if (n > 128)", "if (n > 256)"),
    ("n / 2 - n / 2 % 8", "n / 2"),
    ("((eight[0] + eight[1]) + (eight[2] + eight[3]))", "(((eight[0] + eight[1]) + eight[2]) + eight[3])"),
    ("whole[i] > top ? whole[i] : top", "whole[0]"),
    ("fits = fits && add_times(inside, whole + n + at, m)", "fits = fits && add_times(inside, whole + at, m)"),
    ("partial ? args[1] : one, certain", "args[1], certain"),
    ("certain ? none : args[2]", "args[2]"),
    ("partial ? one : args[1], at", "args[1], at"),
]


@cache
def by_numpy(some, seed: int) -> bytes:
    return some(None, seed)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_an_error_in_the_loops_is_noticed(number, tmp_path):
    (before, after), text = MUTANTS[number], SOURCE.read_text()
    assert text.count(before) == 1
    compiled = built(text.replace(before, after), tmp_path, "chances")
    assert any(some(compiled, seed) != by_numpy(some, seed) for some in (found, held, fullest) for seed in range(12))
