"""The surrogates of Mind Mappings, trained on random convolutions as by its authors, on no layer of the study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import __version__
from sparsemap.cli.output import say
from sparsemap.file_formats import SPEC
from sparsemap.spec import toml_text
from sparsemap.study.cells import Cell
from sparsemap.writing import write_text

from ..runs import Runner, said_by

SURROGATE, RETRAINED = "mind-mappings", "mind-mappings-retrained"
"""Searchers with the model of the first hardware of a study, and with the model of their own hardware."""
LAYERS = 16
SIZES: Mapping[str, Any] = {
    "b": (1, 2, 4, 8, 16), "k": range(32, 481, 32), "c": range(32, 481, 32), "p": range(7, 224), "r": (1, 3, 5, 7),
}  # fmt: skip
"""Sizes, drawn evenly; q is p, s is r (the authors' program)."""


@attrs.frozen
class TrainedModel:
    """A file of `sparsemap extra train-surrogate`."""

    file: Path
    hardware: str
    ranks: Mapping[str, float]
    """By layer of the study, the rank correlation of prediction and score over random legal mappings."""

    def searcher(self, hardware: str) -> dict[str, Any]:
        return {"type": "mind-mappings", "model": str(self.file), "other_hardware": hardware != self.hardware}


def trained(runner: Runner, name: str, hardware: str, levels: str = "") -> TrainedModel:
    """The model of a hardware, from two legal mappings per mapping of the study's budget, perhaps with the mapping levels of
    another hardware: levels without a fan-out then get a fan-out of 1."""
    study = runner.study(name)
    folder = (runner.folder("mse-fig-3") / "surrogates").resolve()
    file = folder / f"{hardware}-as-{levels or hardware}-{2 * study.budget}-{__version__}.npz"
    said = file.with_suffix(".txt")
    if not (file.exists() and said.exists()):
        say(f"{name}: training the surrogate of {hardware}")
        like = runner.registry.spec("hardware", levels or hardware)["levels"]
        own = runner.registry.spec("hardware", hardware)["levels"]
        bare = [x["name"] for x, there in zip(own, like, strict=True) if "fanout" in there and "fanout" not in x]
        chip = {"kind": "hardware", "name": hardware, "extends": hardware, "levels": {x: {"fanout": 1} for x in bare}}
        files = {"hardware": chip} | {f"layer{at}": layer for at, layer in enumerate(_layers(study.workloads[0]))}
        for label, table in files.items():
            write_text(folder / f"{label}.toml", toml_text.dumps(SPEC.stamped(table)))
        *layers, chip_file = [str(folder / f"{label}.toml") for label in (*list(files)[1:], "hardware")]
        about = {"space": study.space, "cost-model": study.cost_model, "samples": 2 * study.budget, "out": file}
        options = [f"--{key}={value}" for key, value in about.items()]
        tests = [f"--test={workload}" for workload in study.workloads]
        write_text(said, said_by("train-surrogate", *layers, chip_file, *options, *tests, "--quiet"))
    rows = [line.split() for line in said.read_text("utf-8").splitlines() if "not trained on" in line]
    return TrainedModel(file, hardware, {row[0]: float(row[-1]) for row in rows})


def _layers(like: str) -> list[dict[str, Any]]:
    """Random convolutions."""
    rng, found = np.random.default_rng(0), []
    for at in range(LAYERS):
        dims = {dim: int(rng.choice(sizes)) for dim, sizes in SIZES.items()}
        dims |= {"q": dims["p"], "s": dims["r"]}
        found.append({"kind": "workload", "name": f"layer{at}", "extends": like, "dims": dims})
    return found


def cells(runner: Runner, name: str) -> tuple[list[Cell], list[TrainedModel]]:
    """The searches of a study with surrogates: the first hardware's everywhere, and every other hardware's own."""
    study, found = runner.study(name), []
    models: dict[tuple[str, str], TrainedModel] = {}
    first = study.hardware[0]
    for cell in runner.cells(name):
        if cell.searcher != study.searchers[0]:
            continue
        for label, source in {SURROGATE: first, RETRAINED: cell.hardware}.items():
            if label == RETRAINED and source == first:
                continue
            if (both := (source, cell.hardware)) not in models:
                models[both] = trained(runner, name, *both)
            model = models[both]
            place = f"{cell.workload}--{cell.hardware}--{label}--seed{cell.seed}"
            parts = {**cell.parts, "searcher": model.searcher(cell.hardware)}
            folder = str(Path(cell.folder).with_name(place))
            found.append(attrs.evolve(cell, searcher=label, parts=parts, folder=folder))
    return found, list(models.values())
