"""The density `crisp`: N:M inside blocks, equally many blocks in every block row."""

import itertools

import numpy as np
import pytest
from sparsemap_plugins.analytic.occupancy import TensorTables
from sparsemap_plugins.densities.crisp import Crisp
from sparsemap_plugins.densities.crisp_tiles import CrispOccupancy
from sparsemap_plugins.densities.footprints import Columns

from sparsemap.errors import SpecError
from sparsemap.testing import check_density

Mask = np.ndarray


def every_mask(rows: int, columns: int, block: tuple[int, int], n: int, m: int, keep: int) -> np.ndarray:
    """All masks of the distribution, each as likely as any other: (masks, rows, columns)."""
    high, wide = block
    found = []
    for kept in itertools.product(itertools.combinations(range(columns // wide), keep), repeat=rows // high):
        places = [
            (row, b * wide + g * m) for row in range(rows) for b in kept[row // high] for g in range(wide // m)
        ]  # fmt: skip
        for words in itertools.product(itertools.combinations(range(m), n), repeat=len(places)):
            mask = np.zeros((rows, columns), bool)
            for (row, first), some in zip(places, words, strict=True):
                mask[row, [first + word for word in some]] = True
            found.append(mask)
    return np.array(found)


def tile_sums(masks: np.ndarray, tile: tuple[int, ...]) -> np.ndarray:
    """Nonzeros of the aligned tiles of (masks, *shape), those at an edge cut off."""
    for axis, words in enumerate(tile, 1):
        masks = np.add.reduceat(masks, np.arange(0, masks.shape[axis], words), axis=axis, dtype=np.int64)
    return masks


def parts(masks: np.ndarray, tile: tuple[int, ...]):
    """The tiles of (masks, *shape), each (masks, *its shape)."""
    starts = [range(0, size, words) for size, words in zip(masks.shape[1:], tile, strict=True)]
    for corner in itertools.product(*starts):
        yield masks[(slice(None), *(slice(c, c + w) for c, w in zip(corner, tile, strict=True)))]


def counted(masks, sub, tile):
    """{k: (share of the tiles that hold k, share of empty sub-tiles in them)}, and the number of tiles that hold k."""
    tiles, subs, empty = {}, {}, {}
    for part in parts(masks, tile):
        held, inner = part.reshape(len(part), -1).sum(axis=1), tile_sums(part, sub).reshape(len(part), -1)
        for k in np.unique(held).tolist():
            rows = held == k
            tiles[k] = tiles.get(k, 0) + int(rows.sum())
            subs[k] = subs.get(k, 0) + inner[rows].size
            empty[k] = empty.get(k, 0) + int((inner[rows] == 0).sum())
    total = sum(tiles.values())
    return {k: (tiles[k] / total, empty[k] / subs[k], tiles[k]) for k in sorted(tiles)}


@pytest.mark.parametrize(
    ("shape", "block", "n", "m", "keep", "masks"),
    [((2, 8), (2, 4), 1, 2, 1, 32), ((2, 8), (1, 4), 2, 4, 1, 144), ((4, 4), (2, 2), 1, 2, 1, 64)],
)
def test_equals_the_enumeration_of_all_masks(shape, block, n, m, keep, masks):
    """Every pair of tiles, also those that lie across blocks and groups, and those that an edge cuts off."""
    every = every_mask(*shape, block, n, m, keep)
    assert len(every) == masks
    occupancy = Crisp(n=n, m=m, block=block, keep=keep).occupancy(shape)
    assert occupancy.density == pytest.approx(every.mean(), abs=1e-15)
    for tile in itertools.product(*(range(1, size + 1) for size in shape)):
        for sub in itertools.product(*(range(1, size + 1) for size in tile)):
            expected = counted(every, sub, tile)
            k, p = occupancy.distribution(tile)
            assert k.tolist() == list(expected)
            assert p == pytest.approx([one[0] for one in expected.values()], abs=1e-12)
            within = occupancy.empty_within(sub, tile, k)
            assert within == pytest.approx([one[1] for one in expected.values()], abs=1e-12)
        assert occupancy.empty(tile) == pytest.approx(expected.get(0, (0.0,))[0], abs=1e-12)
        assert occupancy.largest(tile) == max(expected)


PAIRS = [
    ((1, 1), (16, 16)), ((8, 8), (16, 32)), ((4, 4), (32, 48)), ((2, 3), (32, 24)), ((1, 2), (4, 2)),
    ((1, 6), (8, 12)), ((5, 7), (20, 21)), ((1, 1), (32, 6)), ((2, 3), (8, 3)), ((1, 1), (7, 1)),
    ((16, 16), (32, 32)), ((1, 4), (2, 64)), ((4, 1), (16, 2)), ((1, 5), (1, 40)),
]  # fmt: skip
PAIRS_4D = [
    ((1, 1, 1, 1), (8, 4, 3, 3)), ((2, 4, 1, 3), (16, 8, 3, 3)), ((4, 2, 3, 1), (8, 2, 3, 3)),
    ((1, 3, 1, 1), (16, 6, 3, 3)), ((1, 4, 1, 1), (1, 8, 3, 1)), ((1, 1, 1, 1), (5, 4, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "model", "pairs"),
    [
        ((32, 64), Crisp(n=2, block=16, keep=2), PAIRS),
        ((16, 8, 3, 3), Crisp(n=2, block=8, keep=4), PAIRS_4D[:3]),
        ((16, 6, 3, 3), Crisp(n=1, block=(8, 4), keep=4), PAIRS_4D[3:]),
    ],
)
def test_equals_drawn_masks(shape, model, pairs):
    """2,000 masks, within 4.5 standard errors: as many tiles hold k, and as many sub-tiles of those are empty."""
    occupancy, rng = model.occupancy(shape), np.random.default_rng(0)
    masks = np.array([occupancy.draw(rng) for _ in range(2000)])
    assert (masks.reshape(len(masks), -1).mean(axis=1) == occupancy.density).all()
    for sub, tile in pairs:
        k, p = occupancy.distribution(tile)
        within = occupancy.empty_within(sub, tile, k)
        mean, square = p @ k, p @ k.astype(float) ** 2
        held = tile_sums(masks, tile).reshape(len(masks), -1).astype(float)
        inner = [(tile_sums(part, sub) == 0).reshape(len(part), -1) for part in parts(masks, tile)]
        empty = np.concatenate(inner, axis=1).mean(axis=1)
        tiles = np.array([one.shape[1] for one in inner], float)
        if len(set(tiles.tolist())) == 1:  # no tile is cut off, so that every sub-tile is in a tile of the same size
            assert_mean(empty, within @ p)
        assert_mean(held.mean(axis=1), mean)
        assert_mean((held**2).mean(axis=1), square)
        assert_mean((held == 0).mean(axis=1), occupancy.empty(tile))


def assert_mean(found, expected):
    error = found.std() / np.sqrt(len(found)) + 1e-12 * max(1.0, abs(expected))
    assert abs(found.mean() - expected) < 4.5 * error + 1 / len(found) * (found.std() == 0)


def test_worked_values():
    occupancy = Crisp(n=2, block=16, keep=2).occupancy((32, 64))
    expected = {
        (16, 16): ([0, 128], [1 / 2, 1 / 2]),
        (32, 8): ([0, 64, 128], [1 / 4, 1 / 2, 1 / 4]),
        (16, 32): ([0, 128, 256], [1 / 6, 4 / 6, 1 / 6]),
        (32, 64): ([512], [1]),
    }
    for tile, (nonzeros, shares) in expected.items():
        k, p = occupancy.distribution(tile)
        assert k.tolist() == nonzeros and p == pytest.approx(shares, abs=1e-14)
    assert occupancy.empty((4, 2)) == pytest.approx(1 / 2 + 1 / 2 * (1 / 6) ** 4, abs=1e-15)
    assert occupancy.empty_within((8, 8), (16, 32), np.array([128]))[0] == pytest.approx(1 / 2, abs=1e-15)
    assert occupancy.empty_within((1, 1), (16, 16), np.array([128]))[0] == pytest.approx(1 / 2, abs=1e-15)
    assert occupancy.empty_within((1, 1), (16, 32), np.array([128]))[0] == pytest.approx(3 / 4, abs=1e-15)
    assert occupancy.largest_stored((32, 64), (16, 16)) == 1024
    assert occupancy.largest_stored((32, 64), (1, 1)) == 1024  # all of kept blocks: no fewer than the nonzeros


@pytest.mark.parametrize(
    ("shape", "model", "tilings"),
    [
        ((128, 1152), Crisp(n=1, block=16, keep=29), [((1, 1), (4, 36)), ((8, 9), (128, 72)), ((2, 96), (64, 288))]),
        ((64, 730), Crisp(n=2, block=16, keep=9), [((1, 1), (64, 730)), ((16, 73), (64, 365)), ((1, 5), (32, 365))]),
        ((512, 4608), Crisp(n=2, block=64, keep=14), [((64, 4), (512, 2304)), ((16, 1), (256, 36))]),
    ],
)
def test_the_empty_sub_tiles_of_all_tiles_are_the_empty_tiles(shape, model, tilings):
    """The law of total probability, for tilings without cut edges; large tiles have their mean."""
    occupancy = model.occupancy(shape)
    for sub, tile in tilings:
        k, p = occupancy.distribution(tile)
        assert occupancy.empty_within(sub, tile, k) @ p == pytest.approx(occupancy.empty(sub), abs=1e-12)
        assert p @ k == pytest.approx(occupancy.density * np.prod(tile), rel=1e-12)
        full = occupancy.empty_within(sub, tile, np.array([occupancy.largest(tile)]))
        assert 0 <= full[0] <= occupancy.empty(sub) + 1e-12


def test_tiles_as_full_as_can_be_are_told_however_improbable_they_are():
    """289 of 575 columns in each of 512 rows: 143 whole groups, and one or two columns of the next, with a nonzero in each."""
    occupancy = Crisp(n=2, block=64, keep=14).occupancy((512, 4600))
    largest = np.array([occupancy.largest((512, 575))])
    assert largest == 512 * 289
    for rows in (1, 32, 64):
        found = occupancy.empty_within((rows, 1), (512, 575), largest)
        assert found == pytest.approx(572 / 575 * 0.5**rows, rel=1e-9)
    assert occupancy.empty_within((1, 5), (512, 575), largest) == 0.0


def test_a_tensor_off_the_grid_is_looked_at_once_per_pair_of_columns(monkeypatch):
    """Whatever the rows: geometry is found once, however little is remembered, and bands that are alike are one."""
    found, joined = [], []
    strips, join = Columns._strips, CrispOccupancy._joined
    monkeypatch.setattr(Columns, "_strips", lambda *about: found.append(about[1:]) or strips(*about))
    monkeypatch.setattr(CrispOccupancy, "_joined", lambda *about: joined.append(about[1:]) or join(*about))
    occupancy = Crisp(n=2, block=64, keep=14).occupancy((512, 4600))
    occupancy.memory.limit = 1 << 10
    rows = [(height, inner) for height in (16, 64, 128) for inner in (1, 8, 16)]
    widths = [(230, 46), (460, 10), (115, 5)]
    for (height, inner), (width, part) in itertools.product(rows, widths):
        k, p = occupancy.distribution((height, width))
        within = occupancy.empty_within((inner, part), (height, width), k)
        assert within @ p == pytest.approx(occupancy.empty((inner, part)), abs=1e-12)
    assert len(found) == len(set(found)) == 3 + 3 + 3  # with a part, whole, and the part alone
    geometry = [occupancy.columns.strips((width,), (part,)) for width, part in widths]
    assert len(joined) < 1.6 * len(rows) * sum(map(len, geometry))  # bands that are alike, and empty ones, once


def test_pairs_get_the_same_alone_and_together():
    """To the last bit, whatever was asked before: on the grid and off it, also of tiles that an edge cuts off."""
    rng, model = np.random.default_rng(3), Crisp(n=2, block=(8, 16), keep=3)
    for shape in ((32, 96), (40, 100)):
        occupancy = model.occupancy(shape)
        tiles = np.array(
            [[rng.integers(1, size + 1) for size in shape] for _ in range(25)] + [[8, 32], [4, 32], [32, 96]] * 5
        )
        subs = rng.integers(1, tiles + 1)
        k = [occupancy.distribution(tuple(tile))[0] for tile in tiles.tolist()]
        k[::5] = [np.array([occupancy.largest(tuple(tile))]) for tile in tiles[::5].tolist()]
        together = occupancy.empty_within_many(subs, tiles, np.concatenate(k), np.array([len(one) for one in k]))
        for some, *pair in zip(
            np.split(together, np.cumsum([len(one) for one in k])[:-1]), subs, tiles, k, strict=True
        ):
            sub, tile = (tuple(one.tolist()) for one in pair[:2])
            assert some.tobytes() == model.occupancy(shape).empty_within(sub, tile, pair[2]).tobytes()


def test_the_next_search_of_an_equal_tensor_has_the_tables_of_the_last():
    one, same, other = (
        TensorTables.shared(Crisp(n=2, block=4, keep=k).occupancy((8, 20)), frozenset(), ()) for k in (2, 2, 3)
    )
    assert one is same and one is not other


@pytest.mark.parametrize(
    "model",
    [
        Crisp(n=2, m=4, block=8, keep=1),
        Crisp(n=1, m=4, block=4, block_density=0.4),
        Crisp(n=3, m=4, block=[3, 4], keep=2),
    ],
)
def test_keeps_the_contract(model):
    check_density(model, (24, 48))


def test_every_block_row_keeps_as_many_blocks_also_where_edges_cut_them():
    occupancy = Crisp(n=2, block=8, keep=2).occupancy((20, 30))
    drawn = occupancy.draw(np.random.default_rng(0))
    blocks = tile_sums(drawn[None], (8, 8))[0] > 0
    assert (blocks.sum(axis=1) == 2).all()
    groups = tile_sums(drawn[None], (1, 4))[0]
    assert set(np.unique(groups)) == {0, 2}
    assert Crisp(n=3, m=4, block=8, keep=1).occupancy((8, 6)).draw(np.random.default_rng(0)).sum() == 8 * (3 + 2)


def test_errors():
    for wrong, text in [
        ({"n": 5, "block": 8, "keep": 1}, "n = 5 is more than m = 4"),
        ({"n": 2, "block": 6, "keep": 1}, "6 columns does not hold whole groups of m = 4"),
        ({"n": 2, "block": 8}, "expected one of keep and block_density, found neither"),
        ({"n": 2, "block": 8, "keep": 1, "block_density": 0.5}, "found both"),
        ({"n": 2, "block": (8, 8, 8), "keep": 1}, "expected a number from 1 on, or two"),
        ({"n": 2, "block": 8, "block_density": 1.5}, "expected a share above 0"),
    ]:
        with pytest.raises(ValueError, match=text):
            Crisp(**wrong)
    with pytest.raises(SpecError, match="a row of 16 columns has 2 blocks of 8"):
        Crisp(n=2, block=8, keep=3).occupancy((8, 16))
    with pytest.raises(SpecError, match="two ranks or more"):
        Crisp(n=2, block=8, keep=1).occupancy((16,))
