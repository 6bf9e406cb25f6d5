"""Layers for the compiler from the nodes of a network."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.arrays import read_arrays
from sparsemap.errors import Mistake, SpecError, shortened, unknown
from sparsemap.file_formats import MASKS
from sparsemap.files import read_json, shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.network import Node
from sparsemap.spec.structuring import collecting

from .layers import BLOCK, Block, MeshLayer

TYPES = {
    "conv2d": "conv",
    "linear": "conv",
    "max-pool": "maxpool",
    "average-pool": "avgpool",
    "global-average": "avgpool",
    "add": "add",
    "concat": "concat",
}
"""Operations by the type of a node."""
LARGEST = 1 << 30
"""Most bytes of a JSON file."""


def layers_of(
    nodes: Sequence[Node],
    sparsity: float | None = None,
    masks: Mapping[str, Array] | None = None,
    block: Block = BLOCK,
    columns: int = 1,
    rectified: Collection[str] | None = None,
    returned: Collection[str] = (),
) -> list[MeshLayer]:
    """The layers of a network in order, without blocks of zeros, or pruned to a `sparsity` or by `masks`; `SpecError`
    with all unsupported layers.

    After pruning, the first convolution and a fully connected layer at the end of a network of convolutions stay dense.
    Rows of words are images with at least `columns` columns, shared by the columns of cores. `rectified` names the
    layers with a ReLU, `returned` the outputs of the network."""
    mistakes: list[Mistake] = []
    layers: list[MeshLayer] = []
    for node in nodes:
        with collecting(mistakes, ""):
            layer = attrs.evolve(layer_of(node, columns), block=block)
            own = layer.op == "conv" and sparsity is None and not masks
            layers.append(without_zeros(layer, node) if own else layer)
    if mistakes:
        raise SpecError(mistakes)
    _check_concats(layers)
    types = {node.name: node.piece.type_name for node in nodes}
    images = "conv2d" in types.values()
    if rectified is None:
        rectified = [layer.name for layer in layers if _rectified(layer, layers, types, images)]
    layers = [attrs.evolve(one, relu=one.name in rectified, returned=one.name in returned) for one in layers]
    convs = [layer.name for layer in layers if layer.op == "conv"]
    first = next((name for name in convs if types[name] == "conv2d"), "")
    last = convs[-1] if convs and images and types[convs[-1]] == "linear" else ""
    return pruned(layers, sparsity, masks or {}, {first, last})


def _rectified(layer: MeshLayer, layers: Sequence[MeshLayer], types: Mapping[str, str], images: bool) -> bool:
    """Default of ReLUs: behind convolutions without a sum as reader, sums of images, and fully connected layers read by
    fully connected layers alone."""
    readers = [other for other in layers if layer.name in other.inputs]
    if types[layer.name] == "linear":
        return bool(readers) and all(types[other.name] == "linear" for other in readers)
    return images and (layer.op == "add" or not any(other.op == "add" for other in readers))


def _check_concats(layers: Sequence[MeshLayer]) -> None:
    """Check that concatenations, written in place, have parts of whole blocks, and that sums read two tensors."""
    by_name = {layer.name: layer for layer in layers}
    for layer in layers:
        joined = [source for source in layer.inputs if source in by_name and by_name[source].op == "concat"]
        if layer.op == "add" and (len({*layer.inputs}) != 2 or joined):
            text = "a sum is compiled of two different tensors, neither a concatenation"
            raise SpecError.at("", f"layer {layer.name}", f"{text}; found {', '.join(layer.inputs)}")
        for source in layer.inputs if layer.op == "concat" else ():
            if source in by_name and by_name[source].out_channels % layer.grain:
                text = f"a concatenation is compiled of multiples of {layer.grain} channels; {source} has"
                raise SpecError.at("", f"layer {layer.name}", f"{text} {by_name[source].out_channels}")


def pruned(
    layers: Sequence[MeshLayer], sparsity: float | None, masks: Mapping[str, Array], dense: Collection[str]
) -> list[MeshLayer]:
    """The layers with a share of blocks pruned in every block row, without the `dense` ones, or with masks by name."""
    names = [layer.name for layer in layers if layer.op == "conv"]
    for name in masks:
        if name not in names:
            raise SpecError.at("", f"masks: {name}", unknown("convolution", name, names))
    found = []
    for layer in layers:
        mask = masks.get(layer.name)
        if mask is not None:
            rows, columns = layer.blocks
            window = layer.kernel == (layer.height, layer.width) and layer.channels % layer.block[1] == 0
            if window and mask.shape == (rows, columns * layer.taps):  # blocks of words, channel after channel
                mask = np.any(mask.reshape(rows, columns, layer.taps), axis=2)
            if mask.shape != layer.blocks:
                sizes, wanted = (" x ".join(map(str, shape)) for shape in (mask.shape, layer.blocks))
                text = f"is {sizes} blocks, expected {wanted} (output x input channels)"
                raise SpecError.at("", f"masks: {layer.name}", text)
            layer = attrs.evolve(layer, mask=mask, density=float(mask.mean()))
        elif layer.op == "conv" and layer.name not in dense and not masks and sparsity is not None:
            layer = attrs.evolve(layer, density=1.0 - sparsity)
        found.append(layer)
    return found


def layer_of(node: Node, columns: int = 1) -> MeshLayer:
    """The dense layer of a node with shapes; `SpecError` for an unsupported node."""
    piece: Any = node.piece

    def wrong(text: str) -> SpecError:
        return SpecError.at("", f"layer {node.name}", text)

    if piece.type_name not in TYPES:
        raise wrong(f"'{piece.type_name}' is not compiled, only {', '.join(TYPES)}")
    if not node.shape:
        raise wrong("has no shapes; the network needs the key 'input'")
    if node.repeat > 1:
        raise wrong("is repeated; write its repetitions as layers")
    if getattr(piece, "batch", 1) > 1:
        raise wrong(f"a batch of {piece.batch} is not compiled, only one sample")
    op = TYPES[piece.type_name]
    height, width, out = _image(node.shape, columns)
    given = [_image(shape, columns) for shape in node.given]
    image, channels = given[0][:2], sum(one[2] for one in given) if op == "concat" else given[0][2]
    kernel, stride, padding = (1, 1), 1, (0, 0)
    if piece.type_name == "global-average":
        kernel = image
    elif piece.type_name == "linear":
        if piece.m == 1:
            kernel = image  # all words of the input, as one window
        elif node.given[0] != (piece.m, piece.k):
            shapes = " x ".join(map(str, node.given[0]))
            raise wrong(f"takes {shapes} as {piece.m} rows of {piece.k} words, which is not compiled")
    elif op in ("conv", "maxpool", "avgpool"):
        kernel, stride = (piece.r, piece.s), piece.stride[0]
        if piece.stride[1] != stride:
            raise wrong(f"strides {stride} and {piece.stride[1]} differ, which is not compiled")
        if getattr(piece, "groups", 1) > 1 or tuple(getattr(piece, "dilation", (1, 1))) != (1, 1):
            raise wrong("groups and dilation are not compiled")
        padding = _before(piece.padding, image, (height, width), kernel, stride)
    return MeshLayer(node.name, op, node.inputs, *image, channels, height, width, out, kernel, stride, padding)


def without_zeros(layer: MeshLayer, node: Node) -> MeshLayer:
    """The layer without blocks of zeros: exact for a density with a single tensor, else the expected number in every
    row."""
    assert node.loops
    weights = next(tensor for tensor in node.loops.tensors if tensor.name == getattr(node.piece, "weights", ""))
    model: Any = weights.density
    conv = node.piece.type_name == "conv2d"
    mask = getattr(model, "mask", None)
    if conv and mask is not None and tuple(model.block) == layer.block and mask.shape == layer.blocks:
        return attrs.evolve(layer, density=float(mask.mean()), mask=mask)
    kept, (outs, ins) = model.occupancy(weights.shape(node.loops.sizes)), layer.block
    draws = [kept.draw(np.random.default_rng(seed)) for seed in (0, 1)] if kept.by_shape else []
    if not draws or (draws[0] != draws[1]).any():
        return attrs.evolve(layer, density=1 - kept.empty((outs, ins, *layer.kernel) if conv else (ins, outs)))
    tensor = draws[0] if conv else draws[0].T.reshape(layer.out_channels, layer.channels, *layer.kernel)
    rows, columns = layer.blocks
    edges = [(0, rows * outs - len(tensor)), (0, columns * ins - tensor.shape[1]), (0, 0), (0, 0)]
    mask = np.any(np.pad(tensor, edges).reshape(rows, outs, columns, ins, -1), axis=(1, 3, 4))
    return attrs.evolve(layer, density=float(mask.mean()), mask=mask)


def _image(shape: Sequence[int], columns: int) -> tuple[int, int, int]:
    """Rows, columns and channels of a tensor; rows of words (m, n) get the fewest columns for the mesh that divide m."""
    if len(shape) == 3:
        return shape[1], shape[2], shape[0]
    rows = shape[0] if len(shape) == 2 else 1
    width = next(count for count in range(min(columns, rows), rows + 1) if rows % count == 0)
    return rows // width, width, shape[-1]


def _before(
    padding: Any, size: Sequence[int], out: Sequence[int], kernel: Sequence[int], stride: int
) -> tuple[int, int]:
    """Rows above and columns to the left; shapes give the rest."""
    if padding == "valid":
        return 0, 0
    if padding == "same":
        top, left = (max(0, (o - 1) * stride + k - i) // 2 for i, o, k in zip(size, out, kernel, strict=True))
        return top, left
    return padding[0][0], padding[1][0]


def read_masks(path: Path) -> dict[str, Array]:
    """Masks by layer from a `.npz` file, a folder of `.npy` files, or a `masks.json` (perhaps beside `.npy` files).

    A mask is an array of blocks, (block rows, block columns), True or 1 for a kept block. A JSON file has a table per
    layer under `layers`; the key `mask` is the name of a `.npy` file or a list of rows."""
    if path.is_dir():
        inside = path / "masks.json"
        if inside.exists():
            return read_masks(inside)
        return {file.stem: _mask(file) for file in sorted(path.glob("*.npy"))}
    if path.suffix == ".npz":
        return {name: _blocks(array, f"{shown(path)}: {name}") for name, array in read_arrays(path).items()}
    if path.suffix != ".json":
        raise SpecError.at(shown(path), "", "expected masks as a .npz file, a folder of .npy files, or masks.json")
    table = read_json(path, LARGEST)
    layers = MASKS.opened(table, shown(path)).get("layers")
    if not isinstance(layers, dict):
        raise SpecError.at(shown(path), "layers", f"found {shortened(layers)}, expected a table by layer")
    given = {name: entry.get("mask") for name, entry in layers.items() if isinstance(entry, dict)}
    return {
        name: _mask(path.parent / mask) if isinstance(mask, str) else _blocks(mask, f"{shown(path)}: layers.{name}")
        for name, mask in given.items()
        if mask is not None
    }


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
