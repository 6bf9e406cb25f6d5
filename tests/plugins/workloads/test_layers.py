"""Layers as frameworks describe them: their einsums, and the shapes that they take and make."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sparsemap_plugins.workloads.layers import Conv2d, Depthwise, Linear, MatMul
from sparsemap_plugins.workloads.operations import Add, GlobalAverage, MaxPool, Multiply, Prepend, Take
from sparsemap_plugins.workloads.windows import sides, windows

from sparsemap import load_problem
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load

CONV = {"type": "conv2d", "k": 8, "c": 4, "p": 5, "q": 5, "r": 3, "s": 3}


def test_einsums_of_layers():
    window: dict[str, Any] = {"p": 5, "q": 6, "r": 3, "s": 2}
    assert Conv2d(k=8, c=4, **window).terms() == (
        "Z[k, p, q] = P[c, p + r, q + s] * Q[k, c, r, s]",
        {"k": 8, "c": 4, "p": 5, "q": 6, "r": 3, "s": 2},
    )
    assert Conv2d(k=8, c=4, stride=2, dilation=(1, 3), batch=16, groups=2, **window).terms() == (
        "Z[b, g, k, p, q] = P[b, g, c, 2*p + r, 2*q + 3*s] * Q[g, k, c, r, s]",
        {"b": 16, "g": 2, "k": 4, "c": 2, "p": 5, "q": 6, "r": 3, "s": 2},
    )
    assert Conv2d(k=8, c=4, view="matrix-product", batch=2, **window).product() == (
        "Z[m, n] = P[m, k] * Q[n, k]",
        {"m": 60, "k": 24, "n": 8},
    )
    assert Depthwise(c=4, stride=2, **window).terms() == (
        "Z[c, p, q] = P[c, 2*p + r, 2*q + s] * Q[c, r, s]",
        {"c": 4, "p": 5, "q": 6, "r": 3, "s": 2},
    )
    assert Linear(m=3, k=4, n=5, batch=2).terms()[1] == {"m": 6, "k": 4, "n": 5}
    assert MatMul(h=2, m=3, k=4, n=5).terms() == (
        "Z[h, m, n] = P[h, m, k] * Q[h, k, n]",
        {"h": 2, "m": 3, "k": 4, "n": 5},
    )
    assert Linear(m=3, k=4, n=5, batch=2, groups=8).terms() == (
        "Z[g, m, n] = P[g, m, k] * Q[g, k, n]",
        {"g": 8, "m": 6, "k": 4, "n": 5},
    )
    assert MatMul(m=3, k=4, n=5).terms()[0] == "Z[m, n] = P[m, k] * Q[k, n]"


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1, "same", ((0, 2), (1, 0))])
def test_the_size_of_the_output_is_that_of_windows_counted_one_by_one(stride: int, padding: Any):
    for height, width, r, s, dilation in [(9, 7, 3, 2, 1), (8, 8, 1, 1, 1), (11, 9, 3, 3, 2)]:
        pads = sides(padding)
        if pads == "same":
            expected = tuple(len(range(0, size, stride)) for size in (height, width))
        else:
            image = np.pad(np.zeros((height, width)), pads)
            expected = tuple(
                sum(start + (k - 1) * dilation < size for start in range(0, size, stride))
                for size, k in zip(image.shape, (r, s), strict=True)
            )
        assert windows((1, height, width), (r, s), (stride, stride), (dilation, dilation), pads) == expected


def test_groups_have_to_divide_the_channels():
    with pytest.raises(SpecError, match=r"groups = 3 does not divide the channels: k = 8, c = 4"):
        load().build("workload", {**CONV, "groups": 3})


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("stride", 0, "expected a whole number from 1 on, or two of them, found 0"),
        ("padding", "some", "expected 'same', 'valid' or numbers, found 'some'"),
        ("padding", [1, 2, 3], "expected a whole number from 0 on"),
        ("density", {"W": 0.5}, "no tensor 'W'; known: P, Q, Z"),
        ("view", "gemm", "expected 'convolution' or 'matrix-product', found text 'gemm'"),
    ],
)
def test_wrong_keys_of_a_layer(key: str, value: Any, text: str):
    registry = load()
    with pytest.raises(SpecError, match=text):
        registry.build("workload", {**CONV, key: value}).loops(registry)


def test_pools_and_layers_say_what_does_not_fit():
    with pytest.raises(ValueError, match="a window of 3 x 3 does not fit"):
        MaxPool(r=3, s=3).shape([(4, 2, 2)])
    with pytest.raises(ValueError, match="expected an image"):
        MaxPool(r=3, s=3).shape([(4, 2)])
    with pytest.raises(ValueError, match=r"expected 20 words \(5 x 4\), found 16"):
        Linear(m=5, k=4, n=3).shape([(4, 4)])
    with pytest.raises(ValueError, match="expected two inputs, P and Q"):
        MatMul(m=5, k=4, n=3).shape([(5, 4)])


def test_rows_are_put_before_others_and_taken():
    assert Prepend(rows=2047).shape([(1024,)]) == (2048, 1024)
    assert Prepend(rows=1).shape([(768, 14, 14)]) == (197, 768), "an image has a row for every pixel"
    assert Take().shape([(197, 768)]) == (768,) and Take(rows=2).shape([(197, 768)]) == (2, 768)
    assert Multiply().shape([(4, 8), (4, 8)]) == (4, 8)
    assert Linear(m=3, k=4, n=5, groups=8).shape([(24, 4)]) == (8, 3, 5)
    with pytest.raises(ValueError, match="expected 3 rows or more"):
        Take(rows=3).shape([(2, 8)])
    assert Add().shape([(64, 128), (128, 8, 8)]) == (64, 128) and Add().shape([(8, 2, 2)] * 2) == (8, 2, 2)
    assert GlobalAverage().shape([(64, 128)]) == (128,) and GlobalAverage().shape([(64, 8, 8)]) == (64, 1, 1)
    with pytest.raises(ValueError, match="of one shape"):
        Multiply().shape([(4, 8), (8, 4)])


def test_words_of_a_workload_take_the_place_of_those_of_the_hardware():
    layer = {"type": "linear", "m": 8, "k": 8, "n": 8}
    wide, narrow = (load_problem({**layer, **more}, "edge-16gbps") for more in ({}, {"word_bits": 8}))
    assert [level.word_bits for level in wide.levels] == [16] * len(wide.levels)
    assert [level.word_bits for level in narrow.levels] == [8] * len(narrow.levels)
    with pytest.raises(SpecError, match="word_bits"):
        load_problem({**layer, "word_bits": 0}, "edge-16gbps")


@pytest.mark.parametrize(
    ("inputs", "shape"),
    [
        (((8, 4, 6), (8, 1, 1)), (8, 4, 6)),
        (((8,), (8, 4, 6)), (8, 4, 6)),
        (((1, 4, 6), (8, 4, 6)), (8, 4, 6)),
        (((8, 4, 1), (8, 1, 6)), (8, 4, 6)),
        (((24, 8), (8,)), (24, 8)),
        (((24, 8), (8, 4, 6)), (24, 8)),
        (((24, 8), (4,)), ()),
        (((8, 4, 6), (8, 2, 1)), ()),
    ],
)
def test_sums_and_products_broadcast_single_words_and_rows(inputs: tuple[Any, ...], shape: tuple[int, ...]):
    for operation in (Add(), Multiply()):
        with nullcontext() if shape else pytest.raises(ValueError, match="broadcast"):
            assert operation.shape(inputs) == shape
