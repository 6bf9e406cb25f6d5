"""The work of `sparsemap extra prune`: options as a job, runs on digits, masks for a user's weights."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import click
import numpy as np

from sparsemap import __version__
from sparsemap.cli import output
from sparsemap.csv_files import csv_text
from sparsemap.errors import SparseMapError, unknown
from sparsemap.extras import need
from sparsemap.file_formats import FileFormat
from sparsemap.files import percent, shown
from sparsemap.pieces.contracts.base import Array
from sparsemap.writing import temporary, write_text

from . import digits
from .block_masks import BALANCES
from .blocks import ORDERS, UNITS, BlockShape
from .export import PrunedLayers, file_names
from .hybrid import NmPattern
from .networks import WeightsOfNetwork
from .profile import read_splits
from .runs import BY_LAYER, HYBRID, METHODS, Job, MaskSteps, run
from .scores import CRITERIA, NEEDS, Evidence
from .weight_files import (
    LAYOUTS,
    chosen_layers,
    depthwise,
    in_layout,
    read_gradients,
    read_weights,
    weights_of,
    write_masked,
)

MODEL = ".onnx"
CHOICES: dict[str, Iterable[str]] = {
    "method": METHODS,
    "criterion": CRITERIA,
    "unit": UNITS,
    "order": ORDERS,
    "balance": BALANCES,
    "network": digits.RECIPES,
    "layout": LAYOUTS,
}
"""Choices by option."""
HYBRID_DEFAULTS = {"network": "conv3-fc2", "criterion": "saliency", "unit": "words", "block": "16x16"}
BY_LAYER_DEFAULTS = {"network": "conv3-fc1", "criterion": "l2", "unit": "channels", "block": "8x8"}
PRUNING = FileFormat("pruning", "`prune.json`: options of `sparsemap extra prune`; also for `summary.csv`, `runs.csv`")
Options = Mapping[str, Any]
"""The options of the verb by name, None for absent options."""


def job_of(given: Options, trains: bool) -> Job:
    """`trains` for digits; SparseMapError for unknown or conflicting options."""
    method, sparsity, balance = given["method"], given["sparsity"], given["balance"]
    defaults = BY_LAYER_DEFAULTS if method in BY_LAYER else HYBRID_DEFAULTS
    given = {**given, **{key: given[key] or default for key, default in defaults.items()}}
    given |= {} if trains else {"network": defaults["network"]}  # of weights, their network, which is no recipe
    for option, names in CHOICES.items():
        if given[option] not in names:
            raise SparseMapError(f"--{option}: {unknown('choice', given[option], names)}")
    if (method == "nm-only") != (sparsity is None):
        why = "missing, such as 0.9" if sparsity is None else "the pattern of nm-only says it"
        raise SparseMapError(f"--sparsity: {why}")
    if balance != "none" and method != "one-shot":
        raise SparseMapError(f"--balance: only one-shot has balanced masks, not {method}")
    if not trains and method in ("gradual", "trained"):
        raise SparseMapError(f"--method {method}: needs training, and a file has weights only; use one-shot")
    as_given = ("method", "criterion", "balance", "network", "prune_classifier")
    return Job(
        pattern=NmPattern.parse(given["pattern"]),
        block=_block(given["block"], given["unit"], given["order"]),
        sparsity=sparsity or 0.0,
        splits=read_splits(given["splits"]) if given["splits"] else {},
        classes=_classes(given["classes"]),
        **{key: given[key] for key in as_given},
    )


def write_options(source: str, options: Options) -> None:
    """`prune.json`: source and options of the files beside it."""
    given = {key: value for key, value in options.items() if value is not None and key != "out"}
    table = PRUNING.stamped({"version": __version__, "source": source, **given})
    write_text(options["out"] / "prune.json", json.dumps(table, indent=1, default=str) + "\n")


def _block(text: str, unit: str, order: str) -> BlockShape:
    """Block shape from `16` or `16x4`."""
    found = re.fullmatch(r"([1-9]\d{0,5})(?:x([1-9]\d{0,5}))?", text, re.ASCII)
    if not found:
        raise SparseMapError(f"--block: found {text!r}, expected a number such as 16, or ROWSxCOLUMNS such as 16x4")
    return BlockShape(int(found[1]), int(found[2] or found[1]), unit, order)


def _classes(text: str) -> tuple[int, ...]:
    if text == "all":
        return tuple(range(digits.CLASSES))
    if not re.fullmatch(r"\d(,\d)+", text, re.ASCII):
        raise SparseMapError(f"--classes: found {text!r}, expected `all` or two or more digits such as 0,1,7")
    return tuple(sorted({int(word) for word in text.split(",")}))


# -------------------------------------------------------------------------------------------------------------- digits


def prune_digits(job: Job, options: Options, progress: Callable[[], None]) -> str:
    """Runs all seeds, writes `runs.csv` and the layers of the first seed, and returns the text to print."""
    limits = need("threadpoolctl", "training", "prune").threadpool_limits
    with limits(1):  # matrices are small, and sums do not depend on the number of cores
        found = [run(attrs.evolve(job, seed=seed), progress) for seed in range(options["seeds"])]
        rows = [outcome.row() for outcome in found]  # trains the dense networks as long
    of_classes = "" if len(job.classes) == digits.CLASSES else f" {', '.join(map(str, job.classes))}"
    weights = {layer.name: layer.weights for layer in found[0].network.layers}
    positions = {layer.name: layer.side**2 for layer in found[0].network.layers}
    about: Any = {"pattern": job.nm, "source": f"{job.network}, digits{of_classes}", "splits": job.splits}
    pruned = PrunedLayers(weights=weights, positions=positions, masks=found[0].masks, **about)
    summary = pruned.write(options["out"])
    write_text(options["out"] / "runs.csv", csv_text(rows))
    write_options("digits", options)
    means = {"accuracy": "accuracy", "dense": "dense_accuracy", "achieved sparsity": "achieved"}
    lines = [_mean_line(name, [row[column] for row in rows]) for name, column in means.items()]
    notes = [f"seed {row['seed']}: no path of kept blocks leads through the network" for row in rows if row["cut"]]
    return "\n".join([*lines, *notes, _table(summary), f"wrote {shown(options['out'])}"])


def _mean_line(name: str, values: Sequence[float]) -> str:
    spread = f"   {percent(min(values), 1)} to {percent(max(values), 1)}" if len(values) > 1 else ""
    return f"{name:18} {percent(float(np.mean(values)), 1)}{spread}"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """A line per layer; narrow terminals omit the blocks per row and per layer."""
    head = ["layer", "sparsity", "kept blocks", "of", "per row", "flops", "utilisation"]
    keys = ("layer", "sparsity", "kept_blocks", "blocks", "kept_per_row", "flops_ratio", "utilisation")
    shares = ("sparsity", "flops_ratio", "utilisation")
    cells = [[percent(row[key], 1) if key in shares else str(row.get(key, "")) for key in keys] for row in rows]
    return output.table([head, *cells], "<>", gap=3, less=(4, 3))


# ------------------------------------------------------------------------------------------------------------- weights


@contextmanager
def _together(folder: Path, read: Iterable[Path]) -> Iterator[Path]:
    """A folder for files that go to `folder` together at the end of the block; an error, also a file in place of a
    `read` one, leaves none of them."""
    near = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
    with temporary(near / "pruned", folder=True) as made:
        yield made
        own = [path.resolve() for path in read]
        for file in made.iterdir():
            if (folder / file.name).resolve() in own:
                raise SparseMapError(
                    f"{shown(folder / file.name)}: is read and would be replaced; choose another --out"
                )
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(made.iterdir()):
            os.replace(file, folder / file.name)


def prune_weights(source: Path, job: Job, options: Options) -> str:
    """Masks a user's weights without training, writes all files or none, and returns the text to print."""
    files = ("network", "splits", "gradients", "squared_gradients")
    read = [source, *(Path(options[name]) for name in files if options[name])]
    with _together(options["out"], read) as folder:
        text = _prune_weights(source, job, {**options, "out": folder})
    return f"{text}\nwrote {shown(options['out'])}"


