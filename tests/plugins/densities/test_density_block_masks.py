"""Masks of blocks from files against their tensors."""

from pathlib import Path

import numpy as np
import pytest
from sparsemap_plugins.densities.block_masks import Gamma, expanded

from sparsemap import SpecError

SHAPE = (24, 32, 3, 3)


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
