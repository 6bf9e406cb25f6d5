"""From the nodes of a network to the layers that the compiler takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.arrays import read_arrays
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
LARGEST = 1 << 30
"""Bytes of a JSON file."""


def layers_of(nodes: Sequence[Node], sparsity: float = 0.0, masks: Mapping[str, Array] | None = None) -> list[Layer]:
    """The layers of a network in its order, with so many of the blocks pruned; `SpecError` for what is not supported.

    The first convolution stays dense. Fully connected layers are left out; where they follow an image of more than one
    pixel, its global average takes their place, as in the paper.
    """
    layers: list[Layer] = []
    for node in nodes:
        if node.piece.type_name == LEFT_OUT:
            last = layers[-1] if layers else None
            if last and (size := (last.out_height, last.out_width)) != (1, 1):
                shape = *size, last.out_channels, 1, 1, last.out_channels
                layers.append(Layer("average", "avgpool", (last.name,), *shape, size))
            break
        layers.append(layer_of(node))
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
            if mask.shape != layer.blocks:
                sizes, wanted = (" x ".join(map(str, shape)) for shape in (mask.shape, layer.blocks))
                text = f"is {sizes} blocks, expected {wanted} (output x input channels)"
                raise SpecError.at("", f"masks: {layer.name}", text)
            layer = attrs.evolve(layer, mask=mask, density=float(mask.mean()))
        elif layer.op == "conv" and layer.name != names[0] and not masks:
            layer = attrs.evolve(layer, density=1.0 - sparsity)
        found.append(layer)
    return found


def layer_of(node: Node) -> Layer:
    """The dense layer of a node with shapes; `SpecError` for what is not compiled."""
    piece: Any = node.piece

    def wrong(text: str) -> SpecError:
        return SpecError.at("", f"layer {node.name}", text)

    if piece.type_name not in TYPES:
        raise wrong(f"{unknown('type', piece.type_name, TYPES)} (those that are compiled)")
    if not node.shape:
        raise wrong("has no shapes; the network needs the key 'input'")
    if node.repeat > 1:
        raise wrong("is repeated; write its repetitions as layers")
    op = TYPES[piece.type_name]
    out, height, width = node.shape
    channels = sum(shape[0] for shape in node.given) if op == "concat" else node.given[0][0]
    kernel, stride, padding = (1, 1), 1, (0, 0)
    if piece.type_name == "global-average":
        kernel = node.given[0][1:]
    elif op in ("conv", "maxpool", "avgpool"):
        kernel, stride = (piece.r, piece.s), piece.stride[0]
        if piece.stride[1] != stride:
            raise wrong(f"strides {stride} and {piece.stride[1]} differ, which is not compiled")
        if getattr(piece, "groups", 1) > 1 or tuple(getattr(piece, "dilation", (1, 1))) != (1, 1):
            raise wrong("groups and dilation are not compiled")
        padding = _before(piece.padding, node.given[0][1:], node.shape[1:], kernel, stride)
    return Layer(node.name, op, node.inputs, *node.given[0][1:], channels, height, width, out, kernel, stride, padding)


def _before(
    padding: Any, size: Sequence[int], out: Sequence[int], kernel: Sequence[int], stride: int
) -> tuple[int, int]:
    """Rows above and columns to the left; what lies behind follows from the shapes."""
    if padding == "valid":
        return 0, 0
    if padding == "same":
        top, left = (max(0, (o - 1) * stride + k - i) // 2 for i, o, k in zip(size, out, kernel, strict=True))
        return top, left
    return padding[0][0], padding[1][0]


def read_masks(path: Path) -> dict[str, Array]:
    """Masks by layer from a `.npz` file, a folder of `.npy` files, or a `masks.json` (perhaps beside such files).

    A mask is an array of blocks, (output channels / 8, input channels / 8), True or 1 where a block is kept. A JSON file
    has under `layers` the table of every layer, whose key `mask` is the name of its `.npy` file or the lists of its rows.
    """
    if path.is_dir():
        inside = path / "masks.json"
        if inside.exists():
            return read_masks(inside)
        return {file.stem: _mask(file) for file in sorted(path.glob("*.npy"))}
    if path.suffix == ".npz":
        return {name: _blocks(array, f"{shown(path)}: {name}") for name, array in read_arrays(path).items()}
    if path.suffix != ".json":
        raise SpecError.at(shown(path), "", "expected masks as a .npz file, a folder of .npy files, or masks.json")
    table = read_json(path)
    layers = table.get("layers") if isinstance(table, dict) else None
    if not isinstance(layers, dict):
        raise SpecError.at(shown(path), "layers", "expected a table by layer")
    given = {name: entry.get("mask") for name, entry in layers.items() if isinstance(entry, dict)}
    return {
        name: _mask(path.parent / mask) if isinstance(mask, str) else _blocks(mask, f"{shown(path)}: layers.{name}")
        for name, mask in given.items()
        if mask is not None
    }


def read_json(path: Path) -> Any:
    """What a JSON file holds; SpecError where it is none."""
    try:
        return json.loads(read_bytes(path, LARGEST))
    except (ValueError, RecursionError) as error:
        raise SpecError.at(shown(path), "", f"is no JSON: {error}") from None


def _mask(path: Path) -> Array:
    return _blocks(read_arrays(path, (".npy",))[path.stem], shown(path))


def _blocks(value: Any, file: str) -> Array:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.zeros(0)
    if array.ndim != 2 or array.dtype.kind not in "bui" or not array.size or not np.isin(array, (0, 1)).all():
        raise SpecError.at(file, "", "expected a matrix of blocks with entries 0 and 1")
    return array.astype(bool)
