"""CRISP's storage format, bit by bit (Section III-A): blocked ELLPACK of blocks, offsets of N:M in them, then the values.

The layout, least significant bit first: for every block row the `kept` block columns, ascending; for every block row,
block, row and group the offsets of its N words, ascending; the values in the same order. A group with fewer nonzeros
stores zeros, a block row with fewer blocks stores empty ones. The sizes of a header are not counted.
"""

from __future__ import annotations

import attrs
import numpy as np
from sparsemap_plugins.papers.crisp.storage import CrispShape

from sparsemap.pieces.contracts.base import Array


@attrs.frozen(eq=False)
class CrispMatrix:
    """A matrix in the format: three streams of bits as bytes, each filled up with zeros."""

    shape: CrispShape
    blocks: bytes
    offsets: bytes
    values: bytes
    dtype: str

    @property
    def metadata(self) -> bytes:
        """Block indices and offsets, one after the other without a gap."""
        index, offset = self.shape.metadata_bits()
        bits = np.concatenate([_bits(self.blocks, index), _bits(self.offsets, offset)])
        return np.packbits(bits, bitorder="little").tobytes()


def encode(matrix: Array, block: int, n: int, m: int = 4, kept: int | None = None) -> CrispMatrix:
    """A matrix (rows, columns) with up to n nonzeros in every aligned group of m words of a row.

    `kept`: blocks that each block row stores; by default as many as the fullest one needs. `ValueError` where a group or a
    block row holds more, or sizes do not fit.
    """
    rows, columns = matrix.shape
    shape = CrispShape(rows, columns, block, n, m, kept or 1)
    tiles = matrix.reshape(rows // block, block, shape.block_columns, block // m, m).transpose(0, 2, 1, 3, 4)
    used = (tiles != 0).any(axis=(2, 3, 4))  # (block rows, block columns)
    most = int(used.sum(axis=1).max(initial=0))
    shape = attrs.evolve(shape, kept=kept or max(1, most))
    if most > shape.kept:
        raise ValueError(f"a block row holds {most} blocks, expected at most {shape.kept}")
    order = np.argsort(~used, axis=1, kind="stable")[:, : shape.kept]  # used blocks first, then others as padding
    index = np.sort(order, axis=1)
    stored = np.take_along_axis(tiles, index[:, :, None, None, None], axis=1)  # (block rows, kept, block, groups, m)
    filled = (stored != 0).sum(axis=-1)
    if (filled > n).any():
        raise ValueError(f"a group of {m} words holds {int(filled.max())} nonzeros, expected at most {n}")
    offset = np.sort(np.argsort(stored == 0, axis=-1, kind="stable")[..., :n], axis=-1)
    values = np.take_along_axis(stored, offset, axis=-1)
    return CrispMatrix(
        shape, _pack(index, shape.block_bits), _pack(offset, shape.offset_bits), values.tobytes(), matrix.dtype.str
    )


def decode(encoded: CrispMatrix) -> Array:
    """The matrix (rows, columns)."""
    shape = encoded.shape
    block_rows, groups = shape.rows // shape.block, shape.block // shape.m
    index = _unpack(encoded.blocks, shape.block_bits, (block_rows, shape.kept))
    places = (block_rows, shape.kept, shape.block, groups, shape.n)
    offset = _unpack(encoded.offsets, shape.offset_bits, places)
    stored = np.zeros((*places[:-1], shape.m), encoded.dtype)
    np.put_along_axis(stored, offset, np.frombuffer(encoded.values, encoded.dtype).reshape(places), axis=-1)
    tiles = np.zeros((block_rows, shape.block_columns, shape.block, groups, shape.m), encoded.dtype)
    np.put_along_axis(tiles, index[:, :, None, None, None], stored, axis=1)
    return tiles.transpose(0, 2, 1, 3, 4).reshape(shape.rows, shape.columns)


def _pack(numbers: Array, width: int) -> bytes:
    bits = numbers.reshape(-1, 1) >> np.arange(width) & 1
    return np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()


def _bits(data: bytes, count: int) -> Array:
    return np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little")


def _unpack(data: bytes, width: int, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape))
    bits = _bits(data, count * width).reshape(count, width).astype(np.int64)
    return (bits << np.arange(width)).sum(axis=1).reshape(shape)
