"""Arithmetic of layers: kept blocks of weights in cores, pools and sums, and the dense references; int8, sums in int32.

Convolutions add a bias, shift right with rounding and saturate after ReLU; sums saturate; an average divides by the size
of its window and rounds. Products are sums of float64, which is exact below 2^53.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sparsemap.pieces.contracts.base import Array

from .instructions import chunk_passes
from .layers import BLOCK, Layer
from .record import Chunk, pack
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
    kept: int
    """Blocks that are kept."""
    number: int = 0
    """The pass that the memory tiles hold."""

    def offset_of(self, number: int) -> int:
        rows = len(self.stored[0]) // max(1, sum(self.pass_sizes))
        return rows * sum(self.pass_sizes[:number])


def draw(cut: Cut, splits: Splits, rng: np.random.Generator) -> Weights:
    """Weights with the layer's mask; where it has none, with as many blocks in every block row of every part."""
    layer, machine = cut.layer, cut.machine
    rows, columns = layer.padded_out_channels // BLOCK, layer.padded_channels // BLOCK
    if layer.mask is not None:
        kept = layer.kept
    else:
        parts, each = columns * BLOCK // splits.ci, splits.ci // BLOCK
        order = rng.random((rows, parts, each)).argsort(axis=2).argsort(axis=2)
        kept = (order < layer.kept_in_row(splits.ci)).reshape(rows, columns)
    dense = rng.integers(-128, 128, (rows * BLOCK, *layer.kernel, columns * BLOCK), np.int8)
    dense[layer.out_channels :], dense[..., layer.channels :] = 0, 0
    dense *= np.repeat(np.repeat(kept, BLOCK, 0), BLOCK, 1)[:, None, None, :]
    bias = rng.integers(-(2**12), 2**12, rows * BLOCK).astype(np.int32)
    bias[layer.out_channels :] = 0
    taps = layer.kernel[0] * layer.kernel[1]
    shift = max(1, int(np.log2(74 * 40 * np.sqrt(max(1, layer.channels * taps * kept.mean())) / 48)))
    stored, sizes = _stored(cut, splits, dense, bias, kept)
    return Weights(dense, bias, shift, stored[: machine.columns], sizes, int(kept.sum()))


