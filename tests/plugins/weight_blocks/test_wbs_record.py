"""The storage of weights: sizes of the paper's chunks, and what is packed comes back."""

import numpy as np
import pytest
from sparsemap_plugins.weight_blocks.cost_model import ConvProblem
from sparsemap_plugins.weight_blocks.record import ChunkProfile, pack, record_bytes, unpack
from wbs_layers import conv, registry

from sparsemap import Fiber, load_problem
from sparsemap.testing import check_format


@pytest.mark.parametrize(
    ("co", "ci", "kernel", "kept", "size"),
    [(16, 8, 7, 1, 6340), (64, 64, 1, 1, 4480), (16, 64, 3, 1, 9312), (16, 64, 3, 0.5, 4704), (64, 256, 1, 0.5, 8960)],
)
def test_records_have_the_sizes_of_the_listings(co, ci, kernel, kept, size) -> None:
    blocks = kept * (co // 8) * (ci // 8)
    assert record_bytes(co, ci, blocks, kernel * kernel) == size


@pytest.mark.parametrize("index", ["u16", "bitmap"])
@pytest.mark.parametrize("bias", [True, False])
def test_unpacking_a_record_gives_what_was_packed(index: str, bias: bool) -> None:
    rng = np.random.default_rng(0)
    for co, ci, kernel in ((8, 8, (1, 1)), (16, 40, (3, 3)), (24, 64, (1, 7)), (40, 8, (5, 1))):
        for share in (0.0, 0.4, 1.0):
            kept = rng.random((co // 8, ci // 8)) < share
            weights = rng.integers(-128, 128, (co, *kernel, ci), np.int8)
            values = rng.integers(-(2**31), 2**31, co, np.int32) if bias else None
            record = pack(weights, kept, values, index)
            assert len(record) == record_bytes(co, ci, int(kept.sum()), kernel[0] * kernel[1], index, bias)
            found, its_bias, blocks = unpack(record, co, ci, kernel, index, bias)
            assert np.array_equal(found, kept) and (not bias or np.array_equal(its_bias, values))
            by_block = weights.reshape(co // 8, 8, *kernel, ci // 8, 8).transpose(0, 4, 2, 3, 1, 5)
            assert np.array_equal(blocks, by_block[kept])


def test_rows_of_cores_store_as_many_blocks_as_the_fullest() -> None:
    mask = np.zeros((8, 4), bool)
    mask[0, :3] = True  # the first of four rows of cores has two block rows, with 3 + 1 blocks
    mask[1, 0] = True
    mask[2, 0] = True
    profile = ChunkProfile.of(conv(8, 32, 64, mask=mask), rows=4, per_row=16, co=16, ci=32)
    assert profile.kept.tolist() == [[4]] and profile.padding == 4 * 4 - mask.sum()
    parts = ChunkProfile.of(conv(8, 32, 64, mask=mask), rows=4, per_row=16, co=8, ci=16)
    assert parts.kept.tolist() == [[2, 1], [1, 0]]


def test_evenly_pruned_rows_need_no_padding() -> None:
    profile = ChunkProfile.of(conv(8, 64, 64, density=0.5), rows=4, per_row=16, co=16, ci=64)
    assert profile.kept.tolist() == [[8]] and profile.padding == 0


def test_the_format_has_the_bits_of_the_index_of_a_record() -> None:
    found = registry().get("format", "weight-block")
    check_format(found)
    rows, columns = 64, 256
    units = found.units(Fiber.of(np.array([rows / 2.0]), columns / 8, np.array([16.0]), 1, rows))
    bits = float(np.asarray(units.metadata * units.metadata_bits)[0])
    assert bits / 8 == record_bytes(rows, columns, 0, 1, bias=False)


def test_a_mask_of_blocks_as_a_density_is_the_mask_of_the_compiled_layer(tmp_path) -> None:
    mask = np.random.default_rng(0).random((8, 4)) < 0.5
    np.save(tmp_path / "mask.npy", mask)
    layer = {"type": "conv2d", "k": 64, "c": 32, "p": 14, "q": 14, "r": 3, "s": 3, "padding": 1}
    density = {"Q": {"type": "gamma", "file": str(tmp_path / "mask.npy")}}
    problem = load_problem({**layer, "density": density}, "aie2-4x4", "aie2", "delay", registry=registry())
    assert np.array_equal(ConvProblem.of(problem).cut.layer.mask, mask)
