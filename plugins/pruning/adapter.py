"""CRISP for a network of PyTorch: `prune(model, loader, loss, classes)` trains and prunes it in place.

Masks are parametrizations of the weights (`torch.nn.utils.parametrize`): the forward pass sees masked weights, the
backward pass reaches all words of kept blocks. What is pruned is decided by the NumPy core, as for `digits`. PyTorch is
imported when a function is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError, listed, need, unknown
from sparsemap.pieces.contracts.base import Array

from .blocks import BlockShape
from .export import PrunedLayers
from .hybrid import HybridPruner, Masks, NmPattern, sparsity_of
from .scores import saliency
from .weight_files import as_convolution

Loader = Iterable[tuple[Any, Any]]
"""Batches of inputs and labels; gone through several times."""


def _torch() -> Any:
    return need("torch", "pruning a model of PyTorch", "torch")


@attrs.define
class PrunedModel:
    """What `prune` returns; the model itself was changed."""

    model: Any
    masks: dict[str, Masks]
    pattern: NmPattern
    positions: dict[str, int]
    """Output pixels of every convolution and fully connected layer of the model, for one sample."""

    @property
    def sparsity(self) -> float:
        """The share of zeros over the pruned layers."""
        return sparsity_of(self.masks)

    def finish(self) -> Any:
        """The model with plain weights that hold the zeros, without parametrizations."""
        for name in self.masks:
            module = self.model.get_submodule(name)
            if _is_masked(module):
                _torch().nn.utils.parametrize.remove_parametrizations(module, "weight")
        return self.model

    def write(self, folder: str | Path) -> None:
        """The files of `sparsemap prune`: masked weights, masks, a workload per layer, summary.csv."""
        PrunedLayers(
            weights={name: _weights(module) for name, module in _layers(self.model)},
            positions=self.positions,
            masks=self.masks,
            pattern=self.pattern,
            source=type(self.model).__name__,
        ).write(Path(folder))


def prune(
    model: Any,
    loader: Loader,
    loss: Callable[[Any, Any], Any],
    classes: Sequence[int] | None = None,
    *,
    pattern: tuple[int, int] = (2, 4),
    block: int = 16,
    sparsity: float = 0.9,
    iterations: int = 10,
    epochs: int = 10,
    optimizer: Callable[[Iterable[Any]], Any] | None = None,
    samples: int = 256,
    pull: float = 0.0,
    order: str = "hwc",
    normalise: str = "none",
    exclude: Iterable[str] | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> PrunedModel:
    """Prunes the convolutions and fully connected layers of a model for some classes (CRISP, Algorithm 1).

    `loss(outputs, labels)` is a mean over the batch. Batches hold any classes; samples of others than `classes` are left
    out. An epoch without masks comes first, then `iterations` steps of pruning to `sparsity`, each with `epochs` of
    training by `optimizer(parameters)`, SGD as in the paper unless given. Gradients for the saliency are those of
    `samples` samples per class, with the model in evaluation mode. Layers in `exclude` stay dense, by default the first
    and the last one; grouped convolutions, and rows that are no multiple of M, always do. SparseMapError for a sparsity
    that cannot be reached, layers that are not there, and batches without samples of the classes.
    """
    every = dict(_layers(model))
    excluded = set(exclude) if exclude is not None else {*list(every)[:1], *list(every)[-1:]}
    for name in excluded - every.keys():
        raise SparseMapError(f"exclude: {unknown('layer', name, every)}")
    shape = BlockShape(block, block, order=order)
    nm = NmPattern(*pattern)
    grids = {
        name: shape.grid(_weights(module).shape)
        for name, module in every.items()
        if name not in excluded and getattr(module, "groups", 1) == 1
    }
    grids = {name: grid for name, grid in grids.items() if grid.size[1] % nm.m == 0}
    if not grids:
        raise SparseMapError(f"nothing to prune among {listed(every)}")
    pruner = HybridPruner(grids, nm, normalise)
    targets = pruner.targets(sparsity, iterations)
    positions = _positions(model, loader, every)
    if optimizer is None:
        optimizer = partial(_torch().optim.SGD, lr=0.1, momentum=0.9, weight_decay=4e-5)
    _train(model, loader, loss, classes, 1, optimizer)
    masks: dict[str, Masks] = {}
    for step, target in enumerate(targets, 1):
        weights = {name: _weights(model.get_submodule(name)) for name in grids}
        gradients = _mean_gradients(model, loader, loss, classes, samples, list(grids))
        scores = {name: grids[name].matrix(saliency(weights[name], gradients[name])) for name in grids}
        masks = pruner.step(scores, target)
        for name, mask in masks.items():
            _apply(model.get_submodule(name), mask, pull)
        _train(model, loader, loss, classes, epochs, optimizer)
        report(f"step {step} of {iterations}: sparsity {sparsity_of(masks):.4f}")
    return PrunedModel(model, masks, nm, positions)


# -------------------------------------------------------------------------------------------------------------- layers


def _layers(model: Any) -> Iterator[tuple[str, Any]]:
    """Convolutions and fully connected layers, in the order in which the model lists them."""
    nn = _torch().nn
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            yield name, module


def _parameter(module: Any) -> Any:
    """The dense weights that are trained."""
    return module.parametrizations.weight.original if _is_masked(module) else module.weight


def _is_masked(module: Any) -> bool:
    return _torch().nn.utils.parametrize.is_parametrized(module, "weight")


def _weights(module: Any) -> Array:
    """Dense weights as (S, height, width, C)."""
    return as_convolution(_parameter(module).detach().cpu().numpy())


def _as_parameter(module: Any, array: Array) -> Any:
    """A bool array (S, height, width, C) as a tensor like the weights of the module."""
    parameter = _parameter(module)
    array = array.reshape(parameter.shape) if parameter.ndim == 2 else array.transpose(0, 3, 1, 2)
    return _torch().from_numpy(np.ascontiguousarray(array)).to(parameter.device)


def _apply(module: Any, mask: Masks, pull: float) -> None:
    """Masks the weights of a module, or replaces the masks that it has."""
    words, live = (_as_parameter(module, mask.grid.tensor(part)) for part in (mask.words, mask.live))
    if _is_masked(module):
        module.parametrizations.weight[0].set(words, live)
    else:
        _torch().nn.utils.parametrize.register_parametrization(module, "weight", _masking()(words, live, pull))


def _masking() -> Any:
    """The class of the parametrization, which can be made only where PyTorch is imported."""
    torch: Any = _torch()

    class Through(torch.autograd.Function):
        """Masked weights forward; backward the gradient of all words of kept blocks (straight-through estimator)."""

        @staticmethod
        def forward(context: Any, weight: Any, words: Any, live: Any, pull: float) -> Any:
            context.save_for_backward(weight, words, live)
            context.pull = pull
            return weight * words

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            weight, words, live = context.saved_tensors
            found = gradient * live
            if context.pull:
                found = found + context.pull * weight * (live & ~words)
            return found, None, None, None

    class Masking(torch.nn.Module):
        def __init__(self, words: Any, live: Any, pull: float) -> None:
            super().__init__()
            self.register_buffer("words", words)
            self.register_buffer("live", live)
            self.pull = pull

        def set(self, words: Any, live: Any) -> None:
            self.words, self.live = words, live

        def forward(self, weight: Any) -> Any:
            return Through.apply(weight, self.words, self.live, self.pull)

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


def _train(
    model: Any, loader: Loader, loss: Any, classes: Sequence[int] | None, epochs: int, optimizer: Callable[[Any], Any]
) -> None:
    model.train()
    steps = optimizer(model.parameters())
    for _ in range(epochs):
        for inputs, labels in _of_classes(loader, classes, _device(model)):
            steps.zero_grad()
            loss(model(inputs), labels).backward()
            steps.step()


def _mean_gradients(
    model: Any, loader: Loader, loss: Any, classes: Sequence[int] | None, samples: int, names: list[str]
) -> dict[str, Array]:
    """dL/dW by the masked weights, summed over `samples` samples of each class, over the number of samples; (S, h, w, C).

    The gradient is that of the weights which the forward pass sees, taken where they are made.
    """
    torch = _torch()
    was_training = model.training
    model.eval()
    seen: Counter[int] = Counter()
    sums: dict[str, Any] = {}
    count = 0
    for inputs, labels in _of_classes(loader, classes, _device(model)):
        chosen = []
        for place, label in enumerate(labels.tolist()):
            seen[label] += 1
            if seen[label] <= samples:
                chosen.append(place)
        if not chosen:
            continue
        places = torch.as_tensor(chosen, device=labels.device)
        with torch.nn.utils.parametrize.cached():
            value = loss(model(inputs[places]), labels[places]) * len(chosen)
            effective = [model.get_submodule(name).weight for name in names]
            gradients = torch.autograd.grad(value, effective)
        for name, gradient in zip(names, gradients, strict=True):
            sums[name] = sums.get(name, 0) + as_convolution(gradient.detach().double().cpu().numpy())
        count += len(chosen)
    model.train(was_training)
    return {name: array / count for name, array in sums.items()}


def _positions(model: Any, loader: Loader, layers: dict[str, Any]) -> dict[str, int]:
    """How often the weights of each layer are used for one sample: its output pixels."""
    torch = _torch()
    found: dict[str, int] = dict.fromkeys(layers, 0)

    def remember(name: str, module: Any, inputs: Any, output: Any) -> None:
        channels = output.shape[1] if output.ndim == 4 else output.shape[-1]
        found[name] += output.numel() // output.shape[0] // channels

    batch = next(iter(loader), None)
    if batch is None:
        raise SparseMapError("the loader has no batches")
    with ExitStack() as after, torch.no_grad():
        after.callback(model.train, model.training)
        for name, module in layers.items():
            after.enter_context(module.register_forward_hook(partial(remember, name)))
        model.eval()(batch[0][:1].to(_device(model)))
    return found
