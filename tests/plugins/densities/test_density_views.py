"""Weights of convolutions as matrices, and as hardware with N:M multiplexers keeps them."""

import numpy as np
import pytest

from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load

REGISTRY = load()


def density(**table):
    return REGISTRY.build("density", table)


def test_actual_weights_flatten_with_the_channels_fastest(tmp_path):
    weights = np.random.default_rng(0).random((8, 6, 3, 2)) < 0.3
    np.save(tmp_path / "w.npy", weights.astype(np.uint8))
    data = density(type="data", file=str(tmp_path / "w.npy"))
    found = density(type="flattened", of=data, shape=[8, 6, 3, 2]).occupancy((8, 40))
    assert np.array_equal(found.draw(None)[:, :36], weights.transpose(0, 2, 3, 1).reshape(8, 36))
    assert not found.draw(None)[:, 36:].any()  # padded
    with pytest.raises(SpecError, match="a tensor of 8 x 36 does not fit in one of 8 x 32"):
        density(type="flattened", of=data, shape=[8, 6, 3, 2]).occupancy((8, 32))


def test_crisp_is_crisp_when_it_is_flattened():
    crisp = density(type="crisp", n=2, block=16, keep=2)
    flat = density(type="flattened", of=crisp, shape=[32, 16, 3, 3]).occupancy((32, 144))
    assert type(flat) is type(crisp.occupancy((32, 144)))
    for tile in ((16, 16), (4, 64), (1, 1), (32, 16)):
        a, b = (
            flat.distribution(tile),
            crisp.occupancy((32, 16, 3, 3)).distribution((tile[0], min(tile[1], 16), max(1, tile[1] // 16), 1)),
        )
        assert tile[1] == 64 or all(map(np.array_equal, a, b))


@pytest.mark.parametrize(
    ("own", "allowed", "expected"),
    [
        ({"type": "n-of-m", "n": 2, "m": 4}, [2], 0.5),
        ({"type": "n-of-m", "n": 1, "m": 4}, [2], 0.5),  # padded
        ({"type": "n-of-m", "n": 3, "m": 4}, [2], 1.0),
        ({"type": "n-of-m", "n": 4, "m": 16}, [2], 1.0),  # all four may be neighbours
        ({"type": "uniform", "density": 0.5}, [2], 1.0),
        ({"type": "uniform", "density": 0.5}, [1, 2, 3], 1.0),
        ({"type": "structured", "density": 1.0}, [2], 1.0),
        ({"type": "crisp", "n": 2, "block": 16, "keep": 1}, [2], 0.5),  # without an index of blocks
    ],
)
def test_groups_take_the_least_n_that_the_hardware_has(own, allowed, expected):
    found = density(type="grouped", n=allowed, m=4, of=density(**own), rank=1).occupancy((32, 64))
    assert found.density == expected


def test_blocks_of_zeros_are_left_out_and_the_others_hold_n_of_m(tmp_path):
    weights = np.zeros((32, 64), np.uint8)
    weights[3, 20], weights[20, 40:42] = 1, 1
    np.save(tmp_path / "w.npy", weights)
    data = density(type="data", file=str(tmp_path / "w.npy"))
    kept = density(type="grouped", n=[1, 2, 3, 4], m=4, block=[16, 16], of=data, rank=1).occupancy((32, 64)).draw(None)
    assert kept.sum() == 2 * 16 * 16 // 2 and kept[:16, 16:32].sum() == kept[16:, 32:48].sum() == 128
    assert (kept | (weights > 0) == kept).all() and (kept.reshape(32, 16, 4).sum(axis=2) <= 2).all()
    exact = density(type="crisp", n=2, block=16, keep=1)
    assert (
        density(type="grouped", n=[1, 2, 3], m=4, block=[16, 16], of=exact, rank=1).occupancy((32, 64)).density == 0.125
    )


ODD = [
    *({"type": "grouped", "n": [1, 2], "rank": rank, "block": block} for rank in (-1, 0, 1, 2) for block in ([0, 0], [2, 2])),
    *({"type": "flattened", "shape": shape} for shape in ([8], [8, 8], [4, 2, 8], [2, 4, 2, 4])),
]  # fmt: skip


@pytest.mark.parametrize("table", ODD, ids=str)
@pytest.mark.parametrize("shape", [(8,), (7, 5), (8, 4, 2), (4, 2, 4, 2)], ids=str)
def test_views_of_tensors_with_other_ranks_are_refused(table, shape, tmp_path):
    np.save(tmp_path / "w.npy", np.eye(8))
    for own in ({"type": "uniform", "density": 0.1}, {"type": "n-of-m", "n": 1, "m": 4}, {"type": "crisp", "n": 1, "m": 2,
                "block": [2, 4], "keep": 1}, {"type": "data", "file": str(tmp_path / "w.npy")}):  # fmt: skip
        try:
            assert 0 < density(of=density(**own), **table).occupancy(shape).density <= 1
        except SpecError as error:
            assert str(error)


@pytest.mark.parametrize("block", [[0, 2], [2, 0], [-2, 2]], ids=str)
def test_a_block_has_two_sizes_or_none(block):
    with pytest.raises(SpecError, match=r"block: .*expected two sizes, or two zeros"):
        density(type="grouped", n=[2], of=density(type="uniform", density=0.5), rank=1, block=block)
