"""Axes that are said to repeat do so in the words, whatever is expanded, reshaped and transposed."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sparsemap_plugins.importing.repeats import after, common, plain, repeats, reshaped

onnx = pytest.importorskip("onnx")
from onnx_files import node  # noqa: E402


def _step(rng: np.random.Generator, array: np.ndarray) -> tuple[Any, np.ndarray]:
    """A node that moves or repeats words, and what it makes of them."""
    match rng.integers(5):
        case 0:
            shape = tuple(int(rng.integers(2, 5)) if size == 1 else size for size in array.shape)
            return node("Expand", "x s", "y"), np.broadcast_to(array, shape)
        case 1:
            times = [int(rng.integers(1, 3)) for _ in array.shape]
            return node("Tile", "x s", "y"), np.tile(array, times)
        case 2:
            order = [int(axis) for axis in rng.permutation(array.ndim)]
            return node("Transpose", "x", "y", perm=order), array.transpose(order)
        case 3:
            return node("Unsqueeze", "x s", "y"), np.expand_dims(array, int(rng.integers(array.ndim + 1)))
        case _:
            sizes, left = [], array.size
            while left > 1:
                sizes.append(int(rng.choice([size for size in range(2, left + 1) if left % size == 0])))
                left //= sizes[-1]
            return node("Reshape", "x s", "y"), array.reshape(sizes or [1])


@pytest.mark.parametrize("seed", range(200))
def test_words_are_alike_along_axes_that_do_not_vary(seed: int):
    rng = np.random.default_rng(seed)
    array = np.arange(np.prod(shape := rng.integers(1, 4, 3))).reshape(shape)
    known: dict[str, Any] = {}
    for _ in range(6):
        if array.size > 20_000:
            break
        made, result = _step(rng, array)
        model: Any = SimpleNamespace(shapes={"x": array.shape, "y": result.shape})
        axes = after(made, model, known)
        known, array = ({"x": axes} if axes is not None and repeats(axes) else {}), result
        for axis in [] if axes is None else [axes]:
            assert [math.prod(size for size, _ in factors) for factors in axis] == list(array.shape)
            factors = [factor for part in axis for factor in part]
            words = array.reshape([size for size, _ in factors])
            for place, (_, varies) in enumerate(factors):
                assert varies or (words == words.take([0], place)).all()


def test_factors_that_do_not_fit_are_not_guessed():
    assert reshaped(plain((6,)), (4,)) is None
    assert reshaped((((3, False), (2, True)),), (2, 3)) is None
    assert reshaped((((4, False), (3, True)),), (2, 6)) == (((2, False),), ((2, False), (3, True)))
    assert common(((2, True), (3, False)), ((6, True),)) == [(2, True, True), (3, False, True)]
    assert common(((2, True), (3, False)), ((3, False), (2, True))) == [(6, True, True)]
    assert common(((1, True),), ((6, True),)) == [(6, False, True)]
