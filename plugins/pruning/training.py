"""Trains the networks of `layers`: SGD with momentum or Adam, a cosine of rates, masks with gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .layers import TrainedNetwork
from .scores import Evidence

OPTIMISERS = ("sgd", "adam")
Words = dict[tuple[str, str], Array]
"""Numbers by layer and kind: weights, bias or factors."""


@attrs.frozen
class Images:
    """Images (N, side, side, channels) and their labels (N,)."""

    images: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, classes: Iterable[int], most: int | None = None) -> Images:
        """The images of some classes, the first `most` of each."""
        places = [np.flatnonzero(self.labels == label)[:most] for label in classes]
        chosen = np.sort(np.concatenate(places))
        return Images(self.images[chosen], self.labels[chosen])


def accuracy(network: TrainedNetwork, data: Images, among: Sequence[int] | None = None) -> float:
    """The share of images with the largest logit, of all or `among` some classes, at their label."""
    logits = network.logits(data.images)
    classes = np.arange(logits.shape[1]) if among is None else np.sort(among)
    return float((classes[logits[:, classes].argmax(axis=1)] == data.labels).mean())


@attrs.frozen
class Optimiser:
    """SGD with momentum, or Adam (Kingma and Ba), with weight decay."""

    name: str = attrs.field(default="sgd", validator=attrs.validators.in_(OPTIMISERS))
    momentum: float = 0.9
    decay: float = 4e-5
    """Decay of the weights, not of biases."""
    clip: float = math.inf
    """Largest norm of all gradients of a step together."""

    def start(self) -> Callable[[Words, Words, float], None]:
        """A function for changes in place by gradients and a learning rate, with moments."""
        first: Words = {}
        second: Words = {}
        steps = 0

        def change(values: Words, gradients: Words, rate: float) -> None:
            nonlocal steps
            steps += 1
            norm = math.sqrt(sum(float(np.vdot(gradient, gradient)) for gradient in gradients.values()))
            if norm > self.clip:
                gradients = {key: gradient * np.float32(self.clip / norm) for key, gradient in gradients.items()}
            for key, value in values.items():
                gradient = gradients[key]
                if self.name == "sgd":
                    first[key] = self.momentum * first.get(key, 0.0) + gradient
                    value -= rate * first[key]
                    continue
                first[key] = 0.9 * first.get(key, 0.0) + 0.1 * gradient
                second[key] = 0.999 * second.get(key, 0.0) + 0.001 * gradient**2
                scale = math.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
                value -= (rate * scale) * first[key] / (np.sqrt(second[key]) + 1e-8)

        return change


def fit(
    network: TrainedNetwork,
    data: Images,
    epochs: int,
    rate: float,
    batch: int,
    optimiser: Optimiser,
    rng: np.random.Generator,
    pull: float = 0.0,
    penalty: Callable[[str, Array], Array] | None = None,
) -> None:
    """Train in place. The rate falls from `rate` to 0 along a cosine.

    The forward pass sees the words of a layer's mask; the gradient reaches all words of kept blocks (straight-through
    estimator). `pull` drags the pruned words of kept blocks towards zero (SR-STE). `penalty` gives the gradient of a
    penalty on `factors`, by layer, which are trained only with a penalty."""
    change = optimiser.start()
    steps = epochs * math.ceil(len(data) / batch)
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(data))
        for first in range(0, len(data), batch):
            chosen = order[first : first + batch]
            _, found = network.gradients(data.images[chosen], data.labels[chosen])
            values: Words = {}
            gradients: Words = {}
            for layer in network.layers:
                weights, bias = found[layer.name]
                weights = weights / len(chosen)
                if layer.factors is not None and penalty is not None:
                    values[layer.name, "factors"] = layer.factors
                    gradients[layer.name, "factors"] = penalty(layer.name, weights * layer.weights)
                if layer.factors is not None:
                    weights = weights * layer.factors
                weights = weights + optimiser.decay * layer.weights
                if layer.live is not None and layer.words is not None:
                    weights = np.where(layer.live, weights, 0)
                    if pull:
                        weights = weights + pull * np.where(layer.live & ~layer.words, layer.weights, 0)
                values[layer.name, "weights"], gradients[layer.name, "weights"] = layer.weights, weights
                values[layer.name, "bias"], gradients[layer.name, "bias"] = layer.bias, bias / len(chosen)
            change(values, gradients, rate * 0.5 * (1 + math.cos(math.pi * step / steps)))
            step += 1


def evidence(
    network: TrainedNetwork,
    data: Images,
    names: Iterable[str],
    *,
    batch: int = 64,
    squared: bool = False,
) -> dict[str, Evidence]:
    """Weights of some layers and the mean gradients over samples, at the masked forward pass.

    `squared` adds the mean of the squared gradients of single samples, with a pass for each."""
    sums: dict[str, Array] = {name: np.zeros(network[name].shape) for name in names}
    squares, batch = {name: np.zeros_like(zeros) for name, zeros in sums.items()}, 1 if squared else batch
    for first in range(0, len(data), batch):
        _, found = network.gradients(data.images[first : first + batch], data.labels[first : first + batch])
        for name in sums:
            gradient = found[name][0].astype(np.float64)
            sums[name] += gradient
            squares[name] += gradient**2
    mean = {name: (sums[name] / len(data), squares[name] / len(data) if squared else None) for name in sums}
    return {name: Evidence(network[name].weights, *found) for name, found in mean.items()}
