"""Hypergeometric probabilities and sums of bands: against exact ones, and compiled as interpreted to the bit."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from sparsemap_plugins.densities import band_sums, hypergeometric, inner
from sparsemap_plugins.densities.crisp import Crisp

from sparsemap.inner import room


def numbers(seed: int, count: int = 300, largest: int = 12):
    rng = np.random.default_rng(seed)
    total = np.exp(rng.uniform(0.0, np.log(10.0 ** (1 + seed % largest)), count)).astype(np.int64) + 1
    return total, *((total * rng.random(count) ** rng.integers(1, 6)).astype(np.int64) for _ in range(2))


def exact(total: int, marked: int, taken: int) -> Fraction:
    return Fraction(comb(total - marked, taken), comb(total, taken))


def off(found: float, expected: Fraction) -> float:
    return float(abs(Fraction(found) / expected - 1))


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_are_exact_to_fifteen_digits(seed):
    given = numbers(seed, 100, 4)
    found = hypergeometric.none_many(*given)
    for one, *case in zip(found.tolist(), *(x.tolist() for x in given), strict=True):
        if (expected := exact(*case)) > Fraction(1, 10**20):
            assert off(one, expected) < 2.3e-16 and one == hypergeometric.none(*case)
        elif expected > Fraction(1, 10**290):
            assert off(one, expected) < 1e-13
        else:
            assert one < 1e-280


def test_nearly_all_probabilities_are_the_exact_ones_rounded_once():
    """As Timeloop's are: one unit in the last place puts `ceil` of a count on the other side."""
    rng, found = np.random.default_rng(7), []
    for _ in range(400):
        total = int(10 ** rng.uniform(1.5, 4.5))
        marked = max(1, int(total * 10 ** rng.uniform(-3.0, -0.05)))
        taken = max(1, min(int(0.9 * total), int(total / marked * 10 ** rng.uniform(-2.0, 1.6))))
        if marked + taken <= total:
            found.append(hypergeometric.none(total, marked, taken) == float(exact(total, marked, taken)))
    assert len(found) > 300 and sum(found) >= 0.995 * len(found)


def test_probabilities_of_large_totals_are_exact():
    """Logarithms of factorials by Stirling's series, 60 digits."""

    def log_factorial(n: int) -> Decimal:
        x = Decimal(n + 1)
        terms = (Decimal(1) / 12, -Decimal(1) / 360, Decimal(1) / 1260, -Decimal(1) / 1680)
        half = Decimal("0.918938533204672741780329736405617639861397473637783412817152")
        return (x - Decimal("0.5")) * x.ln() - x + half + sum(c / x ** (2 * i + 1) for i, c in enumerate(terms))

    for total, marked, taken in (
        (10**9, 10**7, 300),
        (10**12, 10**6, 10**6),
        (10**10, 10**9, 200),
        (2**40, 2**21, 2**20),
    ):
        with localcontext() as context:
            context.prec = 60
            ways = log_factorial(total - marked), log_factorial(total - taken)
            log = sum(ways) - log_factorial(total) - log_factorial(total - marked - taken)
            expected = Fraction(log.exp())
        assert off(hypergeometric.none(total, marked, taken), expected) < 4e-15


def test_runs_and_whole_arguments_of_real_ones_are_the_same_probabilities():
    total, marked, taken = numbers(5)
    marked = np.clip(marked, 2, total - 1)  # parts of tiles; single words and whole tiles have simple formulas
    count = np.minimum(np.arange(300) % 40, total - taken + 1)
    k = np.concatenate([start + np.arange(n) for start, n in zip(taken.tolist(), count.tolist(), strict=True)])
    runs = hypergeometric.none_within(marked, total, k, count)
    several = [np.repeat(x, count) for x in (total, marked, taken)]
    several[2] += np.concatenate([np.arange(n) for n in count])
    single = hypergeometric.none_many(*several)
    assert runs == pytest.approx(single, rel=1e-14, abs=1e-25)
    real = hypergeometric.none_real(*(x.astype(float) for x in several))
    assert real == pytest.approx(single, rel=1e-13, abs=5e-18)


@pytest.mark.parametrize(("total", "marked", "taken"), [(9, 4, 3), (300, 120, 77), (5000, 900, 2500), (40, 40, 7)])
def test_tables_are_exact(total, marked, taken):
    k, p = hypergeometric.table(total, marked, taken)
    for one, chance in zip(k.tolist(), p.tolist(), strict=True):
        expected = Fraction(comb(marked, one) * comb(total - marked, taken - one), comb(total, taken))
        assert expected < Fraction(1, 10**22) or off(chance, expected) < 2e-15


