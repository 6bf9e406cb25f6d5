"""Run lengths: what is written is read back, and is as long as expected."""

from __future__ import annotations

import numpy as np
import pytest
from sparsemap_plugins.declarative import codec
from sparsemap_plugins.declarative.formats import ExpressionFormat

from sparsemap import Fiber, Outer


def expected(length: int, filled: float, bits: int, ended: bool = False, slots: float = 1e9) -> float:
    """Tokens of each of so many fibers, all of which are there."""
    form = ExpressionFormat(compressed=True, lists="runs", entry_bits=bits)
    fiber = Fiber.of(np.full(1, slots), length, np.full(1, length * filled), length, slots)
    return float(form.encoded(fiber, Outer(ends=ended)).metadata[0]) / (bits * slots)


def test_the_example_of_the_model_page() -> None:
    assert expected(8, 0.1, 2) == pytest.approx(3.305, abs=5e-4)
    assert [expected(8, 0.1, bits) for bits in (1, 4)] == pytest.approx([8.0, 1.7])


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("length", [1, 3, 8, 21])
def test_run_lengths_are_read_back_and_have_the_expected_number(length: int, bits: int, ended: bool) -> None:
    rows = np.random.default_rng(length).random((4000, length)) < 0.15
    fiber, tokens = codec.write_runs(rows, bits, ended)
    assert tokens.max() < 2**bits
    for row in range(20):
        mine = tokens[fiber == row].tolist()
        found, used = codec.read_runs(mine, length, bits, len(mine) if ended else None)
        assert (found, used) == (np.flatnonzero(rows[row]).tolist(), len(mine))
    assert len(tokens) / 4000 == pytest.approx(expected(length, 0.15, bits, ended=ended), rel=0.05, abs=0.05)


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_few_nonzeros_that_are_drawn_without_putting_back(bits: int, ended: bool) -> None:
    rng = np.random.default_rng(bits)
    rows = rng.permuted(np.tile(np.arange(64) < 9, (5000, 1)), axis=1).reshape(-1, 16)
    fiber, _ = codec.write_runs(rows, bits, ended)
    found = expected(16, 9 / 64, bits, ended=ended, slots=4.0)
    assert len(fiber) / len(rows) == pytest.approx(found, rel=0.01)


def test_more_positions_than_a_fiber_has_are_no_fiber() -> None:
    with pytest.raises(ValueError, match="tell 9 positions of a fiber of 8"):
        codec.read_runs([3, 3, 3], 8, 2, None)
