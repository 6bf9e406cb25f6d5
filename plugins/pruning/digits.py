"""The data set and the networks of the shipped experiment: 1,797 images of handwritten digits, 8 x 8, from scikit-learn."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from sparsemap.extras import need

from .layers import LayerShape, TrainedNetwork
from .training import Images, Optimiser, fit

CLASSES = 10
SIDE = 8


@attrs.frozen
class Recipe:
    """A network and its training."""

    shapes: tuple[LayerShape, ...]
    optimiser: Optimiser
    batch: int
    epochs: int
    rate: float
    fine_rate: float
    """Of training after pruning."""

    def tune(self, network: TrainedNetwork, data: Images, epochs: int, rng: np.random.Generator, **more: Any) -> None:
        """Trains in place at the rate of training after pruning; `more` is for `fit`."""
        fit(network, data, epochs, self.fine_rate, self.batch, self.optimiser, rng, **more)


RECIPES = {
    "conv3-fc2": Recipe(
        (
            LayerShape("conv1", 16, 3), LayerShape("conv2", 32, 3, pool=True), LayerShape("conv3", 64, 3, pool=True),
            LayerShape("fc1", 128, 0), LayerShape("fc2", CLASSES, 0),
        ),
        Optimiser("sgd", clip=1.0), batch=32, epochs=25, rate=0.05,
        fine_rate=0.1,  # as in the paper; of 0.02 to 0.1 the best on images held out from training, with clipping
    ),
    "conv3-fc1": Recipe(
        (
            LayerShape("conv1", 32, 3, pool=True), LayerShape("conv2", 64, 3), LayerShape("conv3", 64, 3),
            LayerShape("fc1", CLASSES, 0),
        ),
        Optimiser("adam", decay=0.0), batch=64, epochs=12, rate=2e-3, fine_rate=1e-3,
    ),
}  # fmt: skip
"""By name: the convolutions and fully connected layers."""


@lru_cache(maxsize=8)
def data(seed: int) -> tuple[Images, Images]:
    """Images for training and for testing, a quarter of each class, drawn by the seed; values from 0 to 1."""
    found = need("sklearn.datasets", "the data set `digits`", "prune").load_digits()
    images = (found.images / 16.0).astype(np.float32)[..., None]
    labels = found.target.astype(np.int64)
    rng = np.random.default_rng((seed, 1))
    of_class = [np.flatnonzero(labels == label) for label in range(CLASSES)]
    test = np.concatenate([rng.permutation(rows)[: round(0.25 * len(rows))] for rows in of_class])
    train = rng.permutation(np.setdiff1d(np.arange(len(labels)), test))
    return Images(images[train], labels[train]), Images(images[test], labels[test])


@lru_cache(maxsize=16)
def dense(name: str, seed: int) -> TrainedNetwork:
    """The network of a recipe, trained on all classes; not to be changed, but copied."""
    recipe = RECIPES[name]
    rng = np.random.default_rng((seed, 2))
    network = TrainedNetwork.create(recipe.shapes, SIDE, 1, rng)
    fit(network, data(seed)[0], recipe.epochs, recipe.rate, recipe.batch, recipe.optimiser, rng)
    return network
