"""One pruning run from a dense network to a pruned and trained one, for the data set `digits`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from . import digits
from .block_masks import balanced, gradual_rounds, gradual_step, one_shot
from .blocks import BlockShape, Grid
from .hybrid import DENSE, HybridPruner, Masks, Pattern, sparsity_of
from .layers import Network, accuracy
from .profile import Split, flops_ratio, utilisation
from .scores import CRITERIA, WORD_CRITERIA, Evidence, block_scores, word_scores
from .trainable import Penalty
from .training import Images, evidence, fit

HYBRID = ("crisp", "block-only", "nm-only")
"""Methods over all layers together, step by step: N:M and blocks, blocks alone, N:M alone."""
BY_LAYER = ("one-shot", "gradual", "trained")
"""Methods that prune the same share of blocks in every layer."""
METHODS = (*HYBRID, *BY_LAYER)
SAMPLES = 256
"""Images of each class that gradients are taken of (CRISP, IV-A), if there are as many."""


@attrs.frozen(kw_only=True)
class Job:
    """What to prune, and how."""

    method: str = attrs.field(default="crisp", validator=attrs.validators.in_(METHODS))
    pattern: Pattern = Pattern(2, 4)
    block: BlockShape
    sparsity: float = 0.0
    """Share of zeros: over all prunable layers (hybrid methods), or of the blocks of every layer. Not for `nm-only`."""
    criterion: str
    balance: str = "none"
    splits: Mapping[str, Split] = attrs.field(factory=dict)
    """How a compiler splits the layers, for masks that are even in every part."""
    classes: tuple[int, ...] = tuple(range(digits.CLASSES))
    network: str = "conv3-fc2"
    """A name in `digits.RECIPES`."""
    prune_classifier: bool = False
    iterations: int = 5
    epochs: int = 2
    """Of training in every iteration (hybrid); one-shot retrains as long as the dense network was trained."""
    pull: float = 2e-4
    normalise: str = "none"
    budget: str = "weights"
    gradient: str = "mean"
    seed: int = 0

    def __attrs_post_init__(self) -> None:
        if self.method in HYBRID and self.criterion not in WORD_CRITERIA:
            raise SparseMapError(
                f"criterion {self.criterion!r} scores blocks, and method {self.method!r} needs scores of words:"
                f" {', '.join(WORD_CRITERIA)}"
            )
        if self.criterion not in CRITERIA:
            raise SparseMapError(f"no criterion {self.criterion!r}; known: {', '.join(CRITERIA)}")

    @property
    def prunable(self) -> list[str]:
        recipe = digits.RECIPES[self.network]
        return recipe.prunable + ([recipe.classifier] if self.prune_classifier else [])

    @property
    def nm(self) -> Pattern:
        """The pattern inside of blocks."""
        return self.pattern if self.method in ("crisp", "nm-only") else DENSE

    def generator(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, purpose))


@attrs.frozen
class Outcome:
    """A pruned network."""

    job: Job
    network: Network
    grids: Mapping[str, Grid]
    masks: Mapping[str, Masks]
    before: float
    """Accuracy on the test images of the user's classes with these masks before training; NaN if masks came in steps."""

    @property
    def densities(self) -> dict[str, float]:
        return {name: float(mask.words.mean()) for name, mask in self.masks.items()}

    @property
    def cut(self) -> bool:
        """Whether pruned blocks leave no path through the network: every output then is the same for all images."""
        live: Any = None  # channels of the layer before that depend on the image
        for layer in self.network.layers:
            weights = layer.effective != 0
            if live is not None:
                weights = weights & np.resize(live, weights.shape[3])  # fully connected: channels of every pixel
            live = weights.any(axis=(1, 2, 3))
        return not live.any()

    def row(self) -> dict[str, Any]:
        """The numbers of this run, a line of `runs.csv`; accuracies on test images of the user's classes."""
        job = self.job
        test = digits.data(job.seed)[1].of(job.classes)
        bound, bound_among = dense_accuracy(job)
        return {
            "method": job.method,
            "pattern": str(job.nm),
            "block": "" if job.method == "nm-only" else str(job.block),
            "criterion": job.criterion,
            "balance": job.balance,
            "classes": len(job.classes),
            "sparsity": 1 - job.nm.density if job.method == "nm-only" else job.sparsity,
            "seed": job.seed,
            "achieved": sparsity_of(self.masks),
            "accuracy_before": self.before,
            "accuracy": accuracy(self.network, test.images, test.labels),
            "accuracy_among_classes": accuracy(self.network, test.images, test.labels, job.classes),
            "dense_accuracy": bound,
            "dense_accuracy_among_classes": bound_among,
            "cut": int(self.cut),
            "flops_ratio": flops_ratio(self.densities, self.network.macs),
            "utilisation": utilisation(mask.words for mask in self.masks.values()),
        }


