"""Balanced blocks against drawn tensors, and masks from files against the tensor that they stand for."""

from pathlib import Path

import numpy as np
import pytest
from sparsemap_plugins.densities.block_masks import BalancedBlock, Gamma, expanded

from sparsemap import SpecError
from sparsemap.testing import check_density

SHAPE = (24, 32, 3, 3)


@pytest.mark.parametrize("balance", ["rows", "columns"])
def test_balanced_blocks_keep_the_contract(balance: str) -> None:
    check_density(BalancedBlock(density=0.5, block=(4, 4), balance=balance), (16, 24))
    check_density(BalancedBlock(density=0.3, balance=balance), (32, 16, 3))


def test_every_block_row_or_column_keeps_as_many() -> None:
    for balance, axis in (("rows", 1), ("columns", 0)):
        drawn = BalancedBlock(density=0.5, balance=balance).occupancy(SHAPE).draw(np.random.default_rng(0))
        blocks = drawn[::8, ::8, 0, 0]
        assert len(set(blocks.sum(axis=axis).tolist())) == 1 and drawn[:8, :8].all() == blocks[0, 0]


@pytest.mark.parametrize("tile", [(8, 16, 3, 3), (24, 8, 1, 3), (16, 32, 1, 1), (4, 24, 3, 3)])
def test_distributions_are_those_of_drawn_tensors(tile: tuple[int, ...]) -> None:
    model = BalancedBlock(density=0.5).occupancy(SHAPE)
    rng = np.random.default_rng(0)
    counts, part = [], []
    for _ in range(4000):
        drawn = model.draw(rng)
        held = drawn[: tile[0], : tile[1], : tile[2], : tile[3]]
        counts.append(int(held.sum()))
        part.append(not held[: min(8, tile[0]), :8, :1, :1].any())
    k, share = model.distribution(tile)
    measured = np.array([np.mean(np.array(counts) == value) for value in k])
    assert sum(measured) == pytest.approx(1) and np.abs(measured - share).max() < 0.03
    within = model.empty_within((min(8, tile[0]), 8, 1, 1), tile, k)
    assert float(within @ share) == pytest.approx(np.mean(part), abs=0.03)


def test_a_mask_of_blocks_is_the_tensor_that_it_stands_for(tmp_path: Path) -> None:
    mask = np.random.default_rng(0).random((3, 4)) < 0.5
    np.save(tmp_path / "mask.npy", mask)
    occupancy = Gamma(file=tmp_path / "mask.npy").occupancy(SHAPE)
    whole = expanded(mask, (8, 8), SHAPE)
    assert np.array_equal(occupancy.draw(np.random.default_rng(0)), whole) and occupancy.density == mask.mean()
    k, share = occupancy.distribution((8, 8, 3, 3))
    assert k.tolist() == [0, 576] and share[1] == mask.mean()
    with pytest.raises(SpecError, match="holds 3 x 4 blocks, and the workload's tensor has 4 x 4"):
        Gamma(file=tmp_path / "mask.npy").occupancy((32, 32, 1, 1))


def test_a_tensor_that_is_padded_has_no_words_behind_its_mask(tmp_path: Path) -> None:
    """As with the words of a file: up to a quarter longer than the mask in a rank."""
    mask = np.ones((3, 4), bool)
    np.save(tmp_path / "mask.npy", mask)
    drawn = Gamma(file=tmp_path / "mask.npy").occupancy((28, 40, 1, 1)).draw(np.random.default_rng(0))
    assert drawn[:24, :32].all() and drawn.sum() == 24 * 32
    for shape in ((31, 32, 1, 1), (24, 41, 1, 1), (16, 32, 1, 1)):
        with pytest.raises(SpecError, match="holds 3 x 4 blocks, and the workload's tensor has"):
            Gamma(file=tmp_path / "mask.npy").occupancy(shape)
