"""Storage of weights: a contiguous record per chunk, with an index and the kept blocks.

A chunk of `co` output and `ci` input channels, both whole blocks, is in this order: the int32 bias of the output
channels (unless another part of the input channels carries the bias), an index with an entry per block position, and
the kept blocks in the order of the index, row by row. Within a block the kernel's rows come first, then the kernel's
columns, then the output channels, each with all input channels. The index has 16 bits per position, the column of a
kept block or 0xFFFF, or a bit per position, the highest bit of a byte first."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .layers import BLOCK, Block, MeshLayer

EMPTY = 0xFFFF


def record_bytes(
    co: Any, ci: Any, kept: Any, taps: int, index: str = "u16", bias: Any = True, block: Block = BLOCK
) -> Any:
    """Bytes of a record with `kept` blocks and `taps` positions of the kernel. Numbers or arrays of one shape."""
    positions = (co // block[0]) * (ci // block[1])
    entries = 2 * positions if index == "u16" else -(-positions // 8)
    return kept * (block[0] * block[1] * taps) + 4 * co * bias + entries


def pack(weights: Array, kept: Array, bias: Array | None, index: str = "u16", block: Block = BLOCK) -> bytes:
    """The record of a chunk: int8 weights (co, kh, kw, ci), kept blocks (block rows, block columns) bool, int32 bias
    (co,) or None."""
    co, kh, kw, ci = weights.shape
    outs, ins = block
    rows, columns = np.nonzero(kept)
    blocks = weights.reshape(co // outs, outs, kh, kw, ci // ins, ins)[rows, :, :, :, columns]
    if index == "u16":
        entries = np.where(kept, np.arange(ci // ins), EMPTY).astype("<u2").tobytes()
    else:
        entries = np.packbits(kept).tobytes()
    first = b"" if bias is None else bias.astype("<i4").tobytes()
    return first + entries + np.ascontiguousarray(blocks.transpose(0, 2, 3, 1, 4)).astype(np.int8).tobytes()


def unpack(
    record: Any, co: int, ci: int, taps: tuple[int, int], index: str = "u16", bias: bool = True, block: Block = BLOCK
) -> tuple[Array, Array | None, Array]:
    """(block rows, block columns) bool of kept blocks, the bias, and the kept blocks (K, kh, kw, rows, columns) in the
    order of the index. Trailing bytes are padding; ValueError for a broken record."""
    data = np.frombuffer(bytes(record), np.uint8)
    shape = co // block[0], ci // block[1]
    at = 4 * co if bias else 0
    entries = 2 * shape[0] * shape[1] if index == "u16" else -(-shape[0] * shape[1] // 8)
    if len(data) < at + entries:
        raise ValueError(f"{len(data)} bytes are no record of {co} x {ci} channels")
    values = data[:at].view("<i4") if bias else None
    names = data[at : at + entries]
    if index == "u16":
        columns = names.view("<u2").reshape(shape)
        kept = columns != EMPTY
        if not np.array_equal(columns[kept], np.nonzero(kept)[1]):
            raise ValueError("the index of a record names other columns than those where its entries stand")
    else:
        kept = np.unpackbits(names, count=shape[0] * shape[1]).astype(bool).reshape(shape)
    blocks = (int(kept.sum()), *taps, *block)
    words = data[at + entries :][: math.prod(blocks)]
    if len(words) < math.prod(blocks):
        raise ValueError(f"{len(data)} bytes are too few for the {blocks[0]} blocks of the index")
    return kept, values, words.view(np.int8).reshape(blocks)


@attrs.frozen(eq=False)
class ChunkProfile:
    """Kept blocks of the chunks of a layer, for one split of its channels, all rows of cores alike.

    Rows of cores run in lockstep with records of one size: rows with fewer blocks than the fullest row have padding."""

    co: Array
    """(Q,) output channels of a core's chunks; the last chunk may have fewer."""
    counts: Array
    """(M, Q, N) kept blocks of the chunks of every row of cores; N parts of the input channels."""
    kept: Array
    """(Q, N) largest number of kept blocks over the rows of cores."""
    bytes: Array
    """(Q, N) bytes of the records; the first part has the bias."""

    @property
    def padding(self) -> int:
        """Blocks stored and computed only because another row has more."""
        return int(len(self.counts) * self.kept.sum() - self.counts.sum())

    def passes(self, count: int) -> list[range]:
        """The chunks of every pass, for `count` passes."""
        chunks = len(self.co)
        each = -(-chunks // count)
        return [range(first, min(first + each, chunks)) for first in range(0, chunks, each)]

    def pass_bytes(self, count: int) -> Array:
        """Bytes of a row of cores in every pass."""
        return np.add.reduceat(self.bytes.sum(axis=1), [chunks.start for chunks in self.passes(count)])

    @classmethod
    def of(cls, layer: MeshLayer, rows: int, per_row: int, co: int, ci: int, index: str = "u16") -> ChunkProfile:
        """Profile for `rows` rows of cores with `per_row` output channels each."""
        count = -(-per_row // co)
        parts = max(1, layer.padded_channels // ci)
        sizes = np.full(count, co)
        sizes[-1] = per_row - (count - 1) * co
        by_part = np.zeros((rows * per_row // layer.block[0], parts), np.int64)
        by_part[: layer.blocks[0]] = layer.kept(parts)
        by_row = by_part.reshape(rows, per_row // layer.block[0], parts)
        counts = np.add.reduceat(by_row, np.arange(count) * (co // layer.block[0]), axis=1)
        kept, bias = counts.max(axis=0), np.arange(parts) == 0
        return cls(sizes, counts, kept, record_bytes(sizes[:, None], ci, kept, layer.taps, index, bias, layer.block))
