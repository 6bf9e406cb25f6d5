"""Small models of every kind of operator, with MACs and weights worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx_files import INT8, INT64, UINT8, node


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def bytes_of(*shape: int, kind: Any = np.int8) -> np.ndarray:
    return np.random.default_rng(0).integers(1, 99, shape).astype(kind)


CONV = {"w": (4, 3, 3, 3)}
PADDED = {"pads": [1] * 4}
SCALES = {"s": 0.5, "zx": np.array(7, np.uint8), "zw": np.array(0, np.int8), "zy": np.array(9, np.uint8)}
GROUPED = {"grow": ints(1, 2, 3, 10, 8), "heads": ints(1, 6, 10, 8), "one": ints(2)}
"""Keys of 2 heads for 6 heads of queries, 3 for each."""

CASES: dict[str, tuple[Any, ...]] = {
    # name: nodes, constants, inputs, MACs, weights, options
    "convolution": ([node("Conv", "x w", "y", **PADDED)], CONV, {"x": [1, 3, 8, 8]}, 4 * 3 * 9 * 64, 4 * 3 * 9),
    "convolution with stride": (
        [node("Conv", "x w", "y", strides=[2, 2], pads=[1] * 4)], CONV, {"x": [1, 3, 8, 8]}, 4 * 3 * 9 * 16, 108,
    ),
    "convolution with dilation": (
        [node("Conv", "x w", "y", dilations=[2, 3])], CONV, {"x": [1, 3, 9, 9]}, 4 * 3 * 9 * 5 * 3, 108,
    ),
    "convolution in groups": (
        [node("Conv", "x w", "y", group=3)], {"w": (6, 2, 3, 3)}, {"x": [1, 6, 8, 8]}, 6 * 2 * 9 * 36, 108,
    ),
    "depthwise": (
        [node("Conv", "x w", "y", group=6)], {"w": (6, 1, 3, 3)}, {"x": [1, 6, 8, 8]}, 6 * 9 * 36, 54,
    ),
    "depth multiplier": (
        [node("Conv", "x w", "y", group=6)], {"w": (12, 1, 3, 3)}, {"x": [1, 6, 8, 8]}, 12 * 9 * 36, 108,
    ),
    "convolution of rows": (
        [node("Conv", "x w", "y", pads=[1, 1])], {"w": (5, 3, 3)}, {"x": [1, 3, 20]}, 5 * 3 * 3 * 20, 45,
    ),
    "batch that is open": (
        [node("Conv", "x w", "y", **PADDED)], CONV, {"x": ["n", 3, 8, 8]}, 4 * 6912, 108, ("--batch", "4"),
    ),
    "video, frames reshaped into a batch": (
        [node("Reshape", "x to", "r"), node("Conv", "r w", "y", **PADDED)],
        {**CONV, "to": ints(-1, 3, 32, 32)}, {"x": ["n", 8, 3, 32, 32]}, 8 * 4 * 3 * 9 * 32 * 32, 108,
    ),
    "video of two": (
        [node("Reshape", "x to", "r"), node("Conv", "r w", "y", **PADDED)],
        {**CONV, "to": ints(-1, 3, 32, 32)}, {"x": ["n", 8, 3, 32, 32]}, 2 * 8 * 4 * 3 * 9 * 32 * 32, 108,
        ("--batch", "2"),
    ),
    "a first input with another first dimension": (
        [node("Conv", "x w", "c", **PADDED), node("Mul", "c t", "y")],
        CONV, {"t": [1], "x": [2, 3, 8, 8]}, 2 * 4 * 3 * 9 * 64, 108,
    ),
    "an image without a batch": (
        [node("Unsqueeze", "x first", "u"), node("Conv", "u w", "y")],
        {"w": (8, 3, 1, 1), "first": ints(0)}, {"x": [3, 32, 32]}, 8 * 3 * 32 * 32, 24,
    ),
    "linear": (
        [node("MatMul", "x w", "y")], {"w": (32, 8)}, {"x": [1, 16, 32]}, 16 * 32 * 8, 256,
    ),
    "linear with a batch": (
        [node("MatMul", "x w", "y")], {"w": (32, 8)}, {"x": ["n", 16, 32]}, 3 * 16 * 32 * 8, 256, ("--batch", "3"),
    ),
    "gemm": (
        [node("Gemm", "x w", "y")], {"w": (32, 8)}, {"x": [4, 32]}, 4 * 32 * 8, 256,
    ),
    "gemm, transposed": (
        [node("Gemm", "x w", "y", transA=1, transB=1)], {"w": (8, 32)}, {"x": [32, 4]}, 4 * 32 * 8, 256,
    ),
    "gemm with the weights left": (
        [node("Gemm", "w x", "y")], {"w": (8, 32)}, {"x": [32, 4]}, 4 * 32 * 8, 256,
    ),
    "weights left of a batch": (
        [node("MatMul", "w x", "y")], {"w": (5, 16)}, {"x": ["n", 16, 32]}, 5 * 16 * 32, 80,
    ),
    "weights left of a batch of two": (
        [node("MatMul", "w x", "y")], {"w": (5, 16)}, {"x": ["n", 16, 32]}, 2 * 5 * 16 * 32, 80, ("--batch", "2"),
    ),
    "a vector of weights right": (
        [node("MatMul", "x w", "y")], {"w": (32,)}, {"x": [2, 16, 32]}, 2 * 16 * 32, 32,
    ),
    "a vector of weights left": (
        [node("MatMul", "w x", "y")], {"w": (16,)}, {"x": [2, 16, 32]}, 2 * 16 * 32, 16,
    ),
    "a product that broadcasts on both sides": (
        [node("MatMul", "x z", "y")], {}, {"x": [2, 1, 64, 32], "z": [1, 2, 32, 64]}, 2 * 2 * 64 * 32 * 64, 0,
    ),
    "experts, each for all rows": (
        [node("MatMul", "x w", "y")], {"w": (3, 32, 8)}, {"x": ["n", 1, 16, 32]}, 3 * 16 * 32 * 8, 768,
    ),
    "experts, each for all rows of two samples": (
        [node("MatMul", "x w", "y")], {"w": (3, 32, 8)}, {"x": ["n", 1, 16, 32]}, 2 * 3 * 16 * 32 * 8, 768,
        ("--batch", "2"),
    ),
    "experts, each with rows of its own": (
        [node("MatMul", "x w", "y")], {"w": (4, 32, 8)}, {"x": ["n", 4, 5, 32]}, 2 * 4 * 5 * 32 * 8, 1024,
        ("--batch", "2"),
    ),
    "attention": (
        [node("Transpose", "k", "t", perm=[0, 1, 3, 2]), node("MatMul", "q t", "s"), node("MatMul", "s v", "y")],
        {}, {name: [2, 4, 10, 8] for name in "qkv"}, 2 * 4 * 10 * 10 * 8 * 2, 0,
    ),
    "keys of one head for all": (
        [node("Transpose", "k", "t", perm=[0, 1, 3, 2]), node("MatMul", "q t", "y")],
        {}, {"q": [1, 8, 10, 16], "k": [1, 1, 10, 16]}, 8 * 10 * 10 * 16, 0,
    ),
    "keys of two heads expanded to six": (
        [
            node("Unsqueeze", "k one", "u"), node("Expand", "u grow", "e"), node("Reshape", "e heads", "r"),
            node("Transpose", "r", "t", perm=[0, 1, 3, 2]), node("MatMul", "q t", "y"),
        ],
        GROUPED, {"q": [1, 6, 10, 8], "k": [1, 2, 10, 8]}, 6 * 10 * 10 * 8, 0,
    ),
    "the operator Attention": (
        [node("Attention", "q k v", "y")], {}, {name: [1, 4, 10, 8] for name in "qkv"}, 4 * 10 * 10 * 8 * 2, 0, (), 23,
    ),
    "Attention with grouped queries in rows": (
        [node("Attention", "q k v", "y", q_num_heads=6, kv_num_heads=2)],
        {}, {"q": [1, 10, 48], "k": [1, 12, 16], "v": [1, 12, 16]}, 6 * 10 * 12 * 8 * 2, 0, (), 23,
    ),
    "Attention with earlier keys": (
        [node("Attention", "q k v - p r", "y a b")], {},
        {"q": [1, 6, 1, 8], **{name: [1, 2, 1, 8] for name in "kv"}, **{name: [1, 2, 31, 8] for name in "pr"}},
        6 * 1 * 32 * 8 * 2, 0, (), 23,
    ),
    "keys of earlier steps": (
        [
            node("MatMul", "x w", "k1"), node("Reshape", "k1 heads", "k2"), node("Concat", "past k2", "k3", axis=2),
            node("Transpose", "k3", "t", perm=[0, 1, 3, 2]), node("MatMul", "q t", "y"),
        ],
        {"w": (24, 16), "heads": ints(1, 2, 1, 8)}, {"x": [1, 1, 24], "past": [1, 2, 31, 8], "q": [1, 2, 1, 8]},
        24 * 16 + 2 * 32 * 8, 384,
    ),
    "quantised convolution": (
        [node("QLinearConv", "x s zx w s zw s zy", "y", **PADDED)], {"w": bytes_of(4, 3, 3, 3), **SCALES},
        {"x": (UINT8, [1, 3, 8, 8])}, 4 * 3 * 9 * 64, 108,
    ),
    "convolution of integers": (
        [node("ConvInteger", "x w zx", "y")], {"w": bytes_of(4, 3, 3, 3), **SCALES},
        {"x": (UINT8, [1, 3, 8, 8])}, 4 * 3 * 9 * 36, 108,
    ),
    "product of integers": (
        [node("MatMulInteger", "x w", "y")], {"w": bytes_of(32, 8)}, {"x": (INT8, [1, 16, 32])}, 16 * 32 * 8, 256,
    ),
    "quantised product": (
        [node("QLinearMatMul", "x s zx w s zw s zy", "y")], {"w": bytes_of(32, 8), **SCALES},
        {"x": (UINT8, [2, 16, 32])}, 2 * 16 * 32 * 8, 256,
    ),
    "weights of 4 bits": (
        [node("DequantizeLinear", "w4 s", "w"), node("MatMul", "x w", "y")],
        {"w4": helper.make_tensor("w4", TensorProto.INT4, [32, 8], [1] * 256), "s": 0.5}, {"x": [1, 16, 32]},
        16 * 32 * 8, 256, (), 21,
    ),
    "transposed convolution": (
        [node("ConvTranspose", "x w", "y", strides=[2, 2])], {"w": (3, 5, 2, 2)}, {"x": [1, 3, 8, 8]},
        64 * 3 * 5 * 4, 60,
    ),
    "transposed convolution in groups": (
        [node("ConvTranspose", "x w", "y", group=2)], {"w": (6, 5, 2, 2)}, {"x": [2, 6, 8, 8]},
        2 * 64 * 6 * 5 * 4, 120,
    ),
    "transposed convolution of rows": (
        [node("ConvTranspose", "x w", "y")], {"w": (6, 5, 3)}, {"x": [1, 6, 8]}, 8 * 6 * 5 * 3, 90,
    ),
    "einsum, linear": (
        [node("Einsum", "x w", "y", equation="bsi,oi->bso")], {"w": (8, 32)}, {"x": [2, 16, 32]}, 2 * 16 * 32 * 8, 256,
    ),
    "einsum, heads of weights": (
        [node("Einsum", "x w", "y", equation="bsi,ihd->bhsd")], {"w": (32, 4, 8)}, {"x": [1, 16, 32]},
        16 * 32 * 4 * 8, 1024,
    ),
    "einsum, scores": (
        [node("Einsum", "q k", "y", equation="...hid,...hjd->...hij")], {}, {"q": [2, 4, 5, 8], "k": [2, 4, 7, 8]},
        2 * 4 * 5 * 7 * 8, 0,
    ),
    "einsum, experts": (
        [node("Einsum", "x w", "y", equation="ecd,edf->ecf")], {"w": (4, 16, 12)}, {"x": [4, 6, 16]},
        4 * 6 * 16 * 12, 768,
    ),
    "einsum without an arrow": (
        [node("Einsum", "x w", "y", equation="ij,jk")], {"w": (16, 12)}, {"x": [6, 16]}, 6 * 16 * 12, 192,
    ),
    "einsum with the weights left": (
        [node("Einsum", "w x", "y", equation="oi,bsi->bso")], {"w": (8, 32)}, {"x": [2, 16, 32]},
        2 * 16 * 32 * 8, 256,
    ),
    "lstm": (
        [node("LSTM", "x w r", "y", hidden_size=6)], {"w": (1, 24, 10), "r": (1, 24, 6)}, {"x": [7, 2, 10]},
        7 * 2 * 4 * 6 * (10 + 6), 24 * 16,
    ),
    "lstm in both directions": (
        [node("LSTM", "x w r", "y", hidden_size=6, direction="bidirectional")],
        {"w": (2, 24, 10), "r": (2, 24, 6)}, {"x": [7, 2, 10]}, 2 * 7 * 2 * 4 * 6 * (10 + 6), 2 * 24 * 16,
    ),
    "gru": (
        [node("GRU", "x w r", "y", hidden_size=6)], {"w": (1, 18, 10), "r": (1, 18, 6)}, {"x": [7, 1, 10]},
        7 * 3 * 6 * (10 + 6), 18 * 16,
    ),
    "rnn": (
        [node("RNN", "x w r", "y", hidden_size=6)], {"w": (1, 6, 10), "r": (1, 6, 6)}, {"x": [7, 1, 10]},
        7 * 6 * (10 + 6), 6 * 16,
    ),
    "tied embedding": (
        [node("Gather", "table x", "e"), node("Transpose", "table", "t"), node("MatMul", "e t", "y")],
        {"table": (50, 8)}, {"x": (INT64, [1, 6])}, 6 * 8 * 50, 400,
    ),
    "frequencies times positions": (
        [
            node("Shape", "x", "s"), node("Gather", "s first", "b"), node("Concat", "b four one", "e", axis=0),
            node("Expand", "f e", "g"), node("MatMul", "g x", "y"),
        ],
        {"f": (1, 4, 1), "first": ints(0), "four": ints(4), "one": ints(1)}, {"x": [2, 1, 6]}, 2 * 4 * 6, 0,
    ),
    "image in patches": (
        [
            node("Conv", "x p", "a", strides=[4, 4]), node("Reshape", "a rows", "b"),
            node("Transpose", "b", "c", perm=[0, 2, 1]), node("MatMul", "c w", "y"),
        ],
        {"p": (10, 3, 4, 4), "rows": ints(1, 10, -1), "w": (10, 5)}, {"x": [1, 3, 16, 16]},
        10 * 3 * 16 * 16 + 16 * 10 * 5, 480 + 50,
    ),
}  # fmt: skip
