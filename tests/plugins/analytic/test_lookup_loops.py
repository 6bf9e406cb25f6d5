"""Keys and places of tables, and classes of designs: against plain Python, the same compiled and as they stand."""

import numpy as np
import pytest
from sparsemap_plugins.analytic.inner import functions, lookup, tile_classes
from sparsemap_plugins.analytic.occupancy.lookup import Table, fingerprint

KINDS = [np.float64, np.int64, np.int8, bool]


def parts(count=300):
    rng = np.random.default_rng(0)
    return [rng.integers(-9, 9, count).astype(kind) for kind in KINDS]


def test_a_key_has_all_bits_of_its_parts():
    given = parts()
    keys, rows = fingerprint(given).tolist(), [*zip(*(part.astype(float).tolist() for part in given), strict=True)]
    assert len({*keys}) == len({*rows}) == len({*zip(keys, rows, strict=True)}) and all(key % 2 for key in keys)
    assert np.array_equal(fingerprint(given)[::3], fingerprint([part[::3] for part in given]))
    assert len({*fingerprint([np.array([np.inf, -np.inf, np.nan, 1e19, 1.0, 0.0])]).tolist()}) == 6


def test_a_table_is_a_dictionary_of_keys():
    table, known = Table(), {}
    keys = fingerprint(parts(40))
    for some in (keys[:7], keys, keys[::3].copy(), np.arange(1, 9999, 2)):
        rows = table.rows(some, lambda rows, some=some: some[rows, None] * 0.1)
        for key in some.tolist():
            known.setdefault(key, len(known))
        assert rows.tolist() == [known[key] for key in some.tolist()]
        assert np.array_equal(table.data[rows, 0], some * 0.1)
    assert table.count == len(known) and len(table.places) >= 2 * len(known)


@pytest.mark.parametrize("loops", [functions, lookup])
def test_places_that_run_out_are_told(loops):
    keys, rows, new, places = (
        np.arange(1, 9),
        np.empty(8, np.int64),
        np.empty(8, np.int64),
        np.zeros((1024, 2), np.int64),
    )
    assert loops.enter(keys, places, 10, 3, rows, new) == 8 and rows.tolist() == list(range(3, 11))
    assert loops.enter(keys, places, 10, 11, rows, new[:0]) == 0 and rows.tolist() == list(range(3, 11))
    assert loops.enter(keys + 8, places, 10, 11, rows, new[:2]) == -3  # no room to say which are new
    assert loops.enter(keys + 8, places, 10, 511, rows, new) == -2
    assert loops.enter(keys, np.full((1024, 2), 99), 10, 0, rows, new) == -1


def test_loops_of_tables_are_the_same_compiled_and_as_they_stand():
    found = []
    for loops in (functions, lookup):
        keys, places = np.zeros(300, np.int64), np.zeros((2048, 2), np.int64)
        loops.mix_all(np.array([np.r_[parts()[0][:298], np.inf, -1e18], parts()[1]]), keys)
        rows, new = np.zeros((2, 300), np.int64)
        count = loops.enter(keys, places, 11, 0, rows, new)
        again = np.zeros((4096, 2), np.int64)
        loops.place(places[places[:, 0] != 0], again, 12)
        found.append([count, *(part.tobytes() for part in (keys, places, rows, new, again))])
    assert found[0] == found[1]


@pytest.mark.parametrize("loops", [functions, tile_classes])
def test_the_cheapest_of_some_tiles_is_the_first_of_equal_ones(loops):
    """One dimension of 4: of its divisors 1, 2 and 4 those within 4, 2 and 1."""
    within, counts, sizes = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2]), np.array([1, 2, 3]), np.array([3])
    drawn, energy = np.array([[[0.0, 0.4, 0.9]] * 3]), np.array([[3.0, 1.0, 1.0]], dtype=np.float32)
    out = np.empty(3, np.int64)
    loops.cheapest(drawn, np.array([[0, 1, 2]]), within, counts, sizes, energy, np.zeros(3, np.int64), out)
    assert out.tolist() == [0, 1, 1]
