"""A convolutional network in NumPy, forward and backward, small enough for training on one core.

Activations are (N, height, width, C), weights (S, height, width, C). A layer is a convolution with `same` padding and
stride 1, or fully connected; then ReLU except in the last layer, then perhaps 2 x 2 max pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sparsemap.pieces.contracts.base import Array

from .blocks import Shape


@attrs.frozen
class LayerShape:
    """A layer without weights."""

    name: str
    outputs: int
    kernel: int = 1
    """Width and height; 0 for fully connected."""
    pool: bool = False


@attrs.define
class TrainedLayer:
    """Weights, bias and masks of a layer."""

    name: str
    weights: Array
    """(S, height, width, C)."""
    bias: Array
    dense: bool
    pool: bool
    last: bool
    side: int
    """Height and width of the output before pooling."""
    words: Array | None = None
    """Bool like the weights: words of the forward pass; None: all."""
    live: Array | None = None
    """Bool like the weights: words with gradients; None: all."""
    factors: Array | None = None
    """Real factors of the weights, for trained masks."""

    @property
    def shape(self) -> Shape:
        return self.weights.shape

    @property
    def macs(self) -> int:
        """Multiplications per image."""
        return self.weights.size * self.side**2

    @property
    def effective(self) -> Array:
        """The weights of the forward pass."""
        weights = self.weights if self.words is None else np.where(self.words, self.weights, 0)
        return weights if self.factors is None else weights * self.factors


@attrs.define
class TrainedNetwork:
    """A sequence of layers."""

    layers: list[TrainedLayer]

    @classmethod
    def create(
        cls, shapes: Sequence[LayerShape], side: int, channels: int, rng: np.random.Generator, dtype: Any = np.float32
    ) -> TrainedNetwork:
        """Random weights (He et al.) for images (side, side, channels)."""
        layers = []
        for place, shape in enumerate(shapes):
            dense = shape.kernel == 0
            if dense:
                side, channels = 1, side * side * channels
            kernel = max(shape.kernel, 1)
            scale = np.sqrt(2 / (kernel * kernel * channels))
            weights = (rng.standard_normal((shape.outputs, kernel, kernel, channels)) * scale).astype(dtype)
            last, bias = place == len(shapes) - 1, np.zeros(shape.outputs, dtype)
            layers.append(TrainedLayer(shape.name, weights, bias, dense, shape.pool, last, side))
            side, channels = side // 2 if shape.pool else side, shape.outputs
        return cls(layers)

    def copy(self) -> TrainedNetwork:
        return TrainedNetwork([attrs.evolve(x, weights=x.weights.copy(), bias=x.bias.copy()) for x in self.layers])

    def __getitem__(self, name: str) -> TrainedLayer:
        return next(layer for layer in self.layers if layer.name == name)

    @property
    def macs(self) -> dict[str, int]:
        return {layer.name: layer.macs for layer in self.layers}

    def logits(self, images: Array) -> Array:
        """(N, side, side, C) -> (N, classes)."""
        for layer in self.layers:
            images, _ = _forward(layer, images)
        return images

    def gradients(self, images: Array, labels: Array) -> tuple[float, dict[str, tuple[Array, Array]]]:
        """The cross entropy summed over the images, and its gradient by effective weights and bias of every layer."""
        caches = []
        x = images
        for layer in self.layers:
            x, cache = _forward(layer, x)
            caches.append(cache)
        shifted = x - x.max(axis=1, keepdims=True)
        log_sum = np.log(np.exp(shifted).sum(axis=1))
        index = np.arange(len(labels))
        loss = float((log_sum - shifted[index, labels]).sum())
        upstream = np.exp(shifted - log_sum[:, None])
        upstream[index, labels] -= 1
        found: dict[str, tuple[Array, Array]] = {}
        for layer, cache in zip(reversed(self.layers), reversed(caches), strict=True):
            weights, bias, upstream = _backward(layer, cache, upstream, layer is not self.layers[0])
            found[layer.name] = weights, bias
        return loss, found


# ------------------------------------------------------------------------------------------------------ forward, backward


def _forward(layer: TrainedLayer, x: Array) -> tuple[Array, dict[str, Any]]:
    columns = x.reshape(len(x), -1) if layer.dense else _columns(x, layer.shape[1])
    y = columns @ layer.effective.reshape(len(layer.bias), -1).T
    y += layer.bias
    cache: dict[str, Any] = {"shape": x.shape, "columns": columns}
    if not layer.last:
        np.maximum(y, 0, out=y)
    if not layer.dense:
        y = y.reshape(*x.shape[:3], -1)
    cache["output"] = y
    if layer.pool:
        quarters = _quarters(y)
        y = np.maximum(np.maximum(quarters[0], quarters[1]), np.maximum(quarters[2], quarters[3]))
        cache["pooled"] = y
    return y, cache


def _columns(x: Array, kernel: int) -> Array:
    """Inputs of every output pixel, (pixels, kernel * kernel * C); a row of a window is contiguous in memory."""
    n, height, width, channels = x.shape
    edge = kernel // 2
    padded = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0))).reshape(n, height + 2 * edge, -1)
    windows = sliding_window_view(padded, (kernel, kernel * channels), axis=(1, 2))[:, :, ::channels]
    return windows.reshape(n * height * width, kernel * kernel * channels)


def _quarters(y: Array) -> list[Array]:
    """The four pixels of every 2 x 2 window, each (N, height / 2, width / 2, C)."""
    return [y[:, row::2, column::2] for row in (0, 1) for column in (0, 1)]


def _backward(layer: TrainedLayer, cache: dict[str, Any], upstream: Array, below: bool) -> tuple[Array, Array, Array]:
    """Gradients by effective weights, by bias, and by the input (meaningless without `below`)."""
    shape, output = cache["shape"], cache["output"]
    if layer.pool:  # to the first of the largest pixels
        whole = np.empty_like(output)
        left = upstream
        for pixel, place in zip(_quarters(output), _quarters(whole), strict=True):
            place[...] = np.where(pixel == cache["pooled"], left, 0)
            left = left - place
        upstream = whole
    if not layer.last:
        upstream = upstream * (output > 0)
    flat = upstream.reshape(-1, len(layer.bias))
    weights = (flat.T @ cache["columns"]).reshape(layer.shape)
    bias = flat.sum(axis=0)
    if not below:
        return weights, bias, upstream
    effective = layer.effective
    if layer.dense:
        return weights, bias, (flat @ effective.reshape(len(layer.bias), -1)).reshape(shape)
    kernel = layer.shape[1]
    edge = kernel // 2
    padded = np.zeros((shape[0], shape[1] + 2 * edge, shape[2] + 2 * edge, shape[3]), flat.dtype)
    for row in range(kernel):
        for column in range(kernel):
            part = (flat @ effective[:, row, column]).reshape(shape)
            padded[:, row : row + shape[1], column : column + shape[2]] += part
    return weights, bias, padded[:, edge : edge + shape[1], edge : edge + shape[2]]
