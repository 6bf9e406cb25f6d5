"""A surrogate, stored in a file of NumPy arrays: a fully connected network with ReLU between its layers and one output,
and a description of the training problems. scikit-learn trains the network but does not give the gradient with respect
to inputs, needed by Mind Mappings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.arrays import read_arrays
from sparsemap.errors import SpecError
from sparsemap.extras import need
from sparsemap.file_formats import FileFormat
from sparsemap.files import shown
from sparsemap.inner.arrays import dot, log2s, product
from sparsemap.pieces.contracts import Array
from sparsemap.writing import replacing

from ..baselines.gamma_mapping import Operators
from .features import FeaturePoints

BATCH = 16
RATE = 1e-3
"""Step size of Adam."""
DECAY = 1e-2
"""Weight of the squared weights in the loss."""


@attrs.frozen(eq=False)
class LearnedNetwork:
    """Layer i maps x to `x @ weights[i] + biases[i]`."""

    weights: list[Array]
    biases: list[Array]

    def _forward(self, x: Array) -> list[Array]:
        """Inputs of every layer, and the output last."""
        values = [x]
        for weight, bias in zip(self.weights, self.biases, strict=True):
            below = values[-1] if len(values) == 1 else np.maximum(values[-1], 0.0)
            values.append(product(below, weight) + bias)
        return values

    def predict(self, x: Array) -> Array:
        """Outputs of the network: (n, inputs) -> (n,)."""
        return self._forward(x)[-1][:, 0]

    def gradient(self, x: Array) -> Array:
        """(n, inputs) gradient of each row's output with respect to the row's inputs."""
        values = self._forward(x)
        back = np.ones((len(x), 1))
        for i in reversed(range(len(self.weights))):
            back = product(back, self.weights[i].T)
            if i:
                back *= values[i] > 0.0
        return back


def trained(
    x: Array, y: Array, hidden: Sequence[int], epochs: int, seed: int, told: Callable[[str], None]
) -> LearnedNetwork:
    """A network trained on x (n, inputs) and y (n,); reports half the squared error of every epoch."""
    need("sklearn", "training a surrogate", "surrogate")
    from sklearn.neural_network import MLPRegressor
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    steps = {"batch_size": min(BATCH, len(x)), "learning_rate_init": RATE, "alpha": DECAY, "random_state": seed}
    model = MLPRegressor(hidden_layer_sizes=tuple(hidden), **steps)
    for epoch in range(1, epochs + 1):
        with threadpool_limits(1):  # products of so few rows take longer with several; the same bits on any machine
            model.partial_fit(x, y)
        told(f"epoch {epoch} of {epochs}, loss {model.loss_:.4f}")
    return LearnedNetwork(model.coefs_, model.intercepts_)


SURROGATE = FileFormat("surrogate", "`.npz` of `sparsemap extra train-surrogate`, in its array `about`")
TEST_SAMPLES = 2000
HIDDEN = (128, 128)
EPOCHS = 20
HELD_OUT = 0.1
"""Share of the samples of every workload held out from training."""
MISSES = 10
"""Consecutive draws without a new legal mapping after which a space counts as exhausted."""


@attrs.frozen(eq=False)
class Surrogate:
    """Predicts log2 of the score. Inputs and output are standardised; `scale` is 0 for a constant input."""

    about: dict[str, Any]
    """Hardware, loops, genes and objective of the training; see `kind_of`."""
    network: LearnedNetwork
    mean: Array
    scale: Array
    output: Array
    """Mean and deviation of log2 of the score."""

    def predict(self, points: Array, space: FeaturePoints) -> Array:
        """(n,) log2 of the scores of points (n, F)."""
        x = (space.inputs(points) - self.mean) * self.scale
        return self.output[0] + self.output[1] * self.network.predict(x)

    def gradient(self, points: Array, space: FeaturePoints) -> Array:
        """(n, F) gradient of `predict`."""
        x = (space.inputs(points) - self.mean) * self.scale
        return space.pulled(self.output[1] * self.network.gradient(x) * self.scale)

    def save(self, path: Path) -> None:
        layers: dict[str, Any] = {f"weights{i}": array for i, array in enumerate(self.network.weights)}
        layers |= {f"biases{i}": array for i, array in enumerate(self.network.biases)}
        about = np.frombuffer(json.dumps(SURROGATE.stamped(self.about)).encode(), dtype=np.uint8)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, about=about, mean=self.mean, scale=self.scale, output=self.output, **layers)

    @classmethod
    def load(cls, path: Path) -> Surrogate:
        arrays = read_arrays(path, (".npz",))
        try:
            depth = sum(name.startswith("weights") for name in arrays)
            network = LearnedNetwork(*([arrays[f"{part}{i}"] for i in range(depth)] for part in ("weights", "biases")))
            about = SURROGATE.opened(json.loads(arrays["about"].tobytes()), shown(path))
            return cls(about, network, *(arrays[name] for name in ("mean", "scale", "output")))
        except (KeyError, ValueError) as error:
            raise SpecError.at(
                shown(path), "", f"is no surrogate of `sparsemap extra train-surrogate`: {error}"
            ) from None

    def check(self, problem: Problem, path: Path, other_hardware: bool) -> None:
        """Raise SpecError if the surrogate was trained for a different kind of problem."""
        wanted = kind_of(problem)
        ignored = {"hardware", "fanouts and capacities"} if other_hardware else set()
        for key, value in wanted.items():
            if self.about.get(key) != value and key not in ignored:
                text = f"was trained for {self.about.get(key)}, {problem.title} has {value}"
                if key in ("hardware", "fanouts and capacities"):
                    text += "; `other_hardware = true` in the searcher uses it all the same"
                raise SpecError.at(shown(path), key, text)


def kind_of(problem: Problem) -> dict[str, Any]:
    """Common properties of all problems of one surrogate, as JSON values."""
    names = problem.space.names
    found = {
        "dimensions": problem.dims,
        "tensors": {tensor.name: tensor.ranks for tensor in problem.tensors},
        "mapping levels": [level.name for level in problem.mapping_levels],
        "other genes": [names[gene] for gene in Operators(problem.space, np.random.default_rng(0)).rest],
        "objective": problem.objective.name or problem.objective.type_name,
        "hardware": problem.hardware.name,
        "fanouts and capacities": [[level.name, level.fanout, level.capacity_bits] for level in problem.levels],
    }
    return json.loads(json.dumps(found))


def legal_samples(problem: Problem, count: int, rng: np.random.Generator) -> tuple[FeaturePoints, Array, Array]:
    """Up to `count` distinct legal mappings as points (n, F), and log2 of their scores (n,); fewer if the space has no
    more. SpecError if none is found."""
    points = FeaturePoints(problem.space, rng)
    genomes, scores, misses = np.empty((0, len(problem.space)), dtype=np.int64), np.empty(0), 0
    while len(genomes) < count and misses < MISSES:
        drawn = points.legal(min(2 * (count - len(genomes)), 4096))
        found = problem.evaluator.score(problem.evaluator.evaluate(drawn))
        drawn, found = problem.space.canonical(drawn[np.isfinite(found)]), found[np.isfinite(found)]
        joined, worth = np.concatenate([genomes, drawn]), np.concatenate([scores, found])
        rows = np.sort(np.unique(joined, axis=0, return_index=True)[1])[:count]
        misses = 0 if len(rows) > len(genomes) else misses + 1
        genomes, scores = joined[rows], worth[rows]
    if not len(genomes):
        raise SpecError.at("", problem.title, "no legal mapping was found to train on")
    good = scores > 0.0
    return points, points.of(genomes[good]), log2s(scores[good])


def train(
    problems: Sequence[Problem], samples: int, seed: int, told: Callable[[str], None] = lambda text: None
) -> tuple[Surrogate, list[float]]:
    """A surrogate for problems of one kind from `samples` legal samples, evenly from each problem; and per problem the
    rank correlation of prediction and score over the held-out samples."""
    rng = np.random.default_rng(seed)
    about = kind_of(problems[0])
    for problem in problems[1:]:
        other = kind_of(problem)
        for key in about:
            if about[key] != other[key]:
                text = f"is {other[key]}, that of {problems[0].title} is {about[key]}; one surrogate needs the same"
                raise SpecError.at("", f"{problem.title}: {key}", text)
    drawn = []
    for problem in problems:
        told(f"sampling {problem.title}")
        drawn.append(legal_samples(problem, max(samples // len(problems), 2), rng))
    kept = [max(1, round(HELD_OUT * len(y))) for _, _, y in drawn]
    x = np.concatenate([points.inputs(found[k:]) for k, (points, found, _) in zip(kept, drawn, strict=True)])
    y = np.concatenate([y[k:] for k, (_, _, y) in zip(kept, drawn, strict=True)])
    mean, spread, output = x.mean(axis=0), x.std(axis=0), np.array([y.mean(), y.std() or 1.0])
    scale = np.where(spread > 1e-9, 1.0 / np.maximum(spread, 1e-9), 0.0)
    inputs, scores = (x - mean) * scale, (y - output[0]) / output[1]
    network = trained(inputs, scores, HIDDEN, EPOCHS, seed, told)
    about |= {"workloads": [problem.workload.name for problem in problems], "samples": len(y), "seed": seed}
    made = Surrogate(about, network, mean, scale, output)
    pairs = [(made.predict(found[:k], p), y[:k]) for k, (p, found, y) in zip(kept, drawn, strict=True)]
    return made, [rank_correlation(*pair) for pair in pairs]


def rank_correlation(a: Array, b: Array) -> float:
    """Spearman's rank correlation; equal values share their mean rank. 0 if either argument is constant."""

    def ranks(values: Array) -> Array:
        _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (counts.cumsum() - 0.5 * (counts - 1))[which]

    x, y = ranks(a) - ranks(a).mean(), ranks(b) - ranks(b).mean()
    return float(dot(x, y) / np.sqrt(dot(x, x) * dot(y, y))) if x.any() and y.any() else 0.0
