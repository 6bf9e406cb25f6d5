"""A pruning run from a dense network to a pruned and trained network, for the data set `digits`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

from . import digits
from .block_masks import balanced, gradual_rounds, gradual_step, one_shot
from .blocks import BlockGrid, BlockShape
from .hybrid import DENSE, HybridPruner, Masks, NmPattern, sparsity_of
from .layers import TrainedNetwork
from .profile import Split, flops_ratio, utilisation
from .scores import CRITERIA, NEEDS, WORD_CRITERIA, Evidence, block_scores, word_scores
from .training import Images, accuracy, evidence

HYBRID = ("crisp", "block-only", "nm-only")
"""Methods over all layers together, step by step: N:M and blocks, blocks alone, N:M alone."""
BY_LAYER = ("one-shot", "gradual", "trained")
"""Methods with the same share of pruned blocks in every layer."""
METHODS = (*HYBRID, *BY_LAYER)
SAMPLES = 256
"""Images of each class for gradients (CRISP, IV-A), at most."""


@attrs.frozen(kw_only=True)
class Job:
    """Target and method of a run."""

    method: str = attrs.field(default="crisp", validator=attrs.validators.in_(METHODS))
    pattern: NmPattern = NmPattern(2, 4)
    block: BlockShape
    sparsity: float = 0.0
    """Share of zeros: over all prunable layers (hybrid methods), or of the blocks of every layer. Unused by `nm-only`."""
    criterion: str = attrs.field(validator=attrs.validators.in_(CRITERIA))
    balance: str = "none"
    splits: Mapping[str, Split] = attrs.field(factory=dict)
    """Splits of a compiler by layer, for even masks in every part."""
    classes: tuple[int, ...] = tuple(range(digits.CLASSES))
    network: str = "conv3-fc2"
    """A name in `digits.RECIPES`."""
    prune_classifier: bool = False
    iterations: int = 5
    epochs: int = 2
    """Epochs in every iteration (hybrid); one-shot retrains as long as the dense network was trained."""
    pull: float = 2e-4
    seed: int = 0

    def __attrs_post_init__(self) -> None:
        if self.method in HYBRID and self.criterion not in WORD_CRITERIA:
            text = f"scores blocks, and method {self.method!r} needs scores of words: {', '.join(WORD_CRITERIA)}"
            raise SparseMapError(f"criterion {self.criterion!r} {text}")

    @property
    def recipe(self) -> digits.Recipe:
        return digits.RECIPES[self.network]

    @property
    def prunable(self) -> list[str]:
        """All layers of the network but the first, and but the classifier unless wanted."""
        names = [shape.name for shape in self.recipe.shapes]
        return names[1:] if self.prune_classifier else names[1:-1]

    @property
    def nm(self) -> NmPattern:
        """The pattern inside blocks."""
        return self.pattern if self.method in ("crisp", "nm-only") else DENSE

    @property
    def target(self) -> float:
        """Target share of zeros."""
        return 1 - self.nm.density if self.method == "nm-only" else self.sparsity

    @property
    def stages(self) -> int:
        """Number of progress reports of `run`."""
        return 1 + (self.iterations if self.method in HYBRID else 1)

    def generator(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, purpose))


@attrs.define
class MaskSteps:
    """The masks of several layers, step by step; `masks` are the last ones."""

    job: Job
    grids: Mapping[str, BlockGrid]
    masks: Mapping[str, Masks]
    pruner: HybridPruner | None
    """Of hybrid methods, for all layers together."""

    @classmethod
    def of(cls, job: Job, grids: Mapping[str, BlockGrid]) -> MaskSteps:
        """State before the first step, without pruning."""
        masks = {name: Masks.of_blocks(grid, np.ones(grid.counts, bool)) for name, grid in grids.items()}
        hybrid = HybridPruner(grids, job.nm) if job.method in HYBRID else None
        return cls(job, grids, masks, hybrid)

    def targets(self, iterations: int) -> list[float]:
        """The sparsity of each step; `one-shot` has a single step, `gradual` a number by its blocks."""
        job = self.job
        if self.pruner:
            return self.pruner.targets(job.target, iterations)
        rounds = max(gradual_rounds(grid.blocks, job.sparsity) for grid in self.grids.values())
        return [job.sparsity] * (rounds if job.method == "gradual" else 1)

    def step(self, sparsity: float, found: Mapping[str, Evidence], chance: np.random.Generator) -> Mapping[str, Masks]:
        """Masks for this sparsity, over all layers (hybrid methods) or in every layer, balanced if wanted."""
        job, masks = self.job, {}
        if self.pruner:
            scores = {name: word_scores(job.criterion, found[name], chance) for name in self.grids}
            words = {name: grid.matrix(scores[name]) for name, grid in self.grids.items()}
            masks = dict(self.pruner.step(words, sparsity))
        for name, grid in self.grids.items() if not self.pruner else ():
            of_blocks = block_scores(job.criterion, grid, found[name], chance)
            if job.method == "gradual":
                kept = gradual_step(self.masks[name].blocks, of_blocks, sparsity)
            else:
                part = job.splits.get(name, Split()).in_blocks
                even = job.balance == "rows"
                kept = balanced(of_blocks, sparsity, part) if even else one_shot(of_blocks, sparsity)
            masks[name] = Masks.of_blocks(grid, kept)
        self.masks = masks
        return masks


@lru_cache(maxsize=16)
def _dense_accuracy(network: str, classes: tuple[int, ...], epochs: int, seed: int) -> tuple[float, float]:
    """Accuracies of the dense network trained on the user's classes: over all classes, and among the user's classes."""
    train, test = digits.data(seed)
    copy = digits.dense(network, seed).copy()
    digits.RECIPES[network].tune(copy, train.of(classes), epochs, np.random.default_rng((seed, 4)))
    test = test.of(classes)
    return accuracy(copy, test), accuracy(copy, test, classes)


def run(job: Job, progress: Callable[[], None] = lambda: None) -> PruningRun:
    """Trains the dense network (once per seed), prunes and retrains it; `progress` after each stage."""
    train, test = (images.of(job.classes) for images in digits.data(job.seed))
    found = PruningRun(job, digits.dense(job.network, job.seed).copy(), train, test)
    progress()
    found.trained() if job.method == "trained" else found.stepwise(progress)
    if job.method not in HYBRID:
        progress()
    return found


ALPHA, BETA, IOTA = 100.0, 1e-3, 1e-3
"""Of the penalty on trained masks: sharpness of max and min, and weights of the other two terms."""


def penalty_slope(gamma: Array, target: float) -> Array:
    """d lambda / d Gamma of -(max - min) + BETA * (sum(Gamma) - target)^2 + IOTA * sum |Gamma| for `target` kept blocks
    (*Weight Block Sparsity*, III-D, Eq. 13, with L2(Gamma - T) as the square of a sum, since T is a number). max and
    min are smooth: LSE(x) = log(sum exp(ALPHA x)) / ALPHA."""

    def softmax(x: Array) -> Array:
        weights = np.exp(ALPHA * (x - np.max(x)))
        return weights / weights.sum()

    return softmax(-gamma) - softmax(gamma) + 2 * BETA * (gamma.sum() - target) + IOTA * np.sign(gamma)


@attrs.define
class PruningRun:
    """A network, pruned and trained in place."""

    job: Job
    network: TrainedNetwork
    train: Images
    test: Images
    """Test images; `train` and `test` hold only the user's classes."""
    steps: MaskSteps = attrs.field(init=False)
    before: float = math.nan
    """Accuracy on the test images with these masks before training; NaN for masks in steps."""

    def __attrs_post_init__(self) -> None:
        grids = {name: self.job.block.grid(self.network[name].shape) for name in self.job.prunable}
        self.steps = MaskSteps.of(self.job, grids)

    @property
    def masks(self) -> Mapping[str, Masks]:
        return self.steps.masks

    # ------------------------------------------------------------------------------------------------------- methods

    def stepwise(self, progress: Callable[[], None]) -> None:
        """Set masks in steps, each followed by training, or at once; CRISP (Algorithm 1) starts with an epoch without masks,
        and reports every step."""
        job, rng, chance = self.job, self.job.generator(3), self.job.generator(5)
        hybrid = job.method in HYBRID
        if hybrid:
            self._fit(1, rng)
        for target in self.steps.targets(job.iterations):
            masks = self.steps.step(target, self._evidence(), chance)
            if job.method == "one-shot":
                self._retrain(masks)
                return
            self._apply(masks)
            self._fit(job.epochs, rng, pull=job.pull * hybrid)
            if hybrid:
                progress()

    def trained(self) -> None:
        """Trains a real number per block, Gamma, with the weights, under a penalty; then cuts the smallest at once.

        The authors report no success; `docs/results/wbs-table-1.md` has the accuracies here."""
        job, network, grids = self.job, self.network, self.steps.grids

        def gamma(name: str) -> Array:
            factors = network[name].factors
            assert factors is not None
            return grids[name].matrix(factors)[:: grids[name].rows, :: grids[name].columns].astype(np.float64)

        def slope(name: str, by_word: Array) -> Array:
            grid = grids[name]
            found = grid.sums(grid.matrix(by_word)) + penalty_slope(gamma(name), (1 - job.sparsity) * grid.blocks)
            return grid.tensor(grid.expand(found)).astype(np.float32)

        for name in grids:
            network[name].factors = np.ones(network[name].shape, np.float32)
        self._fit(job.recipe.epochs, job.generator(6), penalty=slope)
        masks = {name: Masks.of_blocks(grid, one_shot(gamma(name), job.sparsity)) for name, grid in grids.items()}
        for name in grids:  # what is kept goes on as it was
            network[name].weights, network[name].factors = network[name].weights * network[name].factors, None
        self.steps.masks = masks
        self._retrain(masks)

    def _fit(self, epochs: int, rng: np.random.Generator, **more: Any) -> None:
        self.job.recipe.tune(self.network, self.train, epochs, rng, **more)

    def _evidence(self) -> dict[str, Evidence]:
        job = self.job
        if job.criterion not in NEEDS:
            return {name: Evidence(self.network[name].weights) for name in job.prunable}
        everyone = job.criterion == "saliency-all"
        images, classes = (digits.data(job.seed)[0], range(digits.CLASSES)) if everyone else (self.train, job.classes)
        return evidence(self.network, images.of(classes, SAMPLES), job.prunable, squared=job.criterion == "fisher")

    def _apply(self, masks: Mapping[str, Masks]) -> None:
        """Applies these masks to the network."""
        for name, mask in masks.items():
            self.network[name].words = mask.grid.tensor(mask.words)
            self.network[name].live = mask.grid.tensor(mask.live)

    def _retrain(self, masks: Mapping[str, Masks]) -> None:
        """Training with these masks, after a test."""
        self._apply(masks)
        self.before = accuracy(self.network, self.test)
        self._fit(self.job.recipe.epochs, self.job.generator(3))

    # ------------------------------------------------------------------------------------------------------- outcome

    @property
    def cut(self) -> bool:
        """Whether pruned blocks leave no path through the network, with the same output for all images."""
        live: Any = None  # channels of the layer before that depend on the image
        for layer in self.network.layers:
            weights = layer.effective != 0
            if live is not None:
                weights = weights & np.resize(live, weights.shape[3])  # fully connected: channels of every pixel
            live = weights.any(axis=(1, 2, 3))
        return not live.any()

    def row(self) -> dict[str, Any]:
        """The numbers of the run, a line of `runs.csv`; accuracies on test images of the user's classes."""
        job = self.job
        epochs = 1 + job.iterations * job.epochs if job.method in HYBRID else job.recipe.epochs
        dense, dense_among = _dense_accuracy(job.network, job.classes, epochs, job.seed)
        return {
            "method": job.method, "pattern": str(job.nm), "block": "" if job.method == "nm-only" else str(job.block),
            "criterion": job.criterion, "balance": job.balance, "classes": len(job.classes), "sparsity": job.target,
            "seed": job.seed, "achieved": sparsity_of(self.masks), "accuracy_before": self.before,
            "accuracy": accuracy(self.network, self.test),
            "accuracy_among_classes": accuracy(self.network, self.test, job.classes),
            "dense_accuracy": dense, "dense_accuracy_among_classes": dense_among, "cut": int(self.cut),
            "flops_ratio": flops_ratio(self.masks, self.network.macs),
            "utilisation": utilisation(mask.words for mask in self.masks.values()),
        }  # fmt: skip
