"""Arithmetic of layers: kept blocks of weights in cores, pools and sums, and the dense references; int8, sums in int32.

Convolutions add a bias, shift right with rounding and saturate after ReLU; sums saturate; an average divides by the size
of its window and rounds. Products are sums of float64, which is exact below 2^53.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sparsemap.pieces.contracts.base import Array

from .instructions import chunk_passes
from .layers import BLOCK, Layer
from .record import pack
from .splits import Cut, Splits


@attrs.define(eq=False)
class Weights:
    """Random weights of a layer, as a dense tensor and as the records that DDR holds for every memory tile."""

    dense: Array
    """(co, kh, kw, ci) int8, channels in whole blocks, zero where a block is pruned."""
    bias: Array
    shift: int
    stored: list[Array]
    """Bytes per memory tile, pass by pass; within a pass those of one row of cores after the other."""
    pass_sizes: list[int]
    """Bytes of a pass of one row of cores."""
    number: int = 0
    """The pass that the memory tiles hold."""

    def offset_of(self, number: int) -> int:
        rows = len(self.stored[0]) // max(1, sum(self.pass_sizes))
        return rows * sum(self.pass_sizes[:number])


def draw(cut: Cut, splits: Splits, rng: np.random.Generator) -> Weights:
    """Weights with the layer's mask; where it has none, with as many blocks in every block row of every part."""
    layer = cut.layer
    rows, columns = layer.blocks
    kept = layer.mask
    if kept is None:
        order = rng.random((rows, cut.parts(splits.ci), splits.ci // BLOCK)).argsort(axis=2).argsort(axis=2)
        kept = (order < layer.kept_in_row(splits.ci)).reshape(rows, columns)
    dense = rng.integers(-128, 128, (rows * BLOCK, *layer.kernel, columns * BLOCK), np.int8)
    dense[layer.out_channels :], dense[..., layer.channels :] = 0, 0
    dense *= np.repeat(np.repeat(kept, BLOCK, 0), BLOCK, 1)[:, None, None, :]
    bias = rng.integers(-(2**12), 2**12, rows * BLOCK).astype(np.int32)
    bias[layer.out_channels :] = 0
    taps = layer.kernel[0] * layer.kernel[1]
    shift = max(1, int(np.log2(74 * 40 * np.sqrt(max(1, layer.channels * taps * kept.mean())) / 48)))
    return Weights(dense, bias, shift, *_stored(cut, splits, dense, bias, kept))


def _stored(cut: Cut, splits: Splits, dense: Array, bias: Array, kept: Array) -> tuple[list[Array], list[int]]:
    """The records of every memory tile, which has those of the rows of cores r, r + columns, ..., padded to one size;
    and the bytes of every pass."""
    machine, profile = cut.machine, cut.profile(splits.co, splits.ci)
    missing = max(0, machine.rows * cut.row_channels - len(dense))
    dense = np.pad(dense, ((0, missing), (0, 0), (0, 0), (0, 0)))
    bias, kept = np.pad(bias, (0, missing)), np.pad(kept, ((0, missing // BLOCK), (0, 0)))

    def record(row: int, chunk: int, part: int) -> bytes:
        first = row * cut.row_channels + chunk * splits.co
        outs, ins = slice(first, first + int(profile.co[chunk])), slice(part * splits.ci, (part + 1) * splits.ci)
        blocks = kept[outs.start // BLOCK : outs.stop // BLOCK, ins.start // BLOCK : ins.stop // BLOCK]
        return pack(dense[outs, :, :, ins], blocks, bias[outs] if part == 0 else None, machine.index)

    tiles: list[list[bytes]] = [[] for _ in range(machine.columns)]
    sizes = []
    for chunks in chunk_passes(cut, splits.co, splits.ci, splits.passes):
        sizes.append(int(profile.bytes[chunks.start : chunks.stop].sum()))
        for row in range(-(-machine.rows // machine.columns) * machine.columns):
            every = [(chunk, part) for chunk in chunks for part in range(profile.bytes.shape[1])]
            own = [record(row, *one).ljust(int(profile.bytes[one]), b"\0") for one in every if row < machine.rows]
            tiles[row % machine.columns].append(b"".join(own).ljust(sizes[-1], b"\0"))
    return [np.frombuffer(b"".join(parts), np.int8) for parts in tiles], sizes


# ------------------------------------------------------------------------------------------------------------- in cores


@attrs.frozen(eq=False)
class Blocks:
    """The kept blocks in all rows of cores."""

    columns: Array
    """(K,) the column of each, in blocks."""
    values: Array
    """(K, kh * kw * 8 inputs, 8 outputs) float64."""
    starts: Array
    """Where the blocks of each block row that has any start, and `filled` which block rows these are."""
    filled: Array
    block_rows: int
    """Of all rows of cores together."""
    bias: Array | None
    """(rows of cores, output channels)."""

    @classmethod
    def of(cls, rows: Sequence[tuple[Array, Array | None, Array]]) -> Blocks:
        """The unpacked records of all rows of cores, brought in the order of one product."""
        kept, blocks = (np.concatenate([found[at] for found in rows]) for at in (0, 2))  # type: ignore[misc]
        inputs = blocks.shape[1] * blocks.shape[2] * BLOCK
        values = blocks.transpose(0, 1, 2, 4, 3).reshape(len(blocks), inputs, BLOCK).astype(np.float64)
        counts = kept.sum(axis=1)
        filled = np.flatnonzero(counts)
        bias = None if rows[0][1] is None else np.stack([found[1] for found in rows])  # type: ignore[misc]
        return cls(np.nonzero(kept)[1], values, (np.cumsum(counts) - counts)[filled], filled, len(kept), bias)


def compute(inputs: Array, blocks: Blocks, layer: Layer, tile: tuple[int, int, int], rows: int) -> tuple[Array, int]:
    """(columns of cores, rows of cores, rows, columns, channels) int64 sums of the kept blocks, and how many blocks
    times pixels were multiplied."""
    height, width, channels = tile
    windows = sliding_window_view(inputs, layer.kernel, axis=(1, 2))[:, :: layer.stride, :: layer.stride]
    windows = windows[:, :height, :width]  # (n, h, w, ci, kh, kw)
    pixels = windows.shape[0] * height * width
    by_block = windows.reshape(*windows.shape[:3], -1, BLOCK, *layer.kernel).transpose(3, 0, 1, 2, 5, 6, 4)
    patches = by_block.reshape(len(by_block), pixels, -1).astype(np.float64)
    sums = np.zeros((blocks.block_rows, pixels, BLOCK))
    if len(blocks.columns):
        products = patches[blocks.columns] @ blocks.values
        sums[blocks.filled] = np.add.reduceat(products, blocks.starts, axis=0)
    by_row = sums.reshape(rows, channels // BLOCK, pixels, BLOCK).transpose(2, 0, 1, 3).reshape(pixels, rows, channels)
    whole = by_row if blocks.bias is None else by_row + blocks.bias
    shape = len(inputs), height, width, rows, channels
    return np.rint(whole).astype(np.int64).reshape(shape).transpose(0, 3, 1, 2, 4), pixels * len(blocks.columns)


def quantised(sums: Array, shift: int) -> Array:
    """int8 after a rounding shift and ReLU."""
    return np.clip((sums + (1 << (shift - 1))) >> shift, 0, 127).astype(np.int8)


def pooled(inputs: Array, layer: Layer, shape: tuple[int, int, int], tile: tuple[int, int, int]) -> Array:
    """int8 outputs of a pool or a sum of (..., bytes) inputs of a shape; of a sum, one operand after the other."""
    if layer.op == "add":
        both = inputs.reshape(*inputs.shape[:-1], 2, *shape).astype(np.int64)
        return np.clip(both.sum(axis=-4), 0, 127).astype(np.int8)
    windows = sliding_window_view(inputs.reshape(*inputs.shape[:-1], *shape), layer.kernel, axis=(-3, -2))
    windows = windows[..., :: layer.stride, :: layer.stride, :, :, :][..., : tile[0], : tile[1], :, :, :]
    if layer.op == "maxpool":
        return windows.max(axis=(-2, -1))
    return _mean(windows.astype(np.int64).sum(axis=(-2, -1)), layer.kernel[0] * layer.kernel[1])


def _mean(sums: Array, count: int) -> Array:
    return np.clip((2 * sums + count) // (2 * count), -128, 127).astype(np.int8)


# ------------------------------------------------------------------------------------------------------------ reference


def reference(layer: Layer, inputs: Sequence[Array], weights: Weights | None) -> Array:
    """The output (rows, columns, channels) of the dense operation, channels in whole blocks."""
    if layer.op == "add":
        return np.clip(np.sum([one.astype(np.int64) for one in inputs], axis=0), 0, 127).astype(np.int8)
    out, stride = (layer.out_height, layer.out_width), layer.stride
    ends = [(o - 1) * stride + k for o, k in zip(out, layer.kernel, strict=True)]
    behind = [max(0, e - p - i) for e, p, i in zip(ends, layer.padding, (layer.height, layer.width), strict=True)]
    sides = [*zip(layer.padding, behind, strict=True), (0, 0)]
    padded = np.pad(np.concatenate(inputs, axis=2), sides, constant_values=-128 if layer.op == "maxpool" else 0)
    sums = None
    for i, j in np.ndindex(*layer.kernel):
        tap = padded[i : i + (out[0] - 1) * stride + 1 : stride, j : j + (out[1] - 1) * stride + 1 : stride]
        if layer.op == "maxpool":
            sums = tap if sums is None else np.maximum(sums, tap)
            continue
        if weights is not None:
            tap = tap.astype(np.float64) @ weights.dense[:, i, j].astype(np.float64).T
        sums = tap.astype(np.float64) if sums is None else sums + tap
    assert sums is not None
    if layer.op == "maxpool":
        return sums
    whole = np.rint(sums).astype(np.int64)
    if weights is None:
        return _mean(whole, layer.kernel[0] * layer.kernel[1])
    return quantised(whole + weights.bias, weights.shift)
