"""Arithmetic of layers: decoded weights of cores, pools and sums, and dense references; int8, with sums in int32.

Convolutions add a bias, shift right with rounding and saturate, after a ReLU if the layer has one, as do sums; an average
divides by the size of its window and rounds. Products are sums of float64, exact below 2^53."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from .layers import MeshLayer
from .machine import CoreMesh
from .record import pack, unpack
from .splits import Cut, Splits


@attrs.frozen(eq=False)
class MaskedWeights:
    """Weights of a layer, as a dense tensor and as the records in DDR for every memory tile."""

    dense: Array
    """(co, kh, kw, ci) int8, channels in whole blocks, zero in pruned blocks."""
    bias: Array
    shift: int
    stored: Array
    """(memory tiles, bytes) int8: pass after pass, the records of all rows of cores of a tile, row after row."""


def masked(
    cut: Cut, splits: Splits, rng: np.random.Generator, given: Mapping[str, Array] | None = None
) -> MaskedWeights:
    """Weights of a layer, given or random, by its mask, or a random mask with equally many blocks in every block row of every
    part. `given` has `weights` (co, kh, kw, ci), and may have `bias` (co,) and `shift`;
    SparseMapError for a nonzero weight in a pruned block."""
    layer, (outs, ins) = cut.layer, cut.layer.block
    kept, parts = layer.mask, cut.parts(splits.ci)
    if kept is None:
        order = rng.random((layer.blocks[0], parts, layer.blocks[1] // parts)).argsort(axis=2).argsort(axis=2)
        kept = (order < layer.kept(parts)).reshape(layer.blocks)
    shape = layer.out_channels, *layer.kernel, layer.channels
    dense = np.zeros((layer.padded_out_channels, *layer.kernel, layer.padded_channels), np.int8)
    bias = np.zeros(len(dense), np.int32)
    own = rng.integers(-128, 128, shape, np.int8) if given is None else given["weights"]
    if own.shape != shape:
        raise SparseMapError(f"weights of {layer.name}: have the shape {own.shape}, expected {shape}")
    dense[: shape[0], ..., : shape[3]] = own
    pruned = ~np.repeat(np.repeat(kept, outs, 0), ins, 1)[:, None, None, :]
    if given is None:
        dense *= ~pruned
        bias[: shape[0]] = rng.integers(-(2**12), 2**12, shape[0])
    elif (dense * pruned).any():
        text = "compile with --masks of these weights" if layer.mask is None else "is another mask"
        raise SparseMapError(f"weights of {layer.name}: are not zero where the schedule has no blocks; {text}")
    else:
        bias[: shape[0]] = given.get("bias", 0)
    size = 74 * 40 * np.sqrt(max(1, layer.channels * layer.taps * kept.mean())) / 48
    shift = int((given or {}).get("shift", max(1, int(np.log2(size)))))
    return MaskedWeights(dense, bias, shift, _stored(cut, splits, dense, bias, kept))


def _stored(cut: Cut, splits: Splits, dense: Array, bias: Array, kept: Array) -> Array:
    """The records, padded to one size; memory tile t has the records of the rows of cores t, t + columns, ..."""
    machine, profile, (high, wide) = cut.machine, cut.profile(splits.co, splits.ci), cut.layer.block
    missing = max(0, machine.rows * cut.row_channels - len(dense))
    dense = np.pad(dense, ((0, missing), (0, 0), (0, 0), (0, 0)))
    bias, kept = np.pad(bias, (0, missing)), np.pad(kept, ((0, missing // high), (0, 0)))

    def record(row: int, chunk: int, part: int) -> bytes:
        first = row * cut.row_channels + chunk * splits.co
        outs, ins = slice(first, first + int(profile.co[chunk])), slice(part * splits.ci, (part + 1) * splits.ci)
        blocks = kept[outs.start // high : outs.stop // high, ins.start // wide : ins.stop // wide]
        return pack(dense[outs, :, :, ins], blocks, bias[outs] if part == 0 else None, machine.index, (high, wide))

    found = []
    for chunks in profile.passes(splits.passes):
        every = [(chunk, part) for chunk in chunks for part in range(profile.bytes.shape[1])]
        rows = np.zeros((machine.share * machine.columns, int(sum(profile.bytes[one] for one in every))), np.int8)
        for row in range(machine.rows):
            own = (record(row, *one).ljust(int(profile.bytes[one]), b"\0") for one in every)
            rows[row] = np.frombuffer(b"".join(own), np.int8)
        found.append(rows.reshape(machine.share, machine.columns, -1).swapaxes(0, 1).reshape(machine.columns, -1))
    return np.concatenate(found, axis=1)


def decoded(
    content: bytes, machine: CoreMesh, co: int, ci: int, kernel: tuple[int, int], first: bool
) -> tuple[Array, Array, Array]:
    """The records of all rows of cores, behind each other: (rows, co, kh, kw, ci) float64 weights, (rows, co) biases, zero
    without `first`, and (rows,) kept blocks."""
    outs, ins = machine.block
    records = np.frombuffer(content, np.int8).reshape(machine.rows, -1)
    dense = np.zeros((machine.rows, co // outs, ci // ins, *kernel, outs, ins))
    biases, counts = np.zeros((machine.rows, co), np.int64), np.zeros(machine.rows, np.int64)
    for row, record in enumerate(records):
        kept, own, blocks = unpack(record, co, ci, kernel, machine.index, first, machine.block)
        dense[row][kept], counts[row] = blocks, len(blocks)
        biases[row] = 0 if own is None else own
    return dense.transpose(0, 1, 5, 3, 4, 2, 6).reshape(machine.rows, co, *kernel, ci), biases, counts


def convolved(image: Array, weights: Array, stride: int, out: Sequence[int]) -> Array:
    """(..., *out, co) int64 of padded inputs (..., rows, columns, ci) and weights (co, kh, kw, ci) float64."""
    high, wide = ((size - 1) * stride + 1 for size in out)
    sums: Any = 0
    for i, j in np.ndindex(*weights.shape[1:3]):
        tap = image[..., i : i + high : stride, j : j + wide : stride, :]
        sums = sums + tap.astype(np.float64) @ weights[:, i, j].T
    return np.asarray(sums).astype(np.int64)


def quantised(sums: Array, shift: int, relu: bool) -> Array:
    """int8 after a rounding shift, and perhaps a ReLU."""
    return np.clip((sums + (1 << shift >> 1)) >> shift, 0 if relu else -128, 127).astype(np.int8)


def pooled(inputs: Array, op: str, kernel: Sequence[int], stride: int, out: Sequence[int], relu: bool) -> Array:
    """int8 outputs of a pool of (..., 1, rows, columns, channels) inputs, or of a sum of (..., operands, ...)."""
    if op == "add":
        return np.clip(inputs.sum(axis=-4, dtype=np.int64), 0 if relu else -128, 127).astype(np.int8)
    windows = sliding_window_view(inputs[..., 0, :, :, :], tuple(kernel), axis=(-3, -2))
    windows = windows[..., ::stride, ::stride, :, :, :][..., : out[0], : out[1], :, :, :]
    if op == "maxpool":
        return windows.max(axis=(-2, -1))
    sums, count = windows.sum(axis=(-2, -1), dtype=np.int64), math.prod(kernel)
    return np.clip((2 * sums + count) // (2 * count), -128, 127).astype(np.int8)


def reference(layer: MeshLayer, inputs: Sequence[Array], weights: MaskedWeights | None) -> Array:
    """The output (rows, columns, channels) of the dense operation, channels in whole blocks."""
    out, stride = (layer.out_height, layer.out_width), layer.stride
    operands = np.stack(inputs) if layer.op == "add" else np.concatenate(inputs, axis=2)[None]
    ends = [(o - 1) * stride + k for o, k in zip(out, layer.kernel, strict=True)]
    behind = [max(0, e - p - i) for e, p, i in zip(ends, layer.padding, (layer.height, layer.width), strict=True)]
    sides = [(0, 0), *zip(layer.padding, behind, strict=True), (0, 0)]
    padded = np.pad(operands, sides, constant_values=-128 if layer.op == "maxpool" else 0)
    if weights is None:
        return pooled(padded, layer.op, layer.kernel, stride, out, layer.relu)
    products = convolved(padded[0], weights.dense.astype(np.float64), stride, out)
    return quantised(products + weights.bias, weights.shift, layer.relu)
