"""Structures of metadata: what is built is counted by hand, fits the formats' formulas, and decodes to the tile."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsemap_plugins.verify.encode import (
    BITMASK,
    COORDINATE,
    FORMULA,
    OFFSETS,
    RUN_LENGTH,
    decode,
    encode,
    structure_of,
)
from verify_designs import registry

from sparsemap import Fiber

NAMES = ("uncompressed", "bitmask", "run-length", "coordinate", "offset-pair")


def form(name):
    return registry().get("format", name)


@pytest.mark.parametrize(
    "name, structure",
    list(zip(NAMES, (OFFSETS, BITMASK, RUN_LENGTH, COORDINATE, OFFSETS), strict=True)),
)
def test_structures_of_the_papers_formats(name, structure):
    assert structure_of(form(name)) == structure


def test_a_format_of_unknown_structure_gets_the_real_fibers():
    blocked = registry().build(
        "format", {"name": "blocked", "type": "expression", "compressed": True, "bits": "fibers * ceil(length / 4)"}
    )
    assert structure_of(blocked) == FORMULA
    tiles = np.zeros((3, 2, 8), dtype=bool)
    tiles[0, 0, 3] = tiles[0, 1, 5] = tiles[2, 1, 0] = True
    encoded = encode(tiles, [form("bitmask"), blocked])
    assert encoded.bits[:, 1].tolist() == [4.0, 0.0, 2.0]
    assert np.array_equal(decode(encoded), tiles)


def test_compressed_rows_by_hand():
    tile = np.array([[[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]], dtype=bool)
    encoded = encode(tile, [form("offset-pair"), form("coordinate")])
    rows, columns = encoded.streams
    assert rows.values.tolist() == [[0, 2, 2, 3]]
    assert columns.values.tolist() == [1, 3, 0]
    assert columns.ends.tolist() == [2, 3]
    # four offsets of 4 bits (0 to 12), three coordinates of 2 bits
    assert encoded.bits.tolist() == [[16.0, 6.0]]


def test_run_lengths_count_the_gaps():
    tile = np.array([[0, 0, 1, 1, 0, 1, 0, 0]], dtype=bool)
    (stream,) = encode(tile, [form("run-length")]).streams
    assert stream.values.tolist() == [2, 0, 1]


def test_values_that_do_not_fit_are_counted():
    narrow = registry().build("format", {"name": "narrow", "extends": "coordinate", "metadata_bits": "2"})
    assert encode(np.ones((1, 8), dtype=bool), [narrow]).too_wide == 4


tiles = st.builds(
    lambda count, lengths, density, seed: np.random.default_rng(seed).random((count, *lengths)) < density,
    st.integers(1, 6),
    st.lists(st.integers(2, 5), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.05, 0.3, 0.7, 1.0]),
    st.integers(0, 2**32 - 1),
)


@settings(max_examples=200)
@given(tiles, st.data())
def test_every_tile_decodes_to_itself(tile, data):
    ranks = tile.ndim - 1
    formats = [form(data.draw(st.sampled_from(NAMES))) for _ in range(ranks)]
    encoded = encode(tile, formats)
    assert np.array_equal(decode(encoded), tile)
    assert encoded.too_wide == 0
    assert (encoded.bits[~tile.reshape(len(tile), -1).any(axis=1)] == 0).all()


@settings(max_examples=100)
@given(tiles, st.data())
def test_units_of_a_fiber_are_those_of_the_formula(tile, data):
    """With one fiber the formula needs no expectation."""
    name = data.draw(st.sampled_from(NAMES[1:4]))
    flat = tile.reshape(len(tile), -1)
    encoded = encode(flat, [form(name)])
    length = flat.shape[1]
    occupied = flat.sum(axis=1)
    units = form(name).units(Fiber.of((occupied > 0).astype(float), length, occupied, length))
    bits = np.where(occupied > 0, units.metadata * units.metadata_bits, 0)
    assert encoded.bits[:, 0].tolist() == pytest.approx(bits.tolist())
    assert encoded.bits.shape == (math.prod(tile.shape[:1]), 1)