def run(job: Job, progress: Callable[[], None] = lambda: None) -> Outcome:
    """Trains the dense network (once per seed), prunes it, and trains what is left; `progress` after each stage."""
    network = digits.dense(job.network, job.seed).copy()
    progress()
    grids = {name: job.block.grid(network[name].shape) for name in job.prunable}
    steps = {"one-shot": _one_shot, "gradual": _gradual, "trained": _trained}.get(job.method, _hybrid)
    train = digits.data(job.seed)[0].of(job.classes)
    masks, before = steps(job, network, grids, train, progress)
    return Outcome(job, network, grids, masks, before)


def stages(job: Job) -> int:
    """How often `run` reports progress."""
    return 1 + (job.iterations if job.method in HYBRID else 1)


@lru_cache(maxsize=16)
def _dense_bound(network: str, classes: tuple[int, ...], epochs: int, seed: int) -> tuple[float, float]:
    recipe, (train, test) = digits.RECIPES[network], digits.data(seed)
    copy = digits.dense(network, seed).copy()
    rng = np.random.default_rng((seed, 4))
    fit(copy, train.of(classes), epochs, recipe.fine_rate, recipe.batch, recipe.optimiser, rng)
    test = test.of(classes)
    return accuracy(copy, test.images, test.labels), accuracy(copy, test.images, test.labels, classes)


def dense_accuracy(job: Job) -> tuple[float, float]:
    """The dense network trained on the user's classes for as many epochs; over all classes, and among the user's."""
    epochs = 1 + job.iterations * job.epochs if job.method in HYBRID else digits.RECIPES[job.network].epochs
    return _dense_bound(job.network, job.classes, epochs, job.seed)


def apply(network: Network, grids: Mapping[str, Grid], masks: Mapping[str, Masks]) -> None:
    """The network computes with these masks from now on."""
    for name, mask in masks.items():
        network[name].words = grids[name].tensor(mask.words)
        network[name].live = grids[name].tensor(mask.live)


def block_masks(grids: Mapping[str, Grid], kept: Mapping[str, Array]) -> dict[str, Masks]:
    """Masks without a pattern inside of blocks."""
    words = {name: grids[name].expand(mask) for name, mask in kept.items()}
    return {name: Masks(words[name], words[name], kept[name]) for name in kept}


# ------------------------------------------------------------------------------------------------------------- methods


def _gathered(job: Job, network: Network, train: Images) -> dict[str, Evidence]:
    if job.criterion not in ("saliency", "fisher"):
        return {name: Evidence(network[name].weights) for name in job.prunable}
    samples = train.of(job.classes, SAMPLES)
    squared = job.criterion == "fisher"
    return evidence(network, samples, job.prunable, squared=squared, absolute=job.gradient == "mean-abs")


def _hybrid(
    job: Job, network: Network, grids: dict[str, Grid], train: Images, progress: Callable[[], None]
) -> tuple[dict[str, Masks], float]:
    """CRISP, Algorithm 1: an epoch without masks; then masks for a sparsity that grows, each time with training."""
    recipe, rng, chance = digits.RECIPES[job.network], job.generator(3), job.generator(5)
    pruner = HybridPruner(grids, job.nm, job.normalise, job.budget)
    target = pruner.lowest if job.method == "nm-only" else job.sparsity
    pruner.check(target)
    fit(network, train, 1, recipe.fine_rate, recipe.batch, recipe.optimiser, rng)
    masks: dict[str, Masks] = {}
    for step in range(1, job.iterations + 1):
        found = _gathered(job, network, train)
        scores = {name: grids[name].matrix(word_scores(job.criterion, found[name], chance)) for name in grids}
        masks = pruner.step(scores, pruner.lowest + step * (target - pruner.lowest) / job.iterations)
        apply(network, grids, masks)
        fit(network, train, job.epochs, recipe.fine_rate, recipe.batch, recipe.optimiser, rng, job.pull)
        progress()
    return masks, float("nan")


