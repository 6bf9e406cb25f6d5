"""Banded density against counting in a real band matrix (section 5.3)."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.densities.banded import Banded, band_cells

from sparsemap.errors import SpecError


def band(side, half_width):
    index = np.arange(side)
    return np.abs(index[:, None] - index) <= half_width


def divisor(draw, of):
    return draw(st.sampled_from([d for d in range(1, of + 1) if of % d == 0]))


@st.composite
def cases(draw):
    """(side, half width, tile, sub-tile)"""
    side = draw(st.sampled_from([1, 5, 12, 16, 24, 30, 36]))
    a, b = divisor(draw, side), divisor(draw, side)
    return side, draw(st.integers(0, side + 2)), (a, b), (divisor(draw, a), divisor(draw, b))


def tiles_of(matrix, a, b):
    """(tile rows, tile columns, a, b)"""
    rows, columns = matrix.shape[0] // a, matrix.shape[1] // b
    return matrix.reshape(rows, a, columns, b).swapaxes(1, 2)


@given(cases())
@settings(max_examples=300)
def test_every_tile_equals_counting(case):
    side, half_width, (a, b), (c, d) = case
    occupancy = Banded(half_width=half_width, every_tile=True).occupancy((side, side))
    tiles = tiles_of(band(side, half_width), a, b)
    counts = tiles.sum(axis=(2, 3)).ravel()
    k, p = occupancy.distribution((a, b))
    found, times = np.unique(counts, return_counts=True)
    assert k.tolist() == found.tolist() and p == pytest.approx(times / counts.size)
    assert occupancy.empty((a, b)) == pytest.approx((counts == 0).mean())
    assert occupancy.largest((a, b)) == counts.max()
    assert occupancy.density == pytest.approx(band(side, half_width).mean())
    subs = tiles.reshape(-1, a // c, c, b // d, d).sum(axis=(2, 4)) == 0
    share = subs.reshape(counts.size, -1).mean(axis=1)
    expected = [share[counts == x].mean() for x in found]
    assert occupancy.empty_within((c, d), (a, b), k) == pytest.approx(expected, abs=1e-14)


@given(cases())
@settings(max_examples=300)
def test_first_rows_of_tiles(case):
    """The default: what the model says, tile by tile."""
    side, half_width, (a, b), (c, d) = case
    occupancy = Banded(half_width=half_width).occupancy((side, side))
    matrix = band(side, half_width)
    rows, columns = side // a, side // b
    border = math.ceil(half_width / a)
    border = border if 2 * border <= rows else rows
    weights, first = {}, {}
    for g in range(min(border + 1, rows)):
        weight = max(rows - 2 * border, 0) if g == border else 1 if border >= rows else 2
        for j in range(columns):
            held = int(matrix[g * a : (g + 1) * a, j * b : (j + 1) * b].sum())
            weights[held] = weights.get(held, 0) + weight
            first.setdefault(held, (g * a, j * b))
    k, p = occupancy.distribution((a, b))
    expected = {held: weight / (rows * columns) for held, weight in sorted(weights.items()) if weight}
    assert math.fsum(expected.values()) == pytest.approx(1)
    assert dict(zip(k.tolist(), p.tolist(), strict=True)) == expected
    assert occupancy.largest((a, b)) == max(weights) and occupancy.empty((a, b)) == expected.get(0, 0)
    assert occupancy.timeloop_smallest((a, b)) == 0
    for twice, within in ((False, occupancy.empty_within), (True, occupancy.timeloop_empty_within)):
        shares = []
        for held in k.tolist():
            top, left = first[held]
            more = (top, left) if twice else (0, 0)
            looked = [
                matrix_part(side, half_width, more[0] + r, r + c, more[1] + s, s + d)
                for r in range(top, top + a, c)
                for s in range(left, left + b, d)
            ]
            shares.append(sum(not part for part in looked) / len(looked))
        assert within((c, d), (a, b), k).tolist() == shares


def matrix_part(side, half_width, row, row_end, column, column_end):
    """Whether the band, continued without end, has a cell in the rectangle."""
    return any(max(column, r - half_width) < min(column_end, r + half_width + 1) for r in range(row, max(row, row_end)))


def test_both_ways_agree_where_the_width_divides_the_height():
    for tile in [(8, 8), (8, 2), (16, 4)]:
        one, two = (Banded(half_width=9, every_tile=every).occupancy((96, 96)) for every in (False, True))
        assert one.distribution(tile)[0].tolist() == two.distribution(tile)[0].tolist()
        assert one.distribution(tile)[1] == pytest.approx(two.distribution(tile)[1])


def test_a_hundred_thousand_rows():
    occupancy = Banded(half_width=10_000).occupancy((100_000, 100_000))
    for tile in [(1, 1), (10, 4), (1000, 1), (32, 3125)]:
        k, p = occupancy.distribution(tile)
        assert p.sum() == pytest.approx(1) and p @ k == pytest.approx(occupancy.density * tile[0] * tile[1], rel=1e-9)
        assert occupancy.empty_within((1, 1), tile, k) == pytest.approx(1 - k / math.prod(tile))


def test_cells_of_the_band_in_a_rectangle():
    matrix = band(40, 6)
    for row, column, a, b in [(0, 0, 40, 40), (3, 8, 5, 9), (20, 2, 4, 3), (30, 10, 10, 30)]:
        found = band_cells(np.array([column - row]), a, b, 6)[0]
        assert found == matrix[row : row + a, column : column + b].sum()


def test_draw():
    assert np.array_equal(Banded(half_width=2).occupancy((9, 9)).draw(np.random.default_rng(0)), band(9, 2))


def test_errors():
    for shape in [(4, 5), (4,), (2, 2, 2)]:
        with pytest.raises(SpecError, match="square"):
            Banded(half_width=1).occupancy(shape)
    with pytest.raises(ValueError):
        Banded(half_width=-1)
    occupancy = Banded(half_width=1).occupancy((8, 8))
    with pytest.raises(ValueError, match=r"no 2 x 2 tile .* holds 2 nonzeros"):
        occupancy.empty_within((1, 1), (2, 2), np.array([2]))
