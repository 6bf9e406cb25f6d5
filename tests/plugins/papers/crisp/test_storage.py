"""CRISP's storage format: what is encoded decodes to the same, in as many bits as the formula says."""

import numpy as np
import pytest
from reference_crisp import decode, encode
from sparsemap_plugins.papers.crisp.storage import CrispShape, other_formats


def pruned(shape: CrispShape, rng: np.random.Generator, fill: float = 1.0) -> np.ndarray:
    """Random weights: `kept` blocks in every block row, n words in every group of them; then only a share stays."""
    rows, columns, block = shape.rows, shape.columns, shape.block
    chosen = rng.random((rows // block, columns // block)).argsort(axis=1) < shape.kept
    words = rng.random((rows, columns // shape.m, shape.m)).argsort(axis=2) < shape.n
    kept = chosen.repeat(block, axis=0).repeat(block, axis=1) & words.reshape(rows, columns)
    return np.where(kept & (rng.random((rows, columns)) < fill), rng.integers(1, 100, (rows, columns)), 0).astype(
        np.int8
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.parametrize("fill", [1.0, 0.6])
def test_decoding_gives_the_matrix_and_the_formula_gives_the_bits(n, block, fill):
    rng = np.random.default_rng(block + n)
    shape = CrispShape(2 * block, 5 * block, block, n, 4, 3)
    matrix = pruned(shape, rng, fill)
    matrix[:block, : 4 * block] *= rng.random() < 0.5  # a block row that needs fewer blocks than the others
    encoded = encode(matrix, block, n)
    assert encoded.shape == shape
    assert np.array_equal(decode(encoded), matrix)
    index, offset = shape.metadata_bits()
    assert index == 2 * 3 * 3 and offset == 2 * 3 * block * block * n // 4 * 2
    assert len(encoded.blocks) == -(-index // 8) and len(encoded.offsets) == -(-offset // 8)
    assert len(encoded.metadata) == -(-(index + offset) // 8)
    assert len(encoded.values) == shape.words


def test_the_bits_of_a_matrix_written_by_hand():
    matrix = np.zeros((4, 16), np.uint8)
    matrix[:, 8:12] = [[5, 0, 6, 0], [0, 7, 0, 0], [0, 0, 8, 9], [1, 2, 0, 0]]
    encoded = encode(matrix, block=4, n=2)
    assert encoded.blocks == bytes([2])
    offsets = [0, 2, 0, 1, 2, 3, 0, 1]  # the second row stores a zero at the first place that is free
    assert int.from_bytes(encoded.offsets, "little") == sum(offset << 2 * i for i, offset in enumerate(offsets))
    assert list(encoded.values) == [5, 6, 0, 7, 8, 9, 1, 2]
    assert encoded.shape.metadata_bits() == (2, 16) and encoded.shape.metadata_bits("paper") == (0, 16)


def test_the_worked_example_of_a_layer_of_resnet50():
    shape = CrispShape(512, 4608, 64, 2, 4, 14)
    assert shape.words == 229_376
    assert shape.metadata_bits() == (784, 458_752)
    assert shape.metadata_bits("paper") == (336, 458_752)
    others = other_formats(shape, np.full(512, shape.words // 512))
    assert others["csr"] == 2_991_122
    assert others["ellpack"] == 512 * (shape.words // 512) * 13
    assert others["bitmask"] == 512 * 4608


def test_what_does_not_fit_is_told():
    matrix = np.ones((8, 8), np.int8)
    for arguments, text in [
        ({"block": 3, "n": 2}, "8 x 8 in blocks of 3: expected whole blocks"),
        ({"block": 2, "n": 2}, "expected whole groups of m = 4"),
        ({"block": 4, "n": 2}, "a group of 4 words holds 4 nonzeros, expected at most 2"),
        ({"block": 4, "n": 4, "kept": 1}, "a block row holds 2 blocks, expected at most 1"),
        ({"block": 4, "n": 4, "kept": 3}, r"expected 1..2 kept blocks, found 3"),
    ]:
        with pytest.raises(ValueError, match=text):
            encode(matrix, **arguments)