def _prune_weights(source: Path, job: Job, options: Options) -> str:
    if options["positions"] and (options["network"] or source.suffix == MODEL):
        raise SparseMapError("--positions is for weights alone; the layers of a network say their output pixels")
    model = _imported(source, options) if source.suffix == MODEL else None
    if model:
        every = {name: weights_of(str(source), name, array) for name, array in model.weights().items()}
        network: WeightsOfNetwork | None = WeightsOfNetwork.of(model.out, source.stem)
    else:
        arrays = read_weights(source, options["layout"])
        network = WeightsOfNetwork.of(options["network"]) if options["network"] else None
        layers = network.layers_of(arrays, source) if network else {name: name for name in arrays}
        every = {layer: arrays[name] for name, layer in layers.items()}
    weights = chosen_layers(every, options["layers"], job.prune_classifier)
    alone = [name for name, array in weights.items() if depthwise(array)]
    notes = [f"{name}: stays dense, every channel has a window of its own" for name in alone]
    weights = {name: array for name, array in weights.items() if name not in alone}
    tied = model.tied() if model else {}
    dense = {tied.get(name, name) for name in every if name not in weights}
    notes += [
        f"{name}: stays dense, as a layer with the same weights" for name in weights if tied.get(name, name) in dense
    ]
    weights = {name: array for name, array in weights.items() if name not in tied and name not in dense}
    if not weights:
        raise SparseMapError("\n".join([*notes, f"{shown(source)}: no layer is left to prune"]))
    file_names(weights)
    if source.name == "masked.npy":
        raise SparseMapError(f"{shown(source)}: is the name of the masked weights; rename it")
    positions = _positions(every, options["positions"], network, notes)
    evidence = _evidence(job.criterion, weights, options)
    grids = {name: job.block.grid(array.shape) for name, array in weights.items()}
    if job.method in HYBRID:
        unfit = [name for name, grid in grids.items() if grid.size[1] % job.nm.m]
        notes += [f"{name}: stays dense, its rows have no groups of {job.nm.m}" for name in unfit]
        grids = {name: grid for name, grid in grids.items() if name not in unfit}
        if not grids:
            raise SparseMapError(f"{shown(source)}: no layer has groups of {job.nm.m}, all would stay dense")
    steps = MaskSteps.of(job, grids)
    masks = steps.step(job.target, evidence, np.random.default_rng(0))
    masks = {name: masks[first] for name in every if (first := tied.get(name, name)) in masks}
    if steps.pruner and job.method != "nm-only":
        unblocked = [name for name in grids if name not in steps.pruner.prunable]
        notes += [f"{name}: loses no blocks, its size is no multiple of {job.block}" for name in unblocked]
    about: Any = {"pattern": job.nm, "source": source.name, "splits": job.splits}
    pruned = PrunedLayers(weights=every, positions=positions, masks=masks, **about)
    summary = pruned.write(options["out"])
    if model:
        masked = {name: in_layout(array, model.weights()[name].ndim) for name, array in pruned.masked.items()}
        model.write_masked(options["out"] / f"masked{MODEL}", masked)
    else:
        masked = {name: pruned.masked[layer] for name, layer in layers.items() if layer in masks}
        write_masked(source, options["out"], masked, options["layout"])
    if network:
        network.write(options["out"], pruned)
    write_options(str(source), options)
    return "\n".join([*notes, _table(summary)])


