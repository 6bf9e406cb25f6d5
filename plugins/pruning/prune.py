"""What `sparsemap prune` does: settings from options, runs on digits, masks for a user's weights."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import __version__
from sparsemap.cli import output
from sparsemap.errors import SparseMapError, need, unknown
from sparsemap.files import csv_text, percent, shown, write_text

from . import digits
from .block_masks import BALANCES, balanced
from .blocks import ORDERS, UNITS, BlockShape
from .export import Pruned, file_names
from .hybrid import BUDGETS, NORMALISE, HybridPruner, Pattern
from .profile import Split, read_splits
from .runs import BY_LAYER, HYBRID, METHODS, Job, Outcome, block_masks, run, stages
from .scores import CRITERIA, Evidence, block_scores, word_scores
from .weight_files import LAYOUTS, chosen_layers, read_gradients, read_weights

GRADIENTS = ("mean", "mean-abs")


@attrs.frozen
class Settings:
    """Checked options; `job` has what both sources need."""

    job: Job
    seeds: int
    out: Path
    options: dict[str, Any]
    """As they were given, for `prune.json`."""
    layers: tuple[str, ...]
    layout: str
    gradients: Path | None
    squared_gradients: Path | None
    positions: int

    @property
    def stages(self) -> int:
        """Steps of progress."""
        return self.seeds * stages(self.job)


def settings(
    trains: bool,
    *,
    method: str,
    pattern: str,
    block: str | None,
    unit: str | None,
    order: str,
    sparsity: float | None,
    criterion: str | None,
    balance: str,
    splits: Path | None,
    normalise: str,
    budget: str,
    gradient: str,
    classes: str,
    seeds: int,
    network: str | None,
    prune_classifier: bool,
    layers: tuple[str, ...],
    layout: str,
    gradients: Path | None,
    squared_gradients: Path | None,
    positions: int,
    out: Path,
) -> Settings:
    """Options as settings, `trains` for digits; SparseMapError for those that are unknown or do not fit together."""
    options = {
        key: str(value) if isinstance(value, Path) else value for key, value in locals().items() if value is not None
    }
    by_layer = method in BY_LAYER
    network = network or ("conv3-fc1" if by_layer else "conv3-fc2")
    criterion = criterion or ("l2" if by_layer else "saliency")
    unit = unit or ("channels" if by_layer else "words")
    for option, value, names in (
        ("--method", method, METHODS),
        ("--criterion", criterion, CRITERIA),
        ("--unit", unit, UNITS),
        ("--order", order, ORDERS),
        ("--balance", balance, BALANCES),
        ("--normalise", normalise, NORMALISE),
        ("--budget", budget, BUDGETS),
        ("--gradient", gradient, GRADIENTS),
        ("--network", network, digits.RECIPES),
        ("--layout", layout, LAYOUTS),
    ):
        if value not in names:
            raise SparseMapError(f"{option}: {unknown('choice', value, names)}")
    if (method == "nm-only") != (sparsity is None):
        raise SparseMapError(
            "--sparsity: the pattern of nm-only says it" if sparsity is not None else "--sparsity: missing, such as 0.9"
        )
    if balance != "none" and method != "one-shot":
        raise SparseMapError(f"--balance: only one-shot has balanced masks, not {method}")
    if not trains and method in ("gradual", "trained"):
        raise SparseMapError(f"--method {method}: needs training, and a file has weights only; use one-shot")
    job = Job(
        method=method,
        pattern=Pattern.parse(pattern),
        block=_block(block or ("8x8" if by_layer else "16x16"), unit, order),
        sparsity=sparsity or 0.0,
        criterion=criterion,
        balance=balance,
        splits=read_splits(splits) if splits else {},
        classes=_classes(classes),
        network=network,
        prune_classifier=prune_classifier,
        normalise=normalise,
        budget=budget,
        gradient=gradient,
    )
    return Settings(job, seeds, out, options, layers, layout, gradients, squared_gradients, positions)


def write_options(source: str, options: dict[str, Any], folder: Path) -> None:
    """`prune.json`: what the files beside it are of."""
    table = {"version": __version__, "source": source, **options}
    del table["trains"], table["out"]
    write_text(folder / "prune.json", json.dumps(table, indent=1) + "\n")


def _block(text: str, unit: str, order: str) -> BlockShape:
    """`16` or `16x4`."""
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


def outcomes(jobs: Iterable[Job], progress: Callable[[], None] = lambda: None) -> list[Outcome]:
    """Runs on one thread of the linear algebra: matrices are small, and sums do not depend on the number of cores."""
    limits = need("threadpoolctl", "training", "prune").threadpool_limits
    with limits(1):
        return [run(job, progress) for job in jobs]


def prune_digits(chosen: Settings, progress: Callable[[], None]) -> str:
    """Runs all seeds, writes `runs.csv` and the layers of the first seed; what to print."""
    found = outcomes((attrs.evolve(chosen.job, seed=seed) for seed in range(chosen.seeds)), progress)
    first = found[0]
    job = first.job
    pruned = Pruned(
        grids=first.grids,
        weights={name: first.network[name].weights for name in first.masks},
        masks=first.masks,
        positions={name: first.network[name].side ** 2 for name in first.masks},
        macs=first.network.macs,
        pattern=job.nm,
        block=None if job.method == "nm-only" else job.block,
        source=f"{job.network}, {digits_text(job)}",
        splits=job.splits,
    )
    rows = [outcome.row() for outcome in found]
    summary = pruned.write(chosen.out)
    write_text(chosen.out / "runs.csv", csv_text(rows))
    write_options("digits", chosen.options, chosen.out)
    dead = [seed for seed, outcome in enumerate(found) if outcome.cut]
    notes = [f"seed {seed}: no path of kept blocks leads through the network" for seed in dead]
    lines = [
        _mean_line("accuracy", [row["accuracy"] for row in rows]),
        _mean_line("dense", [row["dense_accuracy"] for row in rows]),
        _mean_line("achieved sparsity", [row["achieved"] for row in rows]),
    ]
    return "\n".join([*lines, *notes, _table(summary), f"wrote {shown(chosen.out)}"])


def digits_text(job: Job) -> str:
    """The data that a run is for."""
    return "digits" if len(job.classes) == digits.CLASSES else f"digits {', '.join(map(str, job.classes))}"


def _mean_line(name: str, values: Sequence[float]) -> str:
    spread = f"   {percent(min(values), 1)} to {percent(max(values), 1)}" if len(values) > 1 else ""
    return f"{name:18} {percent(float(np.mean(values)), 1)}{spread}"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """A line per layer; narrow terminals do without the blocks per row and those of the layer."""
    head = ["layer", "sparsity", "kept blocks", "of", "per row", "flops", "utilisation"]
    cells = [
        [
            row["layer"],
            percent(row["sparsity"], 1),
            str(row["kept_blocks"]),
            str(row["blocks"]),
            row.get("kept_per_row", ""),
            percent(row["flops_ratio"], 1),
            percent(row["utilisation"], 1),
        ]
        for row in rows
    ]
    return output.table([head, *cells], "<>", gap=3, less=(4, 3))


# ------------------------------------------------------------------------------------------------------------- weights


def prune_weights(source: Path, chosen: Settings) -> str:
    """Masks a user's weights without training, and writes them; what to print."""
    job, layout = chosen.job, chosen.layout
    every = read_weights(source, layout)
    weights = chosen_layers(every, chosen.layers)
    file_names(weights)
    evidence = _evidence(chosen, weights)
    grids = {name: job.block.grid(array.shape) for name, array in weights.items()}
    rng = np.random.default_rng(0)
    if job.method in HYBRID:
        skipped = [name for name, grid in grids.items() if grid.size[1] % job.nm.m]
        for name in skipped:
            del grids[name]
        if not grids:
            raise SparseMapError(f"{shown(source)}: no layer has groups of {job.nm.m}, all would stay dense")
        scores = {name: grids[name].matrix(word_scores(job.criterion, evidence[name], rng)) for name in grids}
        pruner = HybridPruner(grids, job.nm, job.normalise, job.budget)
        masks = pruner.step(scores, pruner.lowest if job.method == "nm-only" else job.sparsity)
        notes = [f"{name}: stays dense, its rows have no groups of {job.nm.m}" for name in skipped]
        if job.method != "nm-only":
            unblocked = [name for name in grids if name not in pruner.prunable]
            notes += [f"{name}: loses no blocks, its size is no multiple of {job.block}" for name in unblocked]
    else:
        kept = {
            name: balanced(
                block_scores(job.criterion, grid, evidence[name], rng),
                job.sparsity,
                job.balance,
                job.splits.get(name, Split()).in_blocks,
            )
            for name, grid in grids.items()
        }
        masks, notes = block_masks(grids, kept), []
    pruned = Pruned(
        grids=grids,
        weights=weights,
        masks=masks,
        positions=dict.fromkeys(grids, chosen.positions),
        macs={name: array.size * chosen.positions for name, array in every.items()},
        pattern=job.nm,
        block=None if job.method == "nm-only" else job.block,
        source=source.name,
        splits=job.splits,
    )
    summary = pruned.write(chosen.out)
    write_options(str(source), chosen.options, chosen.out)
    return "\n".join([*notes, _table(summary), f"wrote {shown(chosen.out)}"])


def _evidence(chosen: Settings, weights: dict[str, Any]) -> dict[str, Evidence]:
    """Weights with the gradients that the criterion needs; SparseMapError if these were not given."""
    criterion, layout = chosen.job.criterion, chosen.layout
    needed = {
        "saliency": ("--gradients", chosen.gradients, "gradient"),
        "fisher": ("--squared-gradients", chosen.squared_gradients, "squared_gradient"),
    }.get(criterion)
    if needed is None:
        return {name: Evidence(array) for name, array in weights.items()}
    option, path, field = needed
    if path is None:
        raise SparseMapError(
            f"criterion {criterion!r} needs gradients, and weights have none: add {option} FILE, or --criterion l1"
        )
    gradients = read_gradients(path, weights, layout)
    return {name: Evidence(array, **{field: gradients[name]}) for name, array in weights.items()}
