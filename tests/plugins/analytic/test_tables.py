"""The occupancy tables: merged windows against full sums, and entries that depend on their key alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sparsemap_plugins.analytic import occupancy as tables
from sparsemap_plugins.analytic.inner import functions
from sparsemap_plugins.analytic.occupancy import (
    Ranks,
    TensorTables,
    bins,
    expected,
    pairs,
    tiles,
)
from sparsemap_plugins.analytic.occupancy.lookup import Table, fingerprint
from sparsemap_plugins.densities import hypergeometric
from sparsemap_plugins.densities.banded import Banded
from sparsemap_plugins.densities.block import Block
from sparsemap_plugins.densities.structured import Structured
from sparsemap_plugins.densities.uniform import Uniform

from sparsemap.pieces.contracts import Fiber, Units


class Counting:
    """A format with one expression for metadata."""

    group, compressed = 1, True

    def __init__(self, units, payload=0.0):
        self.name, self._units, self._payload = "test", units, payload

    def units(self, fiber: Fiber) -> Units:
        return Units(metadata=self._units(fiber), metadata_bits=1.0, payload=self._payload, payload_bits=2.0)


SMOOTH = {
    "pointers": lambda f: f.fibers * (f.length + 1),
    "runs": lambda f: f.fibers * f.occupied,
    "square": lambda f: f.occupied**2,
}
STEPS = {
    "coordinates": lambda f: f.fibers * np.ceil(f.occupied),
    "halves": lambda f: f.slots * np.ceil(np.ceil(f.occupied) / 2),
}
ELSEWHERE = {"thirds": lambda f: np.ceil(f.fibers / 3 + 0.2)}
FORMATS = tuple(Counting(units) for units in (SMOOTH | STEPS | ELSEWHERE).values())


def make(occupancy, formats=FORMATS) -> TensorTables:
    return TensorTables(occupancy, frozenset(), tuple((form, None) for form in formats))


def values(table, n, box, below, length, above, drop=True, formats=None):
    formats = formats or len(FORMATS)
    one = np.ones(formats)
    shapes = ((x * one)[None] for x in (n, box, below))
    return ask(table, *shapes, length * one, above * one, np.arange(float(formats)), box * one, one * drop)


def ask(table, *ranks):
    """(8, N): the columns of `RankUnits`."""
    return np.array(table.units(Ranks.of(*ranks, ranks[3])))


def test_the_key_of_a_rank_has_all_that_its_units_depend_on():
    """Of two ranks that differ in any field, in a mean by its last bit, neither gets the units of the other."""
    for field in range(10):
        columns = np.repeat([[16.0], [8.0], [2.0], *[[4.0]] * 6, [1.0]], 2, axis=1)
        columns[field, 1] = np.nextafter(columns[field, 1], 99.0)
        assert len({*fingerprint(Ranks(columns, 1).columns).tolist()}) == 2, field


@pytest.fixture
def whole(monkeypatch):
    """Calls a function with all occupancies listed, none merged."""

    def call(function):
        with monkeypatch.context() as patch:
            patch.setattr(hypergeometric, "LONGEST", 1 << 62)
            patch.setattr(tiles, "WHOLE", 1 << 62)
            return function()

    return call


def merged(table) -> bool:
    return bool((table.tiles.table.data[:, tiles.Tile._fields.index("grain")] > 0).any())


def wide_tiles(count: int, seed: int):
    """(N, density, n, box, below, L, above) with windows from just above the limit to 100,000 occupancies."""
    rng = np.random.default_rng(seed)
    while count:
        total = int(10 ** rng.uniform(4, 10))
        d = 10 ** rng.uniform(-5, 0) if rng.random() < 0.7 else rng.random()
        n = int(10 ** rng.uniform(2.5, math.log10(total)))
        n = max(n // 4096 * 4096, 4) if rng.random() < 0.5 else n
        width = 21 * math.sqrt(n * d * (1 - d) * (total - n) / total)
        if not 550 < width < 1e5 or n >= total:
            continue
        below = int(min(n / 2, max(1, 10 ** rng.uniform(-3, 1.5) / d))) if rng.random() < 0.8 else 1
        length = int(min(n // below, max(2, 10 ** rng.uniform(0.3, 5))))
        yield total, float(d), n, below * length, below, length, max(1, n // (below * length))
        count -= 1


def test_merged_windows_against_full_sums(whole):
    compared = 0
    for total, d, *tile in wide_tiles(150, 11):
        occupancy = Uniform(density=d).occupancy((total,))
        table = make(occupancy)
        found, full = values(table, *tile), whole(lambda o=occupancy, t=tile: values(make(o), *t))
        if not merged(table):
            continue
        compared += 1
        error = np.abs(found - full) / np.maximum(np.abs(full), 1e-300)
        for i, name in enumerate(SMOOTH | STEPS):
            assert error[0, i] < (5e-6 if name in SMOOTH else 1e-5), (name, total, d, tile)
        steps = np.ptp(
            [
                tile[-1] * (1 - occupancy.empty_within((tile[1],), (tile[0],), [k])[0]) / 3
                for k in ends(occupancy, tile[0])
            ]
        )
        assert abs(found[0, -1] - full[0, -1]) < 0.035 * (np.ceil(steps) + 1), (total, d, tile)
        assert np.array_equal(found[2:], full[2:])  # the largest tile is exact
    assert compared > 100


def ends(occupancy, n):
    k = occupancy.distribution((n,))[0]
    return int(k[0]), int(k[-1])


@pytest.mark.parametrize("total", [10**6, 10**10])
def test_a_step_anywhere_in_the_window(total, whole):
    """One word per position: occupied = L k / n passes 1 at k = n / L, from one end of the window to the other."""
    tile = (70_000, 7, 1, 7, 10_000)
    for density in np.linspace(0.92, 1.08, 60) / 7:
        occupancy = Uniform(density=density).occupancy((total,))
        found, full = values(make(occupancy), *tile), whole(lambda o=occupancy: values(make(o), *tile))
        assert found[0, :-1] == pytest.approx(full[0, :-1], rel=2e-6), density


def test_units_that_do_not_vary_are_as_in_a_full_sum(whole):
    """Their sums end in the last bits that ceil decides by."""
    formats = tuple(Counting(lambda f, u=u: np.full(f.fibers.shape, u)) for u in (1.0, 3.0, 7.0, 96.0, 12288.0))
    occupancy = Uniform(density=0.3).occupancy((10**7,))
    for n in (9_000, 12_000, 20_000):
        run = lambda o=occupancy, n=n: values(make(o, formats=formats), n, n // 4, n // 8, 2, 4, formats=5)  # noqa: E731
        assert np.array_equal(run(), whole(run))


@pytest.mark.parametrize("kind", ["uniform", "structured", "block", "banded"])
def test_an_entry_depends_on_its_key_alone(kind, monkeypatch):
    model, shape = {
        "uniform": (Uniform(density=0.2), (512, 1024)),
        "structured": (Structured(density=0.3), (512, 1024)),
        "block": (Block(density=0.3, block=(2, 2)), (512, 1024)),
        "banded": (Banded(half_width=5), (64, 64)),
    }[kind]
    occupancy = model.occupancy(shape)
    by_shape = occupancy.by_shape
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(300):
        tile = [2 ** rng.integers(0, math.log2(s) + 1) for s in shape]
        box = [2 ** rng.integers(0, math.log2(s) + 1) for s in tile]
        below = [box[0], 2 ** rng.integers(0, math.log2(box[1]) + 1)]
        length = box[1] // below[1]
        shapes = [*tile, *box, *below] if by_shape else [math.prod(x) for x in (tile, box, below)]
        rows.append(
            [*shapes, length, math.prod(tile) // math.prod(box), rng.integers(len(FORMATS)), 64, rng.integers(2)]
        )
    columns = list(np.array(rows, dtype=np.float64).T)

    def run(table, rows):
        r = 2 if by_shape else 1
        c = [column[rows] for column in columns]
        return ask(table, *np.array(c[: 3 * r]).reshape(3, r, -1), *c[3 * r :])

    together = run(make(occupancy), np.arange(300))
    one_by_one, shuffled = make(occupancy), rng.permutation(300)
    for row in shuffled:
        assert np.array_equal(run(one_by_one, [row])[:, 0], together[:, row])
    forgetful = make(occupancy)
    monkeypatch.setattr(tables, "KEPT", 3000)
    for module in (pairs, expected):
        monkeypatch.setattr(module, "POINTS_AT_ONCE", 700)
    for some in np.array_split(shuffled, 20):
        assert np.array_equal(run(forgetful, some), together[:, some])
    assert forgetful.pairs.lists.size < 100_000
    if kind in ("uniform", "block"):
        assert merged(one_by_one)


def test_windows_of_blocks_are_merged_too(whole):
    occupancy = Block(density=0.3, block=(2, 3)).occupancy((512, 768))
    table = make(occupancy)
    one = np.ones(len(FORMATS))
    for tile, box, below in (
        ((256, 384), (2, 384), (2, 3)),
        ((512, 384), (32, 6), (2, 6)),
        ((128, 768), (1, 48), (1, 1)),
    ):
        length = float(math.prod(box) // math.prod(below))
        parts = [np.outer(shape, one) for shape in (tile, box, below)]
        rest = (length * one, math.prod(tile) / math.prod(box) * one, np.arange(float(len(one))), one, one)
        found = ask(table, *parts, *rest)
        full = whole(lambda p=parts, r=rest: ask(make(occupancy), *p, *r))
        assert found[0, :-1] == pytest.approx(full[0, :-1], rel=1e-5)
    assert merged(table)


def test_cells_keep_mean_and_variance():
    k, p = hypergeometric.table(10**9, 3 * 10**8, 10**7)
    found = bins.Bins.of(k.astype(float), p, 1.0)
    assert found.p.sum() == pytest.approx(1, abs=1e-14)
    assert len(found.k) <= bins.BINS + 3
    mean = p @ k
    assert found.p @ found.k == pytest.approx(mean, rel=1e-12)
    assert found.p @ (found.k - mean) ** 2 == pytest.approx(p @ (k - mean) ** 2, rel=1e-9)
    assert np.diff(found.k).min() > 0


def test_probabilities_below_any_point(whole):
    """Between samples many occupancies apart, against the sum over all k."""
    numbers = 10**9, 10**8, 10**7
    k, p = hypergeometric.table(*numbers)
    assert k[1] - k[0] > 1
    found = bins.Bins.of(k.astype(float), p, 1.0)
    tile = dict.fromkeys(tiles.Tile._fields, 0.0) | {"origin": found.origin, "step": found.step, "samples": len(k)}
    row = np.array([list(tile.values())])
    all_k, all_p = whole(lambda: hypergeometric.table(*numbers))
    some = slice(50, len(all_k) - 50)
    below = np.empty(len(all_k) - 100)
    functions.chance_below(row, found.sums, all_k[some] + 0.5, np.empty(2), below)
    assert below == pytest.approx(np.cumsum(all_p)[some], abs=1e-7)


def test_table_finds_what_it_was_given():
    rng = np.random.default_rng(0)
    table, seen = Table(2), {}

    def look_up(keys):
        def fill(first):
            assert len(set(keys[first].tolist())) == len(first)
            for key in keys[first].tolist():
                assert key not in seen
                seen[key] = (len(seen), key % 1000 / 8)
            return np.array([seen[key] for key in keys[first].tolist()])

        found = table.found(keys, fill)
        assert [*map(tuple, found.tolist())] == [seen[key] for key in keys.tolist()]

    for size in (1, 7, 3000, 20_000, 5, 20_000):
        look_up(rng.integers(1, 1 << 16, size) * 2 + 1)
    assert table.count == len(seen)


def test_a_full_table_starts_afresh():
    table = Table(2, most=100)
    for start in range(0, 1000, 30):
        keys = np.arange(start, start + 80) * 2 + 1
        found = table.found(keys, lambda first, keys=keys: np.stack([keys[first], keys[first] / 8], axis=1))
        assert found.T.tolist() == [keys.tolist(), (keys / 8).tolist()]
        assert table.count <= 100
