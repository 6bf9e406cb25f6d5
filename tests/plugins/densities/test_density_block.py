"""Block density: blocks in the place of words."""

import numpy as np
import pytest
from sparsemap_plugins.densities.block import Block
from sparsemap_plugins.densities.uniform import Uniform

from sparsemap.errors import SpecError


def test_blocks_of_one_word_are_uniform():
    block, uniform = Block(density=0.3, block=(1,)).occupancy((6, 10)), Uniform(density=0.3).occupancy((6, 10))
    for a, b in zip(block.distribution((2, 5)), uniform.distribution((2, 5)), strict=True):
        assert np.array_equal(a, b)
    k = np.arange(1, 6)
    assert block.empty_within((1, 3), (2, 5), k) == pytest.approx(uniform.empty_within((1, 3), (2, 5), k), rel=1e-15)
    assert block.density == uniform.density


@pytest.mark.parametrize(
    ("tile", "sub"),
    [((4, 4), (4, 4)), ((8, 4), (4, 4)), ((8, 8), (4, 8)), ((2, 4), (1, 1)), ((2, 8), (2, 4)), ((16, 2), (4, 1))],
)
def test_equals_drawn_tensors(tile, sub):
    occupancy = Block(density=0.25, block=(4, 4)).occupancy((16, 16))
    counts, empty, subs = {}, 0.0, {}
    (a, b), (c, d), draws = tile, sub, 600
    for seed in range(draws):
        tensor = occupancy.draw(np.random.default_rng(seed))
        assert tensor.sum() == 64
        tiles = tensor.reshape(16 // a, a, 16 // b, b).swapaxes(1, 2).reshape(-1, a, b)
        for part in tiles:
            k = int(part.sum())
            counts[k] = counts.get(k, 0) + 1 / (draws * len(tiles))
            without = (part.reshape(a // c, c, b // d, d).sum(axis=(1, 3)) == 0).mean()
            total, times = subs.get(k, (0, 0))
            subs[k] = total + without, times + 1
        empty += (tiles.sum(axis=(1, 2)) == 0).mean() / draws
    k, p = occupancy.distribution(tile)
    assert set(counts) <= set(k.tolist())
    assert p == pytest.approx([counts.get(x, 0) for x in k.tolist()], abs=0.04)
    assert occupancy.empty(tile) == pytest.approx(empty, abs=0.04)
    within = occupancy.empty_within(sub, tile, k)
    for x, share in zip(k.tolist(), within, strict=True):
        if subs.get(x, (0, 0))[1] > 300:
            assert share == pytest.approx(subs[x][0] / subs[x][1], abs=0.06)
    assert within @ p == pytest.approx(occupancy.empty(sub), rel=1e-12)
    assert occupancy.largest(tile) == k[-1]


def test_lengths_that_do_not_divide():
    occupancy = Block(density=0.5, block=(3,)).occupancy((10, 10))
    k, p = occupancy.distribution((2, 5))
    assert k.tolist() == [0, 2, 5, 8, 10] and p.sum() == pytest.approx(1)
    assert occupancy.empty_within((1, 1), (2, 5), k)[[0, -1]].tolist() == [1, 0]
    assert occupancy.draw(np.random.default_rng(0)).shape == (10, 10)


def test_errors():
    with pytest.raises(SpecError, match="ranks"):
        Block(density=0.5, block=(2, 2)).occupancy((8,))
    for arguments in ({"density": 2, "block": (1,)}, {"density": 0.5, "block": (0,)}, {"density": 0.5, "block": ()}):
        with pytest.raises(ValueError):
            Block(**arguments)
