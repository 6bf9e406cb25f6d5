"""A fully connected network in NumPy, double precision, with ReLU between its layers and one output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array

BATCH = 16
"""Products of so few rows are not split over threads: the same bits on any machine, and no waiting for threads."""
RATE = 1e-3
"""Step of Adam at first; it falls to zero along a cosine."""
DECAY = (0.9, 0.999)
"""Of Adam's averages of the gradient and of its square."""


@attrs.frozen(eq=False)
class Network:
    """Layer i maps x to `x @ weights[i] + biases[i]`."""

    weights: list[Array]
    biases: list[Array]

    @classmethod
    def random(cls, widths: Sequence[int], rng: np.random.Generator) -> Network:
        """He's initial weights for these widths, from the inputs to the output."""
        pairs = list(pairwise(widths))
        weights = [rng.normal(0.0, np.sqrt(2.0 / a), size=(a, b)) for a, b in pairs]
        return cls(weights, [np.zeros(b) for _, b in pairs])

    def _forward(self, x: Array) -> list[Array]:
        """The inputs of every layer, and the output last."""
        values = [x]
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ weight + bias
            if i < len(self.weights) - 1:
                x = np.maximum(x, 0.0)
            values.append(x)
        return values

    def predict(self, x: Array) -> Array:
        """(n, inputs) -> (n,)."""
        return self._forward(x)[-1][:, 0]

    def _backward(self, values: list[Array], back: Array) -> tuple[list[Array], Array]:
        """Gradients of the parameters, weights before biases, and of the inputs, for those of the output (n, 1)."""
        weights, biases = [], []
        for i in reversed(range(len(self.weights))):
            weights.append(values[i].T @ back)
            biases.append(back.sum(axis=0))
            back = back @ self.weights[i].T
            if i:
                back *= values[i] > 0.0
        return weights[::-1] + biases[::-1], back

    def gradient(self, x: Array) -> Array:
        """(n, inputs), by how much the output of each row rises with each of its inputs."""
        return self._backward(self._forward(x), np.ones((len(x), 1)))[1]

    def train(self, x: Array, y: Array, epochs: int, rng: np.random.Generator) -> Iterator[float]:
        """Huber loss against y (n,), by Adam; changes the network, and yields the mean loss after each epoch."""
        parameters = self.weights + self.biases
        first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))
        steps = epochs * -(-len(x) // BATCH)
        step = 0
        for _ in range(epochs):
            total = 0.0
            order = rng.permutation(len(x))
            for start in range(0, len(x), BATCH):
                rows = order[start : start + BATCH]
                values = self._forward(x[rows])
                error = values[-1][:, 0] - y[rows]
                inside = np.clip(error, -1.0, 1.0)
                total += float((inside * (error - 0.5 * inside)).sum())
                gradients, _ = self._backward(values, inside[:, None] / len(rows))
                rate = RATE * 0.5 * (1.0 + np.cos(np.pi * step / steps))
                step += 1
                for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
                    m += (1.0 - DECAY[0]) * (g - m)
                    v += (1.0 - DECAY[1]) * (g * g - v)
                    p -= rate * (m / (1.0 - DECAY[0] ** step)) / (np.sqrt(v / (1.0 - DECAY[1] ** step)) + 1e-8)
            yield total / len(x)