def _imported(source: Path, options: Options) -> Any:
    """The import of a model by the verb `import-model` of another plugin, with the dense network in `model.toml`."""
    if options["network"]:
        raise SparseMapError(f"--network is for files of weights; {shown(source)} has its own layers")
    ctx = click.get_current_context()
    root = ctx.find_root().command
    verb = root.get_command(ctx, "import-model") if isinstance(root, click.Group) else None
    if verb is None:
        raise SparseMapError(f"{shown(source)}: no plugin reads models; there is no command import-model")
    return ctx.invoke(verb, model=source, out=options["out"] / "model.toml", quiet=True)


def _positions(
    weights: Mapping[str, Array], given: str, network: WeightsOfNetwork | None, notes: list[str]
) -> dict[str, int]:
    """Output pixels by layer: from the network, or one number for all, or NAME=N with commas."""
    if network:
        return {name: network.positions(name) for name in weights}
    if not re.fullmatch(r"[1-9]\d{0,8}|[^=,]+=[1-9]\d{0,8}(,[^=,]+=[1-9]\d{0,8})*", given or "1", re.ASCII):
        raise SparseMapError(f"--positions: found {given!r}, expected a number from 1 on, or NAME=N with commas")
    by_layer = dict(part.split("=") for part in given.split(",")) if "=" in (given or "") else {}
    for name in by_layer:
        if name not in weights:
            raise SparseMapError(f"--positions: {unknown('layer', name, weights)}")
    if not given and (convs := [name for name, array in weights.items() if math.prod(array.shape[1:3]) > 1]):
        notes.append(f"{', '.join(convs)}: counted with one output pixel; --network or --positions says how many")
    every = 1 if by_layer or not given else int(given)
    return {name: int(by_layer.get(name, every)) for name in weights}


def _evidence(criterion: str, weights: dict[str, Array], options: Options) -> dict[str, Evidence]:
    """Weights with the gradients of the criterion; SparseMapError without them."""
    if criterion not in NEEDS:
        return {name: Evidence(array) for name, array in weights.items()}
    field = NEEDS[criterion]
    path = options[f"{field}s"]
    if path is None:
        advice = f"add --{field.replace('_', '-')}s FILE, or --criterion l1"
        raise SparseMapError(f"criterion {criterion!r} needs gradients, and weights have none: {advice}")
    gradients = read_gradients(path, weights, options["layout"])
    return {name: Evidence(array, **{field: gradients[name]}) for name, array in weights.items()}