def _one_shot(
    job: Job, network: Network, grids: dict[str, Grid], train: Images, progress: Callable[[], None]
) -> tuple[dict[str, Masks], float]:
    chance, found, kept = job.generator(5), _gathered(job, network, train), {}
    for name, grid in grids.items():
        scores = block_scores(job.criterion, grid, found[name], chance)
        kept[name] = balanced(scores, job.sparsity, job.balance, job.splits.get(name, Split()).in_blocks)
    return _retrained(job, network, grids, kept, train, progress)


def _trained(
    job: Job, network: Network, grids: dict[str, Grid], train: Images, progress: Callable[[], None]
) -> tuple[dict[str, Masks], float]:
    """A real number per block is trained with the weights, under a penalty; then the smallest are cut, as one-shot does."""
    recipe = digits.RECIPES[job.network]
    penalties = {name: Penalty((1 - job.sparsity) * grid.blocks) for name, grid in grids.items()}

    def gamma(name: str) -> Array:
        grid = grids[name]
        factors = network[name].factors
        assert factors is not None
        return grid.matrix(factors)[:: grid.rows, :: grid.columns].astype(np.float64)

    def slope(name: str, by_word: Array) -> Array:
        found = grids[name].sums(grids[name].matrix(by_word)) + penalties[name].gradient(gamma(name))
        return grids[name].tensor(grids[name].expand(found)).astype(np.float32)

    for name in grids:
        network[name].factors = np.ones(network[name].shape, np.float32)
    fit(
        network, train, recipe.epochs, recipe.fine_rate, recipe.batch, recipe.optimiser, job.generator(6), penalty=slope
    )
    kept = {name: one_shot(gamma(name), job.sparsity) for name in grids}
    for name in grids:  # what is kept goes on as it was
        network[name].weights, network[name].factors = network[name].weights * network[name].factors, None
    return _retrained(job, network, grids, kept, train, progress)


def _retrained(
    job: Job,
    network: Network,
    grids: dict[str, Grid],
    kept: dict[str, Array],
    train: Images,
    progress: Callable[[], None],
) -> tuple[dict[str, Masks], float]:
    """The accuracy with these masks, and training with them."""
    recipe, masks = digits.RECIPES[job.network], block_masks(grids, kept)
    apply(network, grids, masks)
    test = digits.data(job.seed)[1].of(job.classes)
    before = accuracy(network, test.images, test.labels)
    fit(network, train, recipe.epochs, recipe.fine_rate, recipe.batch, recipe.optimiser, job.generator(3))
    progress()
    return masks, before


def _gradual(
    job: Job, network: Network, grids: dict[str, Grid], train: Images, progress: Callable[[], None]
) -> tuple[dict[str, Masks], float]:
    """Every `epochs` epochs a few more blocks of every layer, until each has its share of zeros."""
    recipe, rng, chance = digits.RECIPES[job.network], job.generator(3), job.generator(5)
    kept = {name: np.ones(grid.counts, bool) for name, grid in grids.items()}
    for _ in range(max(gradual_rounds(grid.blocks, job.sparsity) for grid in grids.values())):
        found = _gathered(job, network, train)
        for name, grid in grids.items():
            kept[name] = gradual_step(kept[name], block_scores(job.criterion, grid, found[name], chance), job.sparsity)
        apply(network, grids, block_masks(grids, kept))
        fit(network, train, job.epochs, recipe.fine_rate, recipe.batch, recipe.optimiser, rng)
    progress()
    return block_masks(grids, kept), float("nan")
