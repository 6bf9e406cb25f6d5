"""Rows of expected maxima in C are those of NumPy, to the last bit; what C does not know is left to NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sparsemap_plugins.analytic import native
from sparsemap_plugins.analytic.charges.maxima import LANES, MetPlaces, WorkTiles
from test_native import COMPILER, built

SOURCE = Path(native.__file__).with_name("maxima.c")
MET = [(n, chance) for n in (1.0, 7.0, 735.0, 54000.0, 5e6) for chance in (1e-9, 0.0139, 0.5, 0.9999)]
WORK = [(looks, words) for looks in (1, 2, 35, 5000) for words in (1, 35, 257, 3000)]


class Falling:
    """Anything from nothing to all of a tile, the less the likelier."""

    def distribution(self, tile):
        p = 0.99 ** np.arange(tile[0] + 1.0)
        return np.arange(tile[0] + 1.0), np.where(np.arange(tile[0] + 1) % 50 == 7, 0.0, p)


class Unordered(Falling):
    """Occupancies that do not ascend."""

    def distribution(self, tile):
        return np.roll(np.arange(tile[0] + 1.0), 1), np.ones(tile[0] + 1)


def rows(compiled, occupancy=None) -> list[np.ndarray]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "maxima", compiled)
        tiles, met = WorkTiles(occupancy or Falling(), LANES[:22]), MetPlaces(LANES[:22])
        return [*(tiles._row(looks, (words,)) for looks, words in WORK), *(met._row(*one) for one in MET)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if native.maxima is None and COMPILER is None:
        pytest.skip("no C compiler")
    return native.maxima or built(SOURCE.read_text(), tmp_path_factory.mktemp("maxima"), "maxima")


@pytest.mark.parametrize("occupancy", [Falling(), Unordered()])
def test_rows_are_the_same_to_the_last_bit(occupancy, compiled) -> None:
    pairs = zip(rows(compiled, occupancy), rows(None, occupancy), strict=True)
    assert all(one.tobytes() == other.tobytes() for one, other in pairs)


def test_maxima_of_twice_as_many_are_those_of_the_formula() -> None:
    """1 - (1 - share)^n, for every n on its own."""
    k, p = Falling().distribution((35,))
    reaches = np.cumsum((p / p.sum())[::-1])[::-1]
    expected = [np.sum((1.0 - (1.0 - reaches) ** n) * np.diff(k / 35.0, prepend=0.0)) for n in LANES[:22]]
    assert np.allclose(WorkTiles(Falling(), LANES[:22])._row(1, (35,))[:22], expected, rtol=1e-12)


def test_arrays_that_do_not_fit_each_other_are_left_to_numpy(compiled) -> None:
    k, out = np.arange(3.0), np.empty(4 + 2 + 2)
    work = [k, k, 1, 2.0, 0.25, 4, np.ones(1), (np.power, np.log1p, np.expm1), out]
    assert compiled.work(*work) == 3
    for place, value in {0: k[:2], 1: None, 5: 5, 6: np.ones(2), 7: (np.power,), 8: np.empty(3)}.items():
        assert compiled.work(*work[:place], value, *work[place + 1 :]) is None
    met = [9.0, (-1.0, -1.0), 0.0, 9.0, 0.25, 4, (np.exp, np.log, np.log1p, np.expm1), np.empty(4)]
    assert compiled.met(*met) == 10
    for place, value in {0: None, 1: (1.0,), 2: np.nan, 3: 1e9, 5: 5, 6: (np.exp,), 7: np.empty((4, 1))}.items():
        assert compiled.met(*met[:place], value, *met[place + 1 :]) is None


MUTANTS = [
    ("most = size > 1 ? max2(most, own) : own", "most = own + 1e-16"),
    ("min2(total, 1.0)", "total + 1e-16"),
    ("(2.0 - w[i])", "2.0"),
    ("values[i] >= values[i - 1]", "1"),
    ("s.y[at - 1] == s.y[at]", "0"),
    ("s.reaches[at + 1] >= tail[j]", "s.reaches[at + 1] > tail[j] * 1.5"),
    ("values[i] > 0.0 ? p[i] : 0.0", "p[i]"),
]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_an_error_in_the_rows_is_noticed(number, tmp_path) -> None:
    (before, after), text = MUTANTS[number], SOURCE.read_text()
    assert text.count(before) == 1
    wrong = built(text.replace(before, after), tmp_path, "maxima")
    pairs = [
        pair for which in (Falling(), Unordered()) for pair in zip(rows(wrong, which), rows(None, which), strict=True)
    ]
    assert any(one.tobytes() != other.tobytes() for one, other in pairs)
