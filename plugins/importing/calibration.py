"""Densities of activations, measured by running a model on samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap.arrays import read_arrays
from sparsemap.errors import SpecError, unknown
from sparsemap.files import shown
from sparsemap.pieces.contracts.base import Array

from .model_file import OnnxModel
from .onnx_package import onnx_of, reported

SAMPLES = 32
WORDS = 1 << 28
"""Most words in a tensor of a model to run."""
BINS = 5
NARROW = 0.01
"""Densities within this range over all samples become a single number, their mean."""


def measured(model: OnnxModel, path: Path, tensors: Mapping[str, str]) -> Iterator[dict[str, Array]]:
    """Nonzero share of every channel by tensor, sample after sample, for up to 32 samples.

    `tensors` maps a tensor to the constant with its zero point, or to an empty name. The file is an .npz with an array
    per input of the model, samples first. The reference evaluator of the package `onnx` runs one sample at a time, or a
    whole batch if the model fixes the batch size."""
    given = {value.name: value for value in model.proto.graph.input if value.name in model.inputs}
    arrays = read_arrays(path)
    if strange := [name for name in arrays if name not in given]:
        raise SpecError.at(shown(path), "", unknown("input of the model", strange[0], given))
    kinds = {}
    for name, value in given.items():
        if name not in arrays:
            raise SpecError.at(shown(path), "", f"has no array for input '{name}' of the model")
        shape, found = [item.dim_value or None for item in value.type.tensor_type.shape.dim], arrays[name].shape
        if not shape:
            raise SpecError.at(model.file, f"input '{name}'", "has no dimensions, expected one for samples")
        if len(found) != len(shape) or any(a and a != b for a, b in zip(shape[1:], found[1:], strict=False)):
            expected = " x ".join(["samples", *(str(size or "any") for size in shape[1:])])
            raise SpecError.at(shown(path), name, f"is {' x '.join(map(str, found))}, expected {expected}")
        kinds[name] = onnx_of("onnx.helper").tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    first = given[model.inputs[0]].type.tensor_type.shape.dim[0]
    step = first.dim_value or 1
    count = min(min(len(array) for array in arrays.values()) // step, SAMPLES)
    if not count:
        raise SpecError.at(shown(path), "", f"holds too few samples: the model takes {step} at a time")
    for name, sides in model.shapes.items():
        if (words := math.prod(sides)) > WORDS:
            text = f"tensor '{name}' has {words:,} words; models with more than {WORDS:,} in a tensor are not run"
            raise SpecError.at(model.file, "", text)
    zeros = {name: model.constant(zero) for name, zero in tensors.items() if zero}
    with reported(model.file, "", "cannot be run by the reference of the package onnx"):
        onnx_of("onnx.external_data_helper").load_external_data_for_model(model.proto, str(model.path.parent))
        run = onnx_of("onnx.reference").ReferenceEvaluator(model.proto)
        for sample in range(count):
            part = slice(sample * step, (sample + 1) * step)
            found = run.run(list(tensors), {name: array[part].astype(kinds[name]) for name, array in arrays.items()})
            pairs = zip(tensors, found, strict=True)
            measures = {}
            for name, array in pairs:
                channels = 1 if array.ndim > 3 else array.ndim - 1  # of images, or of rows
                shares = (array != zeros.get(name, 0)).mean(tuple(x for x in range(array.ndim) if x != channels))
                # a tensor of zeros counts as having a nonzero, since densities are above 0
                measures[name] = shares if shares.any() else np.full_like(shares, 1 / array.size)
            yield measures


def density(shares: Sequence[float]) -> Any:
    """Density of a network from the densities of samples: a number, or a range with five quantiles and a histogram."""
    mean, low, high = (_rounded(float(share)) for share in (np.mean(shares), min(shares), max(shares)))
    if high - low < NARROW:
        return mean
    points = sorted({_rounded(float(point)) for point in np.quantile(shares, np.linspace(0, 1, BINS))}, reverse=True)
    counts = np.histogram(np.clip(shares, low, high), BINS, (low, high))[0]
    return {
        "type": "range", "low": low, "high": high, "points": [min(max(point, low), high) for point in points],
        "weights": "probability", "histogram": counts.tolist(), "nominal": mean,
    }  # fmt: skip


def _rounded(share: float) -> float:
    return float(f"{share:.4g}")
