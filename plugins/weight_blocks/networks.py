"""From the nodes of a network to the layers that the compiler takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SpecError, unknown
from sparsemap.files import read_bytes, shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.network import Node

from .layers import Layer

TYPES = {
    "conv2d": "conv",
    "max-pool": "maxpool",
    "average-pool": "avgpool",
    "global-average": "avgpool",
    "add": "add",
    "concat": "concat",
}
"""Operations by the type of a node."""
LEFT_OUT = "linear"
"""Fully connected layers: the paper's lists have none."""


def layers_of(nodes: Sequence[Node], sparsity: float = 0.0, masks: Mapping[str, Array] | None = None) -> list[Layer]:
    """The layers of a network in its order, with so many of the blocks pruned; `SpecError` for what is not supported.

    The first convolution stays dense. Fully connected layers are left out; where they follow an image of more than one
    pixel, its global average takes their place, as in the paper.
    """
    layers: list[Layer] = []
    last: Node | None = None
    for node in nodes:
        kind = node.piece.type_name
        if kind == LEFT_OUT:
            break
        if kind not in TYPES:
            raise SpecError.at("", f"layer {node.name}", f"{unknown('type', kind, TYPES)} (those that are compiled)")
        if not node.shape:
            raise SpecError.at("", f"layer {node.name}", "has no shapes; the network needs the key 'input'")
        if node.repeat > 1:
            raise SpecError.at("", f"layer {node.name}", "is repeated; write its repetitions as layers")
        layers.append(_layer(node))
        last = node
    if last is not None and last.shape[1:] != (1, 1) and len(layers) < len(nodes):
        channels, height, width = last.shape
        layers.append(
            Layer("average", "avgpool", (last.name,), height, width, channels, 1, 1, channels, (height, width))
        )
    return pruned(layers, sparsity, masks or {})


def pruned(layers: Sequence[Layer], sparsity: float, masks: Mapping[str, Array]) -> list[Layer]:
    """The layers with so many blocks pruned in every block row, or with masks by name."""
    names = [layer.name for layer in layers if layer.op == "conv"]
    for name in masks:
        if name not in names:
            raise SpecError.at("", f"masks: {name}", unknown("convolution", name, names))
    found = []
    for layer in layers:
        mask = masks.get(layer.name)
        if mask is not None:
            expected = layer.padded_out_channels // 8, layer.padded_channels // 8
            if np.shape(mask) != expected:
                shape = " x ".join(map(str, np.shape(mask)))
                text = f"is {shape} blocks, expected {expected[0]} x {expected[1]} (output x input channels)"
                raise SpecError.at("", f"masks: {layer.name}", text)
            layer = attrs.evolve(layer, mask=np.asarray(mask, bool))
        elif layer.op == "conv" and layer.name != names[0] and not masks:
            layer = attrs.evolve(layer, density=1.0 - sparsity)
        found.append(layer)
    return found


def _layer(node: Node) -> Layer:
    piece: Any = node.piece
    op = TYPES[piece.type_name]
    out, height, width = node.shape
    channels = sum(shape[0] for shape in node.given) if op == "concat" else node.given[0][0]
    kernel, stride, padding = (1, 1), 1, (0, 0)
    if piece.type_name == "global-average":
        kernel = node.given[0][1:]
    elif op in ("conv", "maxpool", "avgpool"):
        kernel, stride = (piece.r, piece.s), _one_stride(node)
        padding = _padding(node, kernel, stride)
        if getattr(piece, "groups", 1) > 1 or tuple(getattr(piece, "dilation", (1, 1))) != (1, 1):
            raise SpecError.at("", f"layer {node.name}", "groups and dilation are not compiled")
    return Layer(node.name, op, node.inputs, *node.given[0][1:], channels, height, width, out, kernel, stride, padding)


def _one_stride(node: Node) -> int:
    stride = node.piece.stride  # type: ignore[union-attr]
    if stride[0] != stride[1]:
        raise SpecError.at(
            "", f"layer {node.name}", f"strides {stride[0]} and {stride[1]} differ, which is not compiled"
        )
    return int(stride[0])


def _padding(node: Node, kernel: tuple[int, int], stride: int) -> tuple[int, int]:
    """Rows above and columns to the left; what lies behind follows from the shapes."""
    given: Any = node.piece.padding  # type: ignore[union-attr]
    if given == "valid":
        return 0, 0
    if given == "same":
        sizes = zip(node.given[0][1:], node.shape[1:], kernel, strict=True)
        before = [max(0, (out - 1) * stride + k - size) // 2 for size, out, k in sizes]
        return before[0], before[1]
    return given[0][0], given[1][0]


# ---------------------------------------------------------------------------------------------------------------- masks


def read_masks(path: Path) -> dict[str, Array]:
    """Masks by layer from a `.npz` file, a folder of `.npy` files, or a `masks.json` beside such files.

    A mask is an array of blocks, (output channels / 8, input channels / 8), True or 1 where a block is kept. A JSON file
    has under `layers` the table of every layer, whose key `mask` is the name of its `.npy` file or the lists of its rows.
    """
    if path.is_dir():
        inside = path / "masks.json"
        return (
            read_masks(inside) if inside.exists() else {file.stem: _array(file) for file in sorted(path.glob("*.npy"))}
        )
    if path.suffix == ".json":
        return _from_json(path)
    if path.suffix == ".npz":
        import io

        with np.load(io.BytesIO(read_bytes(path, 1 << 30)), allow_pickle=False) as stored:
            return {name: _blocks(stored[name], f"{shown(path)}: {name}") for name in stored.files}
    raise SpecError.at(shown(path), "", "expected masks as a .npz file, a folder of .npy files, or masks.json")


def _from_json(path: Path) -> dict[str, Array]:
    import json

    try:
        table = json.loads(read_bytes(path, 1 << 30))
    except ValueError as error:
        raise SpecError.at(shown(path), "", f"is no JSON: {error}") from None
    layers = table.get("layers", table) if isinstance(table, dict) else None
    if not isinstance(layers, dict):
        raise SpecError.at(shown(path), "layers", "expected a table by layer")
    found = {}
    for name, entry in layers.items():
        value = entry.get("mask") if isinstance(entry, dict) else entry
        if value is None:
            continue
        if isinstance(value, str):
            found[name] = _array(path.parent / value)
        else:
            found[name] = _blocks(np.array(value), f"{shown(path)}: layers.{name}")
    return found


def _array(path: Path) -> Array:
    import io

    return _blocks(np.load(io.BytesIO(read_bytes(path, 1 << 30)), allow_pickle=False), shown(path))


def _blocks(array: Array, file: str) -> Array:
    if (
        array.ndim != 2
        or array.dtype.kind not in "bui"
        or not math.prod(array.shape)
        or not np.isin(array, (0, 1)).all()
    ):
        raise SpecError.at(file, "", "expected a matrix of blocks with entries 0 and 1")
    return array.astype(bool)
