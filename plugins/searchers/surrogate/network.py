"""A fully connected network with ReLU between its layers and one output: trained by scikit-learn, evaluated in NumPy.

Mind Mappings descends the gradient by the inputs, which scikit-learn does not give; so a trained network needs no more
than NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from sparsemap.errors import need
from sparsemap.pieces.contracts import Array

BATCH = 16
RATE = 1e-3
"""Step of Adam."""
DECAY = 1e-2
"""Weight of the squared weights in the loss."""


@attrs.frozen(eq=False)
class LearnedNetwork:
    """Layer i maps x to `x @ weights[i] + biases[i]`."""

    weights: list[Array]
    biases: list[Array]

    def _forward(self, x: Array) -> list[Array]:
        """The inputs of every layer, and the output last."""
        values = [x]
        for weight, bias in zip(self.weights, self.biases, strict=True):
            below = values[-1] if len(values) == 1 else np.maximum(values[-1], 0.0)
            values.append(below @ weight + bias)
        return values

    def predict(self, x: Array) -> Array:
        """(n, inputs) -> (n,)."""
        return self._forward(x)[-1][:, 0]

    def gradient(self, x: Array) -> Array:
        """(n, inputs), by how much the output of each row rises with each of its inputs."""
        values = self._forward(x)
        back = np.ones((len(x), 1))
        for i in reversed(range(len(self.weights))):
            back = back @ self.weights[i].T
            if i:
                back *= values[i] > 0.0
        return back


def trained(
    x: Array, y: Array, hidden: Sequence[int], epochs: int, seed: int, told: Callable[[str], None]
) -> LearnedNetwork:
    """A network that was trained on x (n, inputs) and y (n,); half the squared error of every epoch is told."""
    need("sklearn", "training a surrogate", "surrogate")
    from sklearn.neural_network import MLPRegressor
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    model = MLPRegressor(
        hidden_layer_sizes=tuple(hidden),
        batch_size=min(BATCH, len(x)),
        learning_rate_init=RATE,
        alpha=DECAY,
        random_state=seed,
    )
    for epoch in range(1, epochs + 1):
        with threadpool_limits(1):  # products of so few rows take longer with several; the same bits on any machine
            model.partial_fit(x, y)
        told(f"epoch {epoch} of {epochs}, loss {model.loss_:.4f}")
    return LearnedNetwork(model.coefs_, model.intercepts_)
