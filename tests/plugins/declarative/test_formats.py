"""The shipped formats against section 6.2 of the model, and expression formats at their edges."""

from itertools import product

import attrs
import numpy as np
import pytest
from encoding_problems import registry

from sparsemap.errors import PluginError, SpecError
from sparsemap.pieces.contracts import Fiber, Outer
from sparsemap.pieces.streams import Coding, decode, encode
from sparsemap.testing import check_format

FORMATS = ("uncompressed", "bitmask", "run-length", "coordinate", "offset-pair")


def fiber(**values):
    return Fiber(**{name: np.array(value, float) for name, value in values.items()})


FIBER = fiber(
    fibers=[3.5, 1.0], length=[8.0, 5.0], occupied=[2.25, 4.0], coord_bits=[4, 4], offset_bits=[8, 2], slots=[6, 1]
)


def build(**table):
    return registry().build("format", {"compressed": True, **table}, "f.toml")


@pytest.mark.parametrize("name", registry().names("format"))
def test_contract(name):
    parents = [registry().get("format", parent) for parent in ("bitmask", "offset-pair")]
    check_format(registry().get("format", name), parents=parents)


@pytest.mark.parametrize(
    ("name", "metadata", "metadata_bits", "payload", "payload_bits"),
    [
        ("uncompressed", [0, 0], [0, 0], [3.5 * 9, 6], [0, 0]),
        ("bitmask", [28, 5], [1, 1], [3.5 * 3, 4], [0, 0]),
        ("run-length", [3.5 * 2.25, 4], [4, 4], [3.5 * 2.25, 4], [0, 0]),
        ("coordinate", [3.5 * 3, 4], [4, 4], [3.5 * 3, 4], [0, 0]),
        ("offset-pair", [0, 0], [0, 0], [3.5 * 9, 6], [8, 2]),
    ],
)
def test_units(name, metadata, metadata_bits, payload, payload_bits):
    units = registry().get("format", name).units(FIBER)
    assert units.metadata.tolist() == metadata
    assert units.metadata_bits.tolist() == metadata_bits
    assert units.payload.tolist() == payload
    assert units.payload_bits.tolist() == payload_bits


def test_which_formats_compress():
    pieces = [registry().get("format", name) for name in FORMATS]
    assert [piece.compressed for piece in pieces] == [False, True, True, True, False]


def test_bits_of_all_units_together():
    assert registry().get("format", "coordinate").metadata_bits(FIBER).tolist() == [3.5 * 3 * 4, 16]
    assert registry().get("format", "offset-pair").metadata_bits(FIBER).tolist() == [3.5 * 9 * 8, 12]


def test_a_width_may_be_a_number():
    assert build(lists="runs", entry_bits=4) == build(lists="runs", entry_bits="4")
    with pytest.raises(SpecError, match="entry_bits: expected a number or an expression, found True"):
        build(lists="runs", entry_bits=True)


def test_padded_formats_count_the_fullest_fiber():
    units = registry().get("format", "ellpack").units(attrs.evolve(FIBER, longest=np.array([3.0, 4.5])))
    assert units.metadata.tolist() == [6 * 3, 4.5]


def test_a_format_that_gives_its_bits_at_once():
    piece = build(bits="fibers * ceil(length / block)", params={"block": 4})
    assert piece.metadata_bits(FIBER).tolist() == [7, 2]
    assert piece.units(FIBER).metadata.tolist() == [7, 2] and piece.units(FIBER).metadata_bits == 1
    check_format(piece)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "expected either 'bits' or 'metadata' .* found neither"),
        ({"bits": "fibers", "metadata": "fibers"}, "found both"),
        ({"bits": "fibers", "payload": "fibers"}, "'bits' is all of the metadata"),
        ({"bits": "fibres * length"}, r"f\.toml: bits: no quantity 'fibres'; did you mean 'fibers'\?"),
        ({"metadata": "fibers", "metadata_bits": "occupied"}, r"f\.toml: metadata_bits: no quantity 'occupied'"),
        ({"bits": "fibers.real"}, "attributes are not part of expressions"),
        ({"bits": "fibers", "compresed": True}, "did you mean 'compressed'"),
        ({"bits": "fibers", "block": 0}, "block: is 0, expected at least 1"),
        ({"bits": "fibers", "block": 4, "compressed": False}, "expected 'compressed = true' with 'block = 4'"),
        ({"bits": "fibers", "padded": True, "compressed": False}, "expected 'compressed = true' with 'padded = true'"),
        ({"bits": "fibers", "below_compressed": True}, "'below_compressed' is for uncompressed formats"),
        ({"bits": "slots * longest"}, "'longest' is for padded formats: expected 'padded = true'"),
    ],
)
def test_what_is_wrong_is_told(table, message):
    with pytest.raises(SpecError, match=message):
        build(**table)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("lists", ["mask", "coordinates", "runs"])
def test_a_rank_is_readable_where_every_tile_comes_back(lists):
    """Of fields with fixed widths: for every way in which fibers end, full tiles and those with their last word."""
    found = set()
    for end in {"mask": ["length"], "coordinates": ["count", "marker"], "runs": ["length", "count"]}[lists]:
        for entry, count, group in product([0, 1, 2, 3, 4], [0, 2, 3, 4], [1, 4]):
            more = {"group": group, "groups": "coordinates", "group_bits": count} if group > 1 else {}
            form = build(name="own", lists=lists, ends=end, entry_bits=entry, count_bits=count, **more)
            for length in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17):
                tiles = np.stack([np.ones(length, bool), np.arange(length) == length - 1, np.arange(length) == 0])
                coding = Coding.of([form], [length])
                try:
                    back = np.array_equal(decode(encode(tiles, coding), coding), tiles)
                except (PluginError, ValueError):
                    back = False
                one = Fiber.of(np.ones(1), length, np.ones(1), length)
                assert bool(np.all(form.encoded(one, Outer()).readable)) == back, (form, length)
                found.add(back)
    assert found == {True, False}


def test_runs_of_groups_and_widths_by_the_shortest_runs():
    """Groups 0 and 2 of 4 with 1 of 4 words each: runs 0 and 1 of two bits, then the place in a group by three."""
    fiber = Fiber.of(np.ones(1), 16.0, np.full(1, 2.0), 16.0, 1.0)
    fiber = attrs.evolve(fiber, groups=np.full(1, 4.0), usual=np.full(1, 1 / 8))
    form = build(group=4, groups="runs", group_bits=2, lists="coordinates", entry_bits=3, ends="count", count_bits=1)
    assert form.encoded(fiber, Outer()).metadata.tolist() == [4 * 2 + 2 * 3 + 4 * 1]
    widths = [build(lists="mask", entry_bits=text) for text in ("run_bits", "run_bits + 1", "minimum(run_bits, 1)")]
    bits = [float(form.encoded(fiber, Outer()).metadata[0]) / 16 for form in widths]
    assert bits == [4, 5, 1]