def test_a_band_holds_what_all_ways_to_keep_blocks_give(monkeypatch):
    """Three footprints in 2, 3 and 2 of 8 blocks, of which 4 are kept; one of the 8 holds nothing."""
    held = [
        (np.array([2 * n, 2 * n + 3]), np.array([0.25, 0.75])) if n else (np.zeros(1, np.int64), np.ones(1))
        for n in range(5)
    ]
    footprints = [(2, 5, np.array([1.0, 0.5, 0.25]), None), (3, 1, None, held), (2, 7, np.ones(3), None)]
    expected = np.zeros(60)
    for kept in itertools.combinations(range(8), 4):
        first, middle, last = (sum(place in part for place in kept) for part in ((0, 1), (2, 3, 4), (5, 6)))
        for x, p in zip(*held[middle], strict=True):
            expected[5 * first + x + 7 * last] += 0.5**first * p * 0.125 / comb(8, 4)
    monkeypatch.setattr(band_sums, "ROOM", 1)  # which is too short at first
    x, p = band_sums.joined(footprints, 8, 4, 0.125)
    assert x.tolist() == np.flatnonzero(expected).tolist() and p == pytest.approx(expected[x], rel=1e-14)
    assert len(band_sums.joined([], 8, 4, 0.0)[0]) == 0 and band_sums.joined([], 8, 4, 0.5)[1].tolist() == [0.5]


def test_bands_are_known_or_asked_for():
    """Cut groups by their rows, whole ones by one; without the sub-tile where it makes no difference."""
    shares = [(1, "a", 0.5, True, False), (0, "b", 0.25, False, False), (2, "c", 0.125, True, True)]
    asked, known = list[tuple](), {("_joined", ("b", 1, 4)): "known"}
    found = band_sums.gathered(shares, 6, 4, known, lambda *one: asked.append(one) or one)
    assert found == [(("a", 6, 4), 1, 1, 0.5), ("known", 6, 0, 0.25), (("c", 6, 0), 1, 2, 0.125)]
    assert asked == [("a", 6, 4), ("c", 6, 0)]


def test_what_bands_hold_is_placed_between_two_places():
    bands = [((np.arange(1, 4), np.arange(1.0, 4.0)), 2, 1, 0.5)]
    assert band_sums.placed(bands, 2, 8, 1).tolist() == [[0.0] * 8, [0.0, 0.0, 0.5, 0.0, 1.0, 0.0, 1.5, 0.0]]
    assert band_sums.placed(bands, 2, 4, 4)[1].tolist() == [0.25, 0.25 + 1.0 + 0.75, 0.75, 0.0]


def test_fullest_tiles_are_summed_in_logarithms():
    chance = np.log([0.5, 0.25])
    bands = [(np.log([3.0, 1.0]), [(2, chance)], [(1, chance)])]
    assert band_sums.fullest(bands) == pytest.approx((3 * 0.125 + 0.25**3) / (3 * 0.25 + 0.25**2), rel=1e-14)
    assert band_sums.fullest([(np.full(3, -np.inf), [], [])]) is None


def everything() -> bytes:
    """Probabilities of random numbers of many sizes, and what tiles of `crisp` densities hold."""
    total, marked, taken = numbers(3, 60)
    count = np.minimum(np.arange(60) % 9, total - taken + 1)
    few, part = np.minimum(marked, 300).astype(np.float64), np.minimum(taken + 0.3, total)
    parts = [
        hypergeometric.none_many(total, marked, taken),
        hypergeometric.none_within(marked, total, np.repeat(taken, count) + np.arange(count.sum()) % 2, count),
        hypergeometric.real_within(few.astype(np.int64), total, part), *hypergeometric.table(10**9, 3 * 10**8, 10**6),
        hypergeometric.none_real(total.astype(np.float64), few, part),
        *hypergeometric.table(900, 300, 77),
    ]  # fmt: skip
    occupancy = Crisp(n=2, m=4, block=(4, 16), block_density=0.4).occupancy((32, 120))
    k, p = occupancy.distribution((10, 50))
    parts += [k, p, occupancy.empty_within((3, 7), (10, 50), k)]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def test_compiled_loops_are_the_interpreted_ones(monkeypatch):
    compiled = everything()
    monkeypatch.setenv("SPARSEMAP_COMPILED", "0")
    for module in (hypergeometric, band_sums):
        monkeypatch.setattr(module, "functions", room(inner.__name__))
    band_sums.draws.cache_clear()
    assert everything() == compiled
