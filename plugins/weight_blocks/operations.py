"""Arithmetic of layers: kept blocks of weights in cores, pools and sums, and the dense references; int8, sums in int32.

Convolutions add a bias, shift right with rounding and saturate after ReLU; sums saturate; an average divides by the size
of its window and rounds. Products are sums of float64, which is exact below 2^53.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sparsemap.pieces.contracts.base import Array

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
    passes: list[Array]
    """(memory tiles, rows of cores of each, bytes) int8 by pass: the records of a row of cores one after the other."""


def draw(cut: Cut, splits: Splits, rng: np.random.Generator) -> Weights:
    """Weights with the layer's mask; where it has none, with as many blocks in every block row of every part."""
    layer = cut.layer
    rows, columns = layer.blocks
    kept = layer.mask
    if kept is None:
        order = rng.random((rows, cut.parts(splits.ci), splits.ci // BLOCK)).argsort(axis=2).argsort(axis=2)
        kept = (order < layer.kept(cut.parts(splits.ci))).reshape(rows, columns)
    dense = rng.integers(-128, 128, (rows * BLOCK, *layer.kernel, columns * BLOCK), np.int8)
    dense[layer.out_channels :], dense[..., layer.channels :] = 0, 0
    dense *= np.repeat(np.repeat(kept, BLOCK, 0), BLOCK, 1)[:, None, None, :]
    bias = rng.integers(-(2**12), 2**12, rows * BLOCK).astype(np.int32)
    bias[layer.out_channels :] = 0
    shift = max(1, int(np.log2(74 * 40 * np.sqrt(max(1, layer.channels * layer.taps * kept.mean())) / 48)))
    return Weights(dense, bias, shift, _stored(cut, splits, dense, bias, kept))


def _stored(cut: Cut, splits: Splits, dense: Array, bias: Array, kept: Array) -> list[Array]:
    """The records of every pass, padded to one size; memory tile t has those of the rows of cores t, t + columns, ..."""
    machine, profile = cut.machine, cut.profile(splits.co, splits.ci)
    missing = max(0, machine.rows * cut.row_channels - len(dense))
    dense = np.pad(dense, ((0, missing), (0, 0), (0, 0), (0, 0)))
    bias, kept = np.pad(bias, (0, missing)), np.pad(kept, ((0, missing // BLOCK), (0, 0)))

    def record(row: int, chunk: int, part: int) -> bytes:
        first = row * cut.row_channels + chunk * splits.co
        outs, ins = slice(first, first + int(profile.co[chunk])), slice(part * splits.ci, (part + 1) * splits.ci)
        blocks = kept[outs.start // BLOCK : outs.stop // BLOCK, ins.start // BLOCK : ins.stop // BLOCK]
        return pack(dense[outs, :, :, ins], blocks, bias[outs] if part == 0 else None, machine.index)

    found = []
    for chunks in profile.passes(splits.passes):
        every = [(chunk, part) for chunk in chunks for part in range(profile.bytes.shape[1])]
        rows = np.zeros((machine.share * machine.columns, int(sum(profile.bytes[one] for one in every))), np.int8)
        for row in range(machine.rows):
            own = (record(row, *one).ljust(int(profile.bytes[one]), b"\0") for one in every)
            rows[row] = np.frombuffer(b"".join(own), np.int8)
        found.append(rows.reshape(machine.share, machine.columns, -1).swapaxes(0, 1))
    return found


# ------------------------------------------------------------------------------------------------------------- in cores


@attrs.frozen(eq=False)
class Blocks:
    """The kept blocks in all rows of cores."""

    kept: Array
    """(block rows of all rows of cores, block columns) bool."""
    values: Array
    """(K, kh * kw * 8 inputs, 8 outputs) float64, row by row."""
    bias: Array | None
    """(rows of cores, output channels)."""

    @classmethod
    def of(cls, rows: Sequence[tuple[Array, Array | None, Array]]) -> Blocks:
        """The unpacked records of all rows of cores, brought in the order of one product."""
        kept, biases, blocks = zip(*rows, strict=True)
        values = np.concatenate(blocks).swapaxes(3, 4).astype(np.float64)
        bias = None if biases[0] is None else np.stack(biases)
        return cls(np.concatenate(kept), values.reshape(-1, math.prod(values.shape[1:4]), BLOCK), bias)


def compute(inputs: Array, blocks: Blocks, layer: Layer, tile: tuple[int, int, int], rows: int) -> tuple[Array, int]:
    """(columns of cores, rows of cores, rows, columns, channels) int64 sums of the kept blocks, and how many blocks
    times pixels were multiplied."""
    height, width, channels = tile
    windows = sliding_window_view(inputs, layer.kernel, axis=(1, 2))[:, :: layer.stride, :: layer.stride]
    windows = windows[:, :height, :width]  # (n, h, w, ci, kh, kw)
    pixels = windows.shape[0] * height * width
    by_block = windows.reshape(*windows.shape[:3], -1, BLOCK, *layer.kernel).transpose(3, 0, 1, 2, 5, 6, 4)
    patches = by_block.reshape(len(by_block), pixels, -1).astype(np.float64)
    sums = np.zeros((len(blocks.kept), pixels, BLOCK))
    if blocks.kept.any():
        in_rows, columns = np.nonzero(blocks.kept)
        filled, starts = np.unique(in_rows, return_index=True)
        sums[filled] = np.add.reduceat(patches[columns] @ blocks.values, starts, axis=0)
    by_block_row = sums.astype(np.int64).reshape(rows, channels // BLOCK, len(inputs), height, width, BLOCK)
    by_core = by_block_row.transpose(2, 0, 3, 4, 1, 5).reshape(len(inputs), rows, *tile)
    bias = 0 if blocks.bias is None else blocks.bias[:, None, None]
    return by_core + bias, pixels * len(blocks.values)


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
    return _mean(windows.astype(np.int64).sum(axis=(-2, -1)), layer.taps)


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
    high, wide = ((o - 1) * stride + 1 for o in out)
    taps = {(i, j): padded[i : i + high : stride, j : j + wide : stride] for i, j in np.ndindex(*layer.kernel)}
    if layer.op == "maxpool":
        return np.maximum.reduce(list(taps.values()))
    if weights is None:
        return _mean(np.sum(list(taps.values()), axis=0, dtype=np.int64), layer.taps)
    dense = weights.dense.astype(np.float64)
    sums: Any = sum(tap.astype(np.float64) @ dense[:, i, j].T for (i, j), tap in taps.items())
    return quantised(sums.astype(np.int64) + weights.bias, weights.shift)