def _stored(cut: Cut, splits: Splits, dense: Array, bias: Array, kept: Array) -> tuple[list[Array], list[int]]:
    """The records of every memory tile, which has those of the rows of cores r, r + columns, ..., padded to one size."""
    machine, sizes = cut.machine, cut.chunk_sizes(splits.co, splits.ci)
    profile = cut.profile(splits.co, splits.ci)
    missing = max(0, machine.rows * cut.row_channels - len(dense))
    dense = np.pad(dense, ((0, missing), (0, 0), (0, 0), (0, 0)))
    bias, kept = np.pad(bias, (0, missing)), np.pad(kept, ((0, missing // BLOCK), (0, 0)))
    passes = chunk_passes(cut, splits.co, splits.ci, splits.passes)
    tiles: list[list[bytes]] = [[] for _ in range(machine.columns)]
    for chunks in passes:
        for row in range(-(-machine.rows // machine.columns) * machine.columns):
            if row >= machine.rows:  # so that all memory tiles have the same layout
                whole = int(sizes[chunks.start : chunks.stop].sum())
                tiles[row % machine.columns].append(bytes(whole))
                continue
            for chunk in chunks:
                first = row * cut.row_channels + chunk * splits.co
                outs = slice(first, first + int(profile.co[chunk]))
                blocks = slice(outs.start // BLOCK, outs.stop // BLOCK)
                for part in range(sizes.shape[1]):
                    ins = slice(part * splits.ci, (part + 1) * splits.ci)
                    own = kept[blocks, ins.start // BLOCK : ins.stop // BLOCK]
                    record = pack(Chunk(dense[outs, :, :, ins], own, bias[outs] if part == 0 else None))
                    tiles[row % machine.columns].append(record.ljust(int(sizes[chunk, part]), b"\0"))
    stored = [np.frombuffer(b"".join(parts), np.int8) for parts in tiles]
    return stored, [int(sizes[chunks.start : chunks.stop].sum()) for chunks in passes]


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
    whole: Array | None
    """(kh * kw * ci, outputs of all rows) where nothing is pruned: then one product does."""


def decoded(rows: Sequence[tuple[Array, Array | None, Array]]) -> Blocks:
    """Decoded records of all rows of cores, brought in the order of one product."""
    kept = np.concatenate([found[0] for found in rows])
    blocks = np.concatenate([found[2] for found in rows])  # (K, kh, kw, 8 out, 8 in)
    inputs = blocks.shape[1] * blocks.shape[2] * BLOCK
    values = blocks.transpose(0, 1, 2, 4, 3).reshape(len(blocks), inputs, BLOCK).astype(np.float64)
    counts = kept.sum(axis=1)
    filled = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[filled]
    bias = None if rows[0][1] is None else np.stack([found[1] for found in rows])
    whole = None
    if kept.all():
        shape = (len(kept), kept.shape[1], inputs, BLOCK)
        whole = values.reshape(shape).transpose(1, 2, 0, 3).reshape(kept.shape[1] * inputs, len(kept) * BLOCK)
    return Blocks(np.nonzero(kept)[1], values, starts, filled, len(kept), bias, whole)


def compute(inputs: Array, blocks: Blocks, layer: Layer, tile: tuple[int, int, int], rows: int) -> tuple[Array, int]:
    """(columns of cores, rows of cores, rows, columns, channels) int64 sums of the kept blocks, and how many blocks
    times pixels were multiplied."""
    height, width, channels = tile
    windows = sliding_window_view(inputs, layer.kernel, axis=(1, 2))[:, :: layer.stride, :: layer.stride]
    windows = windows[:, :height, :width]  # (n, h, w, ci, kh, kw)
    pixels = windows.shape[0] * height * width
    by_block = windows.reshape(*windows.shape[:3], -1, BLOCK, *layer.kernel).transpose(3, 0, 1, 2, 5, 6, 4)
    patches = by_block.reshape(len(by_block), pixels, -1).astype(np.float64)
    if blocks.whole is not None:
        found = patches.transpose(1, 0, 2).reshape(pixels, -1) @ blocks.whole
        sums = found.reshape(pixels, rows, channels)
    else:
        sums = np.zeros((blocks.block_rows, pixels, BLOCK))
        if len(blocks.columns):
            products = patches[blocks.columns] @ blocks.values
            sums[blocks.filled] = np.add.reduceat(products, blocks.starts, axis=0)
        sums = (
            sums.reshape(rows, channels // BLOCK, pixels, BLOCK).transpose(2, 0, 1, 3).reshape(pixels, rows, channels)
        )
    if blocks.bias is not None:
        sums = sums + blocks.bias
    shape = len(inputs), height, width, rows, channels
    return np.rint(sums).astype(np.int64).reshape(shape).transpose(0, 3, 1, 2, 4), pixels * len(blocks.columns)


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
    whole = np.concatenate(inputs, axis=2) if len(inputs) > 1 else inputs[0]
    (kh, kw), stride = layer.kernel, layer.stride
    below = (layer.out_height - 1) * stride + kh - layer.padding[0] - layer.height
    right = (layer.out_width - 1) * stride + kw - layer.padding[1] - layer.width
    sides = ((layer.padding[0], max(0, below)), (layer.padding[1], max(0, right)), (0, 0))
    padded = np.pad(whole, sides, constant_values=-128 if layer.op == "maxpool" else 0)
    taps: Any = (
        (
            i,
            j,
            padded[
                i : i + (layer.out_height - 1) * stride + 1 : stride,
                j : j + (layer.out_width - 1) * stride + 1 : stride,
            ],
        )
        for i in range(kh)
        for j in range(kw)
    )
    if weights is None:
        if layer.op == "maxpool":
            return np.max([tap for _, _, tap in taps], axis=0)
        return _mean(np.sum([tap.astype(np.int64) for _, _, tap in taps], axis=0), kh * kw)
    sums = np.zeros((layer.out_height, layer.out_width, len(weights.dense)))
    for i, j, tap in taps:
        sums += tap.astype(np.float64) @ weights.dense[:, i, j].astype(np.float64).T
    return quantised(np.rint(sums).astype(np.int64) + weights.bias, weights.shift)
