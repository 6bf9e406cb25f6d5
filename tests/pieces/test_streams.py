"""Tiles as bits: every registered format, below every other one, decodes from its bits, and costs what its model says."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import attrs
import numpy as np
import pytest
from encoding_problems import registry
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemap.errors import PluginError
from sparsemap.pieces.contracts import Format
from sparsemap.pieces.streams import Coding, decode, encode, lay_out
from sparsemap.testing import decodable, expected_bits, usual_shares

NAMES = tuple(sorted(registry().names("format")))


def form(name: str, **keys: Any) -> Format:
    return (
        registry().build("format", {"extends": name, "name": f"{name}-here", **keys})
        if keys
        else registry().get("format", name)
    )


def stream_of(tile: Any, *formats: Format | str, exact: bool = False, usual: float = 0.25, **shape: Any) -> Any:
    tiles = np.array(tile, dtype=bool)[None]
    pieces = [form(f) if isinstance(f, str) else f for f in formats]
    coding = Coding.of(pieces, tiles.shape[1:], usual=[usual] * len(pieces), exact=exact)
    coding = attrs.evolve(coding, shapes=tuple(attrs.evolve(s, **shape) for s in coding.shapes))
    found = encode(tiles, coding)
    assert np.array_equal(decode(found, coding), tiles)
    return found


@pytest.mark.parametrize(
    ("formats", "first", "second"),
    [
        (("uncompressed", "bitmask"), 8, 8),
        (("bitmask", "bitmask"), 2 + 4, 2 + 8),
        (("uncompressed", "coordinate"), (3 + 4) + 3, (3 + 2) + (3 + 2)),
        (("uncompressed", "coordinate-marker"), (6 + 3) + 3, (3 + 3) + (3 + 3)),
        (("bitmask", "coordinate"), 2 + (2 + 4), 2 + 2 * (2 + 2)),
        (("uncompressed", ("run-length", {"entry_bits": "2"})), 2 + 2 + 2 + (2 + 2), 2 + 2 + 2 + 2),
        # three offsets into up to eight entries take four bits each; two bits name 0 to 3, enough for these two masks alone
        (("offset-pair", "coordinate"), 3 * 4 + 4, 3 * 4 + 4),
        # the rows know their ends: 3 empty positions at the end of one take no escape and no run
        (("offset-pair", ("run-length", {"entry_bits": "2"})), 3 * 4 + 4, 3 * 4 + 4),
    ],
)  # fmt: skip
def test_two_masks_by_hand(formats, first, second) -> None:
    pieces = [form(f) if isinstance(f, str) else form(f[0], **f[1]) for f in formats]
    for tile, bits in (([[1, 1, 0, 0], [0, 0, 0, 0]], first), ([[1, 0, 0, 0], [0, 1, 0, 0]], second)):
        assert stream_of(tile, *pieces, exact=True).sizes.sum() == bits


def test_compressed_rows_by_hand_with_offsets_of_two_bits() -> None:
    for tile in ([[1, 1, 0, 0], [0, 0, 0, 0]], [[1, 0, 0, 0], [0, 1, 0, 0]]):
        assert stream_of(tile, "offset-pair", "coordinate", offset_bits=2).sizes.sum() == 10
    rows, columns = stream_of([[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]], "offset-pair", "coordinate").ranks
    assert [int("".join(map(str, part)), 2) for part in rows.reshape(-1, 4)] == [0, 2, 2, 3]
    assert columns.tolist() == [0, 1, 1, 1, 0, 0]


def test_tiles_that_were_told_apart_by_nothing_have_different_bits() -> None:
    one, other = (stream_of(tile, "uncompressed", "coordinate") for tile in ([[1, 1], [0, 0]], [[1, 0], [0, 1]]))
    assert one.ranks[1].tolist() != other.ranks[1].tolist()


def test_two_level_bitmaps_have_the_groups_that_hold_something() -> None:
    found = stream_of(np.arange(64) // 8 == 3, "two-level-bitmask")
    assert found.sizes.sum() == 8 + 8
    assert stream_of(np.zeros(64), "group-coordinate").sizes.sum() == 4  # a count of 0 .. 8 groups


def test_blocks_and_padding_by_hand() -> None:
    found = stream_of([0, 0, 1, 0, 0, 0, 0, 0, 0, 1], form("blocked-bitmask", block=4))
    assert found.ranks[0].tolist() == [1, 0, 1]
    # four words of the first block, two of the last, which the fiber cuts off
    assert found.data.tolist() == [0, 0, 1, 0, 0, 1]
    matrix = np.zeros((4, 6), dtype=bool)
    matrix[0, 1] = matrix[1, 4] = matrix[3, 2] = True
    rows = stream_of(
        matrix.reshape(2, 2, 3, 2).transpose(0, 2, 1, 3), "offset-pair", "coordinate", "dense-block", "dense-block"
    )
    assert rows.data.tolist() == [0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0]
    assert rows.sizes[0, 2:].tolist() == [0.0, 0.0]
    # two coordinates of two bits in each of three rows, the empty one included, and their number once
    padded = stream_of([[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]], "uncompressed", "ellpack")
    assert padded.sizes.tolist() == [[0.0, 12.0 + 3]]
    assert padded.data.tolist() == [1, 1, 0, 0, 1, 0]


def test_values_that_do_not_fit_are_no_stream() -> None:
    with pytest.raises(PluginError, match="does not fit in 2 bits"):
        stream_of(np.ones(8), form("coordinate", entry_bits="2"))


def test_bits_that_are_cut_off_or_left_over_are_told() -> None:
    coding = Coding.of([form("bitmask")], [8])
    found = encode(np.ones((1, 8), dtype=bool), coding)
    with pytest.raises(PluginError, match="the bits end"):
        decode(attrs.evolve(found, ranks=(found.ranks[0][:-1],)), coding)
    with pytest.raises(PluginError, match="format 'bitmask': decode leaves 1 bits over"):
        decode(attrs.evolve(found, ranks=(np.append(found.ranks[0], 0),)), coding)


def test_a_codec_that_does_not_bring_its_positions_back_is_named() -> None:
    @attrs.frozen(kw_only=True)
    class Turned(type(form("bitmask"))):  # type: ignore[misc]
        def decode(self, bits, rank, tiles, ends):
            return super().decode(bits, rank, tiles, ends)[:, ::-1]

    tiles = np.zeros((2, 3, 4), dtype=bool)
    tiles[:, 0, 0] = True
    turned = Turned(name="turned", compressed=True, lists="mask")
    for names in ((turned, form("coordinate")), (form("coordinate"), turned)):
        coding, layout = Coding.of(names, [3, 4]), lay_out(tiles, names, every_fiber=True)
        with pytest.raises(PluginError, match="format 'turned': decode does not bring back what encode has written"):
            decode(encode(tiles, coding), coding, layout)


OUTSIDE = ("uncompressed", "bitmask", "coordinate", "offset-pair")


@pytest.mark.parametrize("name", NAMES)
def test_every_format_decodes_below_every_other_one(name: str) -> None:
    rng = np.random.default_rng(0)
    tiles = {(lengths, d): rng.random((2, *lengths)) < d for lengths in ((2, 20), (2, 2, 12)) for d in (0.0, 0.4, 1.0)}
    for names in [*product(NAMES, [name]), *product(OUTSIDE, NAMES, [name])]:
        formats = [form(each) for each in names]
        if not decodable(formats):
            continue
        for (lengths, density), some in tiles.items():
            if len(lengths) != len(names):
                continue
            coding = Coding.of(formats, lengths, usual=[density] * len(formats))
            for part in (some, some[:1]):
                assert np.array_equal(decode(encode(part, coding), coding), part), names
            assert (lay_out(some, formats).words >= some).all()


@settings(max_examples=100)
@given(st.lists(st.integers(2, 9), min_size=1, max_size=4), st.sampled_from([0.0, 0.05, 0.3, 1.0]), st.data())
def test_whatever_is_stored_decodes_to_the_tensor(lengths, density, data) -> None:
    tiles = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))).random((2, *lengths)) < density
    formats = [form(data.draw(st.sampled_from(NAMES))) for _ in lengths]
    coding = Coding.of(formats, lengths, usual=[density] * len(formats))
    assert np.array_equal(decode(encode(tiles, coding), coding), tiles)


SHAPES = {2: (8, 16), 3: (4, 4, 8)}
WORDS, MASKS = 128, 400


@pytest.mark.parametrize("name", NAMES)
def test_metadata_has_the_bits_of_the_mask_and_those_that_the_model_expects(name: str) -> None:
    """Of masks of 128 words: the mean is at least log2 C(128, nonzeros), and the model's within chance."""
    inner = ("bitmask", "coordinate", "run-length")
    for names in [*product(NAMES, [name]), *product(("uncompressed", "bitmask", "offset-pair"), inner, [name])]:
        formats, shape = [form(each) for each in names], SHAPES[len(names)]
        for nonzeros in (2, 20, 64) if decodable(formats) else ():
            rng = np.random.default_rng(1)
            tiles = rng.permuted(np.tile(np.arange(WORDS) < nonzeros, (MASKS, 1)), axis=1).reshape(MASKS, *shape)
            coding = Coding.of(formats, shape, usual=usual_shares(formats, shape, nonzeros))
            found = encode(tiles, coding)
            sizes, stored = found.sizes.sum(axis=1), round(len(found.data) / MASKS)
            zeros = math.log2(math.comb(max(stored, nonzeros), nonzeros))  # which of the stored words are not zero
            assert sizes.mean() + zeros >= math.log2(math.comb(WORDS, nonzeros)) * 0.999, (names, nonzeros)
            if any(each.padded for each in formats):
                continue  # what a fiber stores depends on the fullest one of the tensor
            near = 4.5 * sizes.std() / MASKS**0.5 + 0.01 * sizes.mean() + 0.02
            assert sizes.mean() == pytest.approx(expected_bits(formats, shape, nonzeros), abs=near), (names, nonzeros)


def test_groups_of_n_of_m_have_no_numbers_and_others_do() -> None:
    tile = np.tile([0, 1, 1, 0], 8)
    pieces, shape = [form("nm-offset")], (32,)
    even, odd = (Coding.of(pieces, shape, even=[n]) for n in (2, 0))
    for coding, bits in ((even, 8 * 2 * 2), (odd, 8 * (3 + 2 * 2))):
        found = encode(np.array([tile], dtype=bool), coding)
        assert found.sizes.sum() == bits
        assert np.array_equal(decode(found, coding)[0], tile)
    with pytest.raises(PluginError, match="1 of a group hold something, where all have 2"):
        encode(np.eye(1, 32, dtype=bool), even)


def test_a_format_that_needs_ends_has_to_be_told() -> None:
    endless = form("coordinate", ends="parent")
    assert not decodable([form("bitmask"), endless]) and decodable([form("offset-pair"), endless])
    assert stream_of(np.eye(4), "offset-pair", endless).sizes[0, 1] == 4 * 2
