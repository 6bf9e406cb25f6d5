"""Pruning of a PyTorch network during its training, in place.

`prune(model, loader, loss)` goes all the way; `PrunedModel` is for other training loops: `step` replaces the masks.
Masks are parametrizations of the weights (`torch.nn.utils.parametrize`): the forward pass sees masked weights, the
backward pass reaches all words of kept blocks, and the parameters stay known to the optimizer, with its momentum. The
NumPy core decides the masks, as for `digits`. PyTorch is imported by the functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError, listed, unknown
from sparsemap.extras import need
from sparsemap.pieces.contracts.base import Array

from .blocks import BlockGrid, BlockShape
from .export import PrunedLayers
from .hybrid import Masks, NmPattern, sparsity_of
from .runs import HYBRID, SAMPLES, Job, MaskSteps
from .scores import NEEDS, Evidence
from .weight_files import as_convolution

Loader = Iterable[tuple[Any, Any]]
"""Batches of inputs and labels, iterated several times."""
Loss = Callable[[Any, Any], Any]
"""Mean loss over the batch, from outputs and labels."""


def _torch() -> Any:
    return need("torch", "pruning a model of PyTorch", "torch")


@attrs.frozen
class Weights:
    """A matrix or a convolution of the model: a parameter of a module."""

    module: Any
    parameter: str

    @property
    def trained(self) -> Any:
        """The dense parameter of the optimizer."""
        return self.module.parametrizations[self.parameter].original if self.masked else self.seen

    @property
    def seen(self) -> Any:
        """The weights of the forward pass."""
        return getattr(self.module, self.parameter)

    @property
    def masked(self) -> bool:
        return bool(_torch().nn.utils.parametrize.is_parametrized(self.module, self.parameter))

    @property
    def array(self) -> Array:
        """Dense weights as (S, height, width, C)."""
        return _four(self.trained)

    def mask(self, mask: Masks) -> None:
        """Masks the weights, or replaces their masks."""
        shape, device = self.trained.shape, self.trained.device
        found = []
        for part in (mask.words, mask.live):
            tensor = mask.grid.tensor(part).transpose(0, 3, 1, 2).reshape(tuple(shape))
            found.append(_torch().from_numpy(np.ascontiguousarray(tensor)).to(device))
        if self.masked:
            self.module.parametrizations[self.parameter][0].set(*found)
        else:
            parametrization = _masking()(*found)
            _torch().nn.utils.parametrize.register_parametrization(self.module, self.parameter, parametrization)

    def finish(self) -> None:
        """Makes the masked weights plain parameters."""
        if self.masked:
            _torch().nn.utils.parametrize.remove_parametrizations(self.module, self.parameter)


@attrs.define
class PrunedModel:
    """A model with layers masked in place; `of` starts without masks, `step` sets them."""

    model: Any
    job: Job
    layers: dict[str, Weights]
    """All layers with weights, in the order of the model."""
    steps: MaskSteps
    positions: dict[str, int] = attrs.field(factory=dict)
    """Uses of the weights of each layer per sample, such as output pixels."""
    history: list[dict[str, Any]] = attrs.field(factory=list)
    """By step of `prune`: sparsity, and the value of `evaluate`."""

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        method: str = "crisp",
        sparsity: float = 0.9,
        pattern: str | tuple[int, int] = "2:4",
        block: int | tuple[int, int] | None = None,
        criterion: str | None = None,
        balance: str = "none",
        order: str = "hwc",
        exclude: Iterable[str] | None = None,
    ) -> PrunedModel:
        """`method`, `criterion` and `balance` are options of the verb `prune`; blocks have 16 x 16 words, or for
        `one-shot` and `gradual` 8 x 8 channels with their kernels, unless `block` has another size. Convolutions, fully
        connected layers and projections of attention (`NAME.in_proj`) are pruned, without `exclude`, by default the
        first and the last; grouped convolutions, and for N:M rows without whole groups of M, stay dense. SparseMapError
        for an unreachable sparsity, and for unknown layers."""
        hybrid = method in HYBRID
        rows, columns = (block, block) if isinstance(block, int) else block or ((16, 16) if hybrid else (8, 8))
        shape = BlockShape(rows, columns, "words" if hybrid else "channels", order)
        nm = NmPattern.parse(pattern) if isinstance(pattern, str) else NmPattern(*pattern)
        about: dict[str, Any] = {"balance": balance, "pattern": nm}
        criterion = criterion or ("saliency" if hybrid else "l2")
        job = Job(method=method, block=shape, sparsity=sparsity, criterion=criterion, **about)
        every = dict(_layers(model))
        excluded = set(exclude) if exclude is not None else {*list(every)[:1], *list(every)[-1:]}
        for name in excluded - every.keys():
            raise SparseMapError(f"exclude: {unknown('layer', name, every)}")
        chosen = [name for name, one in every.items() if name not in excluded and getattr(one.module, "groups", 1) == 1]
        grids = {name: shape.grid(every[name].array.shape) for name in chosen}
        grids = {name: grid for name, grid in grids.items() if not hybrid or grid.size[1] % job.nm.m == 0}
        if not grids:
            raise SparseMapError(f"nothing to prune among {listed(every)}")
        steps = MaskSteps.of(job, grids)
        if steps.pruner:
            steps.pruner.check(job.target)
        return cls(model, job, every, steps)

    @property
    def grids(self) -> Mapping[str, BlockGrid]:
        """Blocks of the pruned layers."""
        return self.steps.grids

    @property
    def masks(self) -> Mapping[str, Masks]:
        """Masks of the last step."""
        return self.steps.masks

    def targets(self, iterations: int) -> list[float]:
        """The sparsity of each step; `one-shot` has a single step, `gradual` a number by its blocks."""
        return self.steps.targets(iterations)

    def step(
        self,
        sparsity: float,
        loader: Loader = (),
        loss: Loss | None = None,
        classes: Sequence[int] | None = None,
        samples: int = SAMPLES,
    ) -> Mapping[str, Masks]:
        """Masks for this sparsity, from the current weights and, if the criterion needs gradients, from `samples`
        samples per class in evaluation mode. Optimizers go on with the same parameters."""
        job, chance = self.job, np.random.default_rng((len(self.history), 5))
        evidence = {name: Evidence(self.layers[name].array) for name in self.grids}
        if job.criterion in NEEDS:
            if loss is None:
                raise SparseMapError(f"criterion {job.criterion!r} needs gradients: give a loader and a loss")
            evidence = self._evidence(loader, loss, None if job.criterion == "saliency-all" else classes, samples)
        masks = self.steps.step(sparsity, evidence, chance)
        for name, mask in masks.items():
            self.layers[name].mask(mask)
        return masks

    @property
    def sparsity(self) -> float:
        """Share of zeros over the pruned layers."""
        return sparsity_of(self.masks)

    def finish(self) -> Any:
        """The model with plain, masked weights, without parametrizations."""
        for name in self.masks:
            self.layers[name].finish()
        return self.model

    def write(self, folder: str | Path) -> None:
        """Write the files of `sparsemap extra prune`: masked weights, masks, a workload per layer, summary.csv."""
        weights = {name: one.array for name, one in self.layers.items()}
        about: Any = {"positions": {name: self.positions.get(name, 1) for name in self.layers}, "pattern": self.job.nm}
        PrunedLayers(weights=weights, masks=self.masks, source=type(self.model).__name__, **about).write(Path(folder))

    def _evidence(self, loader: Loader, loss: Loss, classes: Sequence[int] | None, samples: int) -> dict[str, Evidence]:
        """Weights, dL/dW by the masked weights as mean over samples (S, h, w, C), and for `fisher` the mean of its
        square.

        The gradient is taken at the masked weights of the forward pass."""
        torch, model, squared = _torch(), self.model, self.job.criterion == "fisher"
        was_training = model.training
        model.eval()
        seen: Counter[int] = Counter()
        sums: dict[str, Any] = dict.fromkeys(self.grids, 0.0)
        squares, count = dict(sums), 0
        for inputs, labels in _of_classes(loader, classes, _device(model)):
            chosen = []
            for place, label in enumerate(labels.tolist()):
                seen[label] += 1
                if seen[label] <= samples:
                    chosen.append(place)
            for places in [[place] for place in chosen] if squared else [chosen] if chosen else []:
                with torch.nn.utils.parametrize.cached():
                    value = loss(model(inputs[places]), labels[places]) * len(places)
                    gradients = torch.autograd.grad(value, [self.layers[name].seen for name in self.grids])
                for name, gradient in zip(self.grids, gradients, strict=True):
                    found = _four(gradient).astype(np.float64)
                    sums[name], squares[name] = sums[name] + found, squares[name] + found**2
            count += len(chosen)
        model.train(was_training)
        mean = {name: (sums[name] / count, squares[name] / count if squared else None) for name in self.grids}
        return {name: Evidence(self.layers[name].array, *found) for name, found in mean.items()}


def prune(
    model: Any,
    loader: Loader,
    loss: Loss,
    classes: Sequence[int] | None = None,
    *,
    iterations: int = 10,
    epochs: int = 10,
    optimizer: Any = None,
    schedule: Any = None,
    evaluate: Callable[[Any], Any] | None = None,
    samples: int = SAMPLES,
    report: Callable[[str], None] = lambda text: None,
    **about: Any,
) -> PrunedModel:
    """Prunes a model for some classes during training; `about` has the arguments of `PrunedModel.of`.

    Batches may hold any classes; samples of other `classes` are left out. For CRISP (Algorithm 1) an epoch without
    masks comes first, then `iterations` steps, each with `epochs` of training. `optimizer` is an optimizer of the
    model's parameters, or a function of the parameters; all steps share it, with its momentum. The default is SGD as in
    the paper. `schedule` is a scheduler of learning rates, or a function of the optimizer, and goes on with every
    epoch. `evaluate(model)` is called after every step, in evaluation mode. SparseMapError for batches without samples
    of the classes, and as `PrunedModel.of`."""
    torch = _torch()
    found = PrunedModel.of(model, **about)
    found.positions = _positions(model, loader, found.layers)
    if not isinstance(optimizer, torch.optim.Optimizer):
        make = optimizer or partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=4e-5)
        optimizer = make(model.parameters())
    if schedule is not None and not hasattr(schedule, "step"):
        schedule = schedule(optimizer)

    def train(count: int) -> None:
        model.train()
        for _ in range(count):
            for inputs, labels in _of_classes(loader, classes, _device(model)):
                optimizer.zero_grad()
                loss(model(inputs), labels).backward()
                optimizer.step()
            if schedule is not None:
                schedule.step()

    if found.steps.pruner:
        train(1)
    targets = found.targets(iterations)
    for number, target in enumerate(targets, 1):
        found.step(target, loader, loss, classes, samples)
        train(epochs)
        row: dict[str, Any] = {"step": number, "sparsity": found.sparsity}
        if evaluate is not None:
            model.eval()
            with torch.no_grad():
                row["value"] = evaluate(model)
        found.history.append(row)
        value = f", {row['value']}" if evaluate else ""
        report(f"step {number} of {len(targets)}: sparsity {found.sparsity:.4f}{value}")
    return found


# -------------------------------------------------------------------------------------------------------------- layers


def _layers(model: Any) -> Iterator[tuple[str, Weights]]:
    """Convolutions, fully connected layers and projections of attention, in the order of the model."""
    nn = _torch().nn
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            yield name, Weights(module, "weight")
        elif isinstance(module, nn.MultiheadAttention):
            for part in ("in_proj", "q_proj", "k_proj", "v_proj"):
                if getattr(module, f"{part}_weight", None) is not None:
                    yield f"{name}.{part}", Weights(module, f"{part}_weight")


def _four(tensor: Any) -> Array:
    """Weights or their gradient as (S, height, width, C)."""
    array = tensor.detach().cpu().numpy()
    return as_convolution(array[:, :, None] if array.ndim == 3 else array)


def _masking() -> Any:
    """The class of the parametrization, made after the import of PyTorch."""
    torch: Any = _torch()

    class Masking(torch.nn.Module):
        def __init__(self, words: Any, live: Any) -> None:
            super().__init__()
            self.register_buffer("words", words)
            self.register_buffer("live", live)

        def set(self, words: Any, live: Any) -> None:
            self.words, self.live = words, live

        def forward(self, weight: Any) -> Any:
            """Masked weights, with the gradient of all words of kept blocks (straight-through estimator)."""
            live = weight * self.live
            return live + (weight * self.words - live).detach()

    return Masking


# ------------------------------------------------------------------------------------------------------------ training


def _of_classes(loader: Loader, classes: Sequence[int] | None, device: Any) -> Iterator[tuple[Any, Any]]:
    """The batches without samples of other classes."""
    torch, found = _torch(), False
    for inputs, labels in loader:
        if classes is not None:
            chosen = torch.isin(labels, torch.as_tensor(list(classes), device=labels.device))
            inputs, labels = inputs[chosen], labels[chosen]
        if len(labels):
            found = True
            yield inputs.to(device), labels.to(device)
    if not found:
        raise SparseMapError(f"the loader has no sample of the classes {'' if classes is None else list(classes)}")


def _device(model: Any) -> Any:
    return next(model.parameters()).device


def _positions(model: Any, loader: Loader, layers: Mapping[str, Weights]) -> dict[str, int]:
    """Uses of the weights of each layer per sample."""
    torch = _torch()
    found: dict[str, int] = dict.fromkeys(layers, 0)
    convolutions = torch.nn.Conv1d | torch.nn.Conv2d

    def remember(name: str, module: Any, inputs: Any, output: Any) -> None:
        output = output[0] if isinstance(output, tuple) else output
        found[name] += output.numel() // (output.shape[1] if isinstance(module, convolutions) else output.shape[-1])

    batch = next(iter(loader), None)
    if batch is None:
        raise SparseMapError("the loader has no batches")
    with ExitStack() as after, torch.no_grad():
        after.callback(model.train, model.training)
        for name, one in layers.items():
            after.enter_context(one.module.register_forward_hook(partial(remember, name)))
        model.eval()(batch[0][:1].to(_device(model)))
    return found
