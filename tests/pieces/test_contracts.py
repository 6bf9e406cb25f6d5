"""Arithmetic and marks that the contracts share."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest

from sparsemap.pieces import contracts
from sparsemap.pieces.contracts import Fiber, box, name_bits, parts, plain, styled


def test_a_box_of_numbers_and_one_of_arrays_agree():
    ranks = ((("p", 2), ("r", 1)), (("k", 1),))
    assert box(ranks, {"p": 4, "r": 3, "k": 5}) == (9, 5)
    many = box(ranks, {"p": np.array([4.0, 1.0]), "r": np.array([3.0, 3.0]), "k": np.array([5.0, 2.0])})
    assert [words.tolist() for words in many] == [[9.0, 3.0], [5.0, 2.0]]


def test_bits_that_name_a_position_are_a_power_of_two():
    needed = [max(1, (n - 1).bit_length()) for n in range(1, 3000)]
    assert name_bits(np.arange(1, 3000)).tolist() == [2.0 ** math.ceil(math.log2(bits)) for bits in needed]


def test_fibers_of_one_length():
    fiber = Fiber.of(np.array([2.0, 3.0]), 5, np.array([1.5, 5.0]), words=20, slots=4)
    assert fiber.length.tolist() == [5, 5] and fiber.slots.tolist() == [4, 4]
    assert fiber.coord_bits.tolist() == [4, 4] and fiber.offset_bits.tolist() == [8, 8]


def test_a_marked_text_is_the_text_and_its_styles():
    text = f"{styled('EDP', 'strong')}  1.5 {styled('pJ', 'faint')}"
    assert plain(text) == "EDP  1.5 pJ"
    assert list(parts(text)) == [("", ""), ("EDP", "strong"), ("  1.5 ", ""), ("pJ", "faint"), ("", "")]


@pytest.mark.parametrize("kind", ["CostModel", "DensityModel", "Exporter", "Searcher", "Segment"])
@pytest.mark.parametrize("slots", [True, False])
def test_a_plugin_may_do_without_slots(kind, slots):
    made = attrs.frozen(kw_only=True, slots=slots)(type("Own", (getattr(contracts, kind),), {}))
    assert made(name="own").name == "own"
