"""Two prunings of a small network of PyTorch, while it is trained on handwritten digits: accuracy over sparsity.

    python benchmarks/pruning_torch.py --seeds 5 --out docs/results

The data set ships with scikit-learn: 1,797 images of 8 x 8 pixels; a quarter of each class is for testing. The network is
trained to convergence, then pruned by `crisp` (N:M inside of blocks, in five steps) and by `one-shot` (blocks of 8 x 8
channels) to several sparsities, with the same optimizer, momentum and schedule all the way. Needs the extras `torch` and
`prune`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import asked, publish
from sparsemap_plugins.pruning.adapter import prune
from sparsemap_plugins.pruning.digits import data

from sparsemap.files import percent

LOSS = torch.nn.CrossEntropyLoss()
BATCH, EPOCHS, ITERATIONS, AFTER = 64, 30, 5, 4
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    *((f"crisp 2:4, {s}", {"method": "crisp", "pattern": "2:4", "sparsity": s}) for s in (0.8, 0.9)),
    *((f"crisp 1:4, {s}", {"method": "crisp", "pattern": "1:4", "sparsity": s}) for s in (0.9, 0.95)),
    *((f"one-shot 8 x 8, {s}", {"method": "one-shot", "sparsity": s}) for s in (0.5, 0.75, 0.9)),
)
"""Options by case."""


def network() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


class Batches:
    """The images in another order each time, drawn by the seed."""

    def __init__(self, images: Any, seed: int) -> None:
        self.inputs = torch.from_numpy(np.ascontiguousarray(images.images.transpose(0, 3, 1, 2)))
        self.labels = torch.from_numpy(images.labels)
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for places in torch.randperm(len(self.labels), generator=self.generator).split(BATCH):
            yield self.inputs[places], self.labels[places]

    def accuracy(self, model: torch.nn.Module) -> float:
        model.eval()
        with torch.no_grad():
            return float((model(self.inputs).argmax(dim=1) == self.labels).float().mean())


def fit(model: torch.nn.Module, batches: Batches, epochs: int) -> None:
    """SGD with momentum; rates fall along a cosine."""
    optimizer, schedule = of(model, epochs)
    model.train()
    for _ in range(epochs):
        for inputs, labels in batches:
            optimizer.zero_grad()
            LOSS(model(inputs), labels).backward()
            optimizer.step()
        schedule.step()


def of(model: torch.nn.Module, epochs: int) -> tuple[Any, Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=4e-5)
    return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)


def runs(seed: int) -> Iterator[dict[str, Any]]:
    """The rows of a seed: the dense network, and each pruned case."""
    torch.manual_seed(seed)
    training, testing = data(seed)
    train, test = Batches(training, seed), Batches(testing, seed)
    dense = network()
    fit(dense, train, EPOCHS)
    again = copy.deepcopy(dense)
    fit(again, train, 1 + ITERATIONS * AFTER)
    yield {"case": "dense", "seed": seed, "achieved": 0.0, "accuracy": test.accuracy(again)}
    for name, about in CASES:
        model = copy.deepcopy(dense)
        steps, epochs = (ITERATIONS, AFTER) if about["method"] == "crisp" else (1, ITERATIONS * AFTER)
        optimizer, schedule = of(model, 1 + steps * epochs)
        each: dict[str, Any] = {"optimizer": optimizer, "schedule": schedule, "iterations": steps, "epochs": epochs}
        found = prune(model, train, LOSS, evaluate=test.accuracy, **each, **about)
        yield {"case": name, "seed": seed, "achieved": found.sparsity, "accuracy": found.history[-1]["value"]}


def main() -> None:
    given = asked(__doc__, seeds=5, out={"type": Path})
    torch.set_num_threads(1)
    rows = [row for seed in range(given.seeds) for row in runs(seed)]
    table = [["pruned by, to", "achieved", "accuracy", "lowest", "highest"]]
    for case in ("dense", *(name for name, _ in CASES)):
        mine = [row for row in rows if row["case"] == case]
        values = [row["accuracy"] for row in mine]
        achieved = percent(float(np.mean([row["achieved"] for row in mine])), 1)
        table.append([case, achieved, *(percent(float(f(values)), 1) for f in (np.mean, min, max))])
    about = {"epochs": EPOCHS, "more": ITERATIONS * AFTER, "seeds": given.seeds}
    publish("pruning-torch", given.out and given.out / "pruning-torch.md", rows, table=table, **about)


if __name__ == "__main__":
    main()
