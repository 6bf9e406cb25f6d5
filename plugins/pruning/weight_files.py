"""Weights and gradients of a user's network by layer, from files of arrays."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap.arrays import read_arrays
from sparsemap.errors import SparseMapError, SpecError, unknown
from sparsemap.files import shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.writing import replacing

ENDINGS = (".npy", ".npz", ".safetensors")
LAYOUTS = {"oihw": (0, 2, 3, 1), "ohwi": (0, 1, 2, 3), "hwio": (3, 0, 1, 2)}
"""Orders of the ranks of four-dimensional weights in PyTorch, TFLite and TensorFlow, and the way to (S, height, width,
C)."""


def read_weights(path: Path, layout: str = "oihw") -> dict[str, Array]:
    """Weights (S, height, width, C) by layer, in the order of the file, without biases, other vectors and flags.

    Matrices are (outputs, inputs). SpecError for other ranks, other types, NaN, and files without a layer."""
    found = {}
    for name, array in read_arrays(path, ENDINGS).items():
        if array.ndim >= 2 and array.dtype.kind != "b":
            found[name] = weights_of(shown(path), name, array, layout)
    if not found:
        raise SpecError.at(shown(path), "", "holds no matrix and no convolution")
    return found


def weights_of(file: str, name: str, array: Array, layout: str = "oihw") -> Array:
    """Weights (S, height, width, C) of an array of a file; SpecError for other arrays."""
    if array.ndim not in (2, 4):
        raise SpecError.at(file, name, f"has {array.ndim} ranks, expected 2 (a matrix) or 4 (a convolution)")
    if array.dtype.kind not in "fiu" or array.size == 0:
        raise SpecError.at(file, name, f"holds {array.size} values of type {array.dtype}, expected numbers")
    if not np.isfinite(array).all():
        raise SpecError.at(file, name, "holds NaN or infinite values")
    return as_convolution(array, layout)


def in_layout(array: Array, ranks: int, layout: str = "oihw") -> Array:
    """Weights (S, height, width, C) in their original ranks and layout."""
    return array[:, 0, 0] if ranks == 2 else array.transpose(tuple(np.argsort(LAYOUTS[layout])))


def write_masked(source: Path, folder: Path, masked: Mapping[str, Array], layout: str) -> Path:
    """Writes all arrays of the source with its ending, the `masked` ones (S, height, width, C) in their place, layout
    and type."""
    path, given = folder / f"masked{source.suffix}", read_arrays(source, ENDINGS)
    own = {name: in_layout(array, given[name].ndim, layout) for name, array in masked.items()}
    with replacing(path) as temporary:
        if source.suffix == ".safetensors":
            shutil.copyfile(source, temporary)
            _clear(temporary, {name: array == 0 for name, array in own.items()})
            return path
        arrays: Any = given | {
            name: np.ascontiguousarray(array.astype(given[name].dtype)) for name, array in own.items()
        }
        with open(temporary, "wb") as file:
            if source.suffix == ".npy":
                np.save(file, next(iter(arrays.values())), allow_pickle=False)
            else:
                np.savez(file, **arrays)
    return path


def _clear(path: Path, zeros: Mapping[str, Array]) -> None:
    """Clears words of a safetensors file; zero has no bit set in any of its types."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        table = json.loads(file.read(length))
    for name, zero in zeros.items():
        start, stop = table[name]["data_offsets"]
        words = np.memmap(path, np.uint8, "r+", 8 + length + start, (stop - start,))
        words.reshape(zero.size, -1)[zero.ravel()] = 0
        words.flush()


def depthwise(array: Array) -> bool:
    """Whether weights (S, height, width, C) are windows of single channels, without blocks of channels."""
    return array.shape[0] > 1 == array.shape[3] and math.prod(array.shape[1:3]) > 1


def as_convolution(array: Array, layout: str = "oihw") -> Array:
    """A matrix (outputs, inputs), or convolution weights in the given layout, as (S, height, width, C)."""
    return np.ascontiguousarray(array[:, None, None, :] if array.ndim == 2 else array.transpose(LAYOUTS[layout]))


def read_gradients(path: Path, weights: dict[str, Array], layout: str) -> dict[str, Array]:
    """Mean gradients (or squared gradients) by layer, each of the shape of its weights."""
    found = read_weights(path, layout)
    for name, array in weights.items():
        if name not in found:
            raise SpecError.at(shown(path), "", unknown("gradient for the layer", name, found))
        if found[name].shape != array.shape:
            raise SpecError.at(shown(path), name, f"has the shape {found[name].shape}, expected {array.shape}")
    return found


def chosen_layers(weights: dict[str, Array], wanted: tuple[str, ...], classifier: bool = False) -> dict[str, Array]:
    """The layers to prune: the named ones, or else all but the first and (unless `classifier`) the last."""
    for name in wanted:
        if name not in weights:
            raise SparseMapError(f"--layer: {unknown('layer', name, weights)}")
    names = wanted or (tuple(weights)[1 : None if classifier else -1] if len(weights) > 2 else tuple(weights))
    return {name: weights[name] for name in names}
