"""Expected maxima of work, and thresholds: against sums written out in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sparsemap_plugins.analytic.charges.maxima import LANES, TAILS, WorkTiles
from sparsemap_plugins.analytic.inner import functions, maxima
from sparsemap_plugins.analytic.inner.maxima import MERGED, MOST_MET

MET = [(n, chance) for n in (1.0, 7.0, 735.0, 54000.0) for chance in (1e-9, 0.0139, 0.5, 0.9999)]
WORK = [(looks, words) for looks in (1, 2, 35, 5000) for words in (1, 35, 250)]

PRECISE = np.array([1e-3, 1e-7, *[1e-9] * 20])
"""A share that reaches a value is rounded, which its fourth root, for a quarter of a unit, makes larger."""


class Falling:
    """Anything from nothing to all of a tile, the less the likelier."""

    def distribution(self, tile):
        p = 0.99 ** np.arange(tile[0] + 1.0)
        return np.arange(tile[0] + 1.0), np.where(np.arange(tile[0] + 1) % 50 == 7, 0.0, p)


class Unordered(Falling):
    """Occupancies that do not ascend."""

    def distribution(self, tile):
        return np.roll(np.arange(tile[0] + 1.0), 1), np.ones(tile[0] + 1)


def largest(values, p):
    """(LANES[:22],) means of the maximum, by 1 - (1 - share)^n of every n on its own."""
    reaches = np.minimum(np.cumsum(p[::-1])[::-1], 1.0)
    with np.errstate(divide="ignore"):
        chances = [-np.expm1(n * np.log1p(-reaches)) for n in LANES[:22]]
    return [np.sum(chance * np.diff(values, prepend=0.0)) for chance in chances]


def met(loops, places, chance):
    """(LANES[:22],) means of the maximum of the share of places that hold something."""
    found = np.zeros(24)
    loops.meetings(places, chance, 22, *np.empty((2, MOST_MET + 1)), np.empty((3, MERGED)), found, 2)
    assert not found[:2].any()
    return found[2:]


@pytest.mark.parametrize("occupancy", [Falling(), Unordered()])
@pytest.mark.parametrize(("looks", "words"), WORK)
def test_a_row_of_work_is_what_the_distribution_says(looks, words, occupancy) -> None:
    k, p = occupancy.distribution((words,))
    values = 1.0 - (1.0 - np.minimum(np.maximum(looks, k) / max(words, looks), 1.0)) ** np.minimum(looks, k)
    order = np.argsort(values, kind="stable")
    values, p = values[order], (p / p.sum())[order]
    row = WorkTiles(occupancy, 22)._row(looks, (words,))
    assert np.allclose(row[:22], largest(values, p), rtol=PRECISE)
    assert np.allclose(row[22:24], [np.sum(p * values**2), p[values > 0.0].sum()], rtol=1e-12)
    reaches = np.array([p[values >= value].sum() for value in values])
    for share, value, reached in zip(TAILS, row[24 : 24 + len(TAILS)], row[24 + len(TAILS) :], strict=True):
        assert value == pytest.approx(
            values[np.flatnonzero(np.cumsum(p[::-1])[::-1] >= share)].max(initial=values[0]), rel=1e-12
        )
        alike = reaches[np.isclose(values, value, rtol=1e-13)]
        assert alike.min() - 1e-9 <= reached <= alike.max() + 1e-9


@pytest.mark.parametrize(("places", "chance"), MET)
def test_operands_meet_at_as_many_places_as_a_binomial_distribution_says(places, chance) -> None:
    mean, spread = places * chance, math.sqrt(places * chance * (1.0 - chance))
    k = np.arange(max(0.0, math.floor(mean - 9 * spread - 9)), min(places, math.ceil(mean + 12 * spread + 30)) + 1.0)
    gone = [math.lgamma(places + 1.0) - math.lgamma(x + 1.0) - math.lgamma(places - x + 1.0) for x in k]
    p = np.exp(np.array(gone) + k * math.log(chance) + (places - k) * math.log1p(-chance))
    found = met(functions, places, chance)
    assert np.allclose(found, largest(k / places, p / p.sum()), rtol=np.maximum(PRECISE, 2e-3 * (len(k) > MERGED)))


def test_of_very_many_places_the_normal_distribution_says_how_many_meet() -> None:
    row = met(functions, 1e13, 0.5)
    assert row[2] == pytest.approx(0.5, rel=1e-9) and np.all(np.diff(row) > 0.0)


def test_neighbours_of_equal_values_stay_in_order() -> None:
    values, p, shares = np.full(1000, 0.3), 0.99 ** np.arange(1000.0), np.empty((3, MERGED))
    assert maxima.merge(values, p / p.sum(), 1000, shares) == 250
    assert np.all(np.diff(shares[0, :250]) >= 0.0) and shares[1, 0] <= 1.0


@pytest.mark.parametrize(("power", "of"), [(0.0, 0.0), (1.0, 0.3), (5.0, 0.999), (4097.0, 0.9999), (1e9, 1.0 - 1e-10)])
def test_powers_by_squares(power, of) -> None:
    assert maxima.whole_power(of, power) == pytest.approx(of**power, rel=1e-13 * max(power, 1.0) ** 0.5)


def test_rows_are_the_same_compiled_and_as_they_stand() -> None:
    k, p, out = np.arange(700.0), np.full(700, 1 / 700), []
    for loops in (functions, maxima):
        values, row = np.empty(700), np.empty(12 + 2 * len(TAILS))
        loops.fewer_taken(k, 35.0, 900.0, values)
        loops.work(values, p, TAILS, 10, np.empty((3, MERGED)), row)
        out.append([values.tobytes(), row.tobytes(), *(met(loops, n, chance).tobytes() for n, chance in MET)])
    assert out[0] == out[1]
