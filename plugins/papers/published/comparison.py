"""Published figures beside both cost models, for the only design of a hardware, space and workload."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from sparsemap import Problem, SparseMapError, load_problem, search
from sparsemap.errors import SpecError, unknown
from sparsemap.pieces.defaults import DESIGN_FILE
from sparsemap.problem import design_file
from sparsemap.problem.designs import Designs
from sparsemap.spec import toml_io

from ..rows import Row, Rows, geometric_mean
from ..runs import Runner, said_by

MODELS = ("timeloop", "physical")
RATIOS = {"over dense": lambda own, base: own / base, "times better": lambda own, base: base / own}
"""Endings of quantities such as "cycles over dense", with the ratio of the design's value and the base's."""

Quantities = dict[str, dict[str, float]]
"""By cost model and name; empty for a design that does not fit."""


def accelerators() -> dict[str, dict[str, Any]]:
    """The files of `_figures` by name."""
    files = sorted(Path(__file__).parent.glob("_figures/*.toml"))
    return {file.stem: tomllib.loads(file.read_text("utf-8")) for file in files}


def page(runner: Runner, name: str) -> dict[str, Any]:
    known = accelerators()
    rows = Rows(row for key, one in known.items() for row in compared(key, one, runner))
    if not rows:
        names = [figure["workload"] for one in known.values() for figure in one["figures"]]
        raise SparseMapError(f"--workload: {unknown('workload', runner.workloads[0], names)}")
    cells = Rows()
    for key, its in rows.by("accelerator").items():
        about = {part: " ".join(known[key][part].split()) for part in ("title", "source", "why")}
        cells += [{**row, **about, **texts(row), "summary": summary(its)} for row in its]
    points = [
        {"accelerator": row["accelerator"], "model": model, "ratio": (row[model] or math.nan) / row["published"]}
        for model in MODELS
        for row in rows
        if row["published"]
    ]
    return {"rows": rows, "cells": cells, "points": points}


def compared(key: str, accelerator: Mapping[str, Any], runner: Runner) -> list[Row]:
    """A row per published quantity of an accelerator: the printed value (None: unknown), and both cost models'."""
    rows = []
    for printed_figure in accelerator["figures"]:
        one = {**accelerator, **printed_figure}
        if (runner.workloads and one["workload"] not in runner.workloads) or (one.get("set_ups") and not runner.clone):
            continue
        own = measured(one, runner)
        base = measured({**one, **one["base"]}, runner) if "base" in one else own
        for quantity, printed in one["published"].items():
            known = None if math.isnan(printed) else printed
            row = {"accelerator": key, "workload": one["workload"], "quantity": quantity, "published": known}
            for model in MODELS:
                value = row[model] = value_of(quantity, own[model], base[model]) if own[model] and base[model] else None
                row[f"{model} deviation"] = value / known - 1 if known and value else None
            rows.append({**row, "source": " ".join(one["source"].split())})
    return rows


def value_of(quantity: str, own: Mapping[str, float], base: Mapping[str, float]) -> float:
    for ending, ratio in RATIOS.items():
        if quantity.endswith(f" {ending}"):
            kind = quantity.removesuffix(f" {ending}")
            return ratio(own[kind], base[kind])
    return own[quantity]


def measured(one: Mapping[str, Any], runner: Runner) -> Quantities:
    """Sums over the layers, or the set-ups, of a workload."""
    if "set_ups" in one:
        each = [set_up_measured(paths, runner.registry) for paths in _set_ups(one, runner)]
    else:
        each = [layer_measured({**one, **layer}, runner.registry) for layer in one.get("layers", [{}])]
    found = Quantities()
    for model in MODELS:
        parts = [part[model] for part in each]
        found[model] = {name: sum(part[name] for part in parts) for name in parts[0]} if all(parts) else {}
    return found


def layer_measured(one: Mapping[str, Any], registry: Any) -> Quantities:
    """The design of the space with the lowest EDP in `physical`."""
    density = {"Z": 1.0, **one["density"]}
    workload = {"name": one["workload"], "einsum": one["einsum"], "dims": one["dims"], "density": density}
    space: Any = one["space"]
    if "factors" in one:
        space = {"extends": space, "mapping": {"factors": one["factors"]}}
    where = workload, one["hardware"], space
    problems = {model: load_problem(*where, cost_model=model, registry=registry) for model in MODELS}
    best = search(problems["physical"], searcher="exhaustive", budget=10**7).best
    if best is None:
        raise SparseMapError(f"{one['title']}: no design of {one['workload']} is valid")
    genomes = np.asarray(best.genome)[None]
    return {model: quantities(problem, problem.space.decode(genomes)) for model, problem in problems.items()}


def _set_ups(one: Mapping[str, Any], runner: Runner) -> list[list[Path]]:
    """Files and folders by set-up: every folder of a pattern, or the files of several patterns."""
    assert runner.clone is not None
    given = one["set_ups"]
    patterns = [given] if isinstance(given, str) else given
    found = [sorted(runner.clone.glob(f"**/{pattern.format(**one)}")) for pattern in patterns]
    if lacking := [pattern for pattern, paths in zip(patterns, found, strict=True) if not paths]:
        raise SparseMapError(f"--clone: {runner.clone} has no {lacking[0].format(**one)}")
    return [[path] for path in found[0]] if isinstance(given, str) else [[paths[0] for paths in found]]


def set_up_measured(paths: Sequence[Path], registry: Any) -> Quantities:
    """The design of a Timeloop project."""
    found = Quantities()
    with TemporaryDirectory() as folder:
        said_by("import-timeloop", *map(str, paths), "--before-v3", "--out", folder)
        table = toml_io.read(Path(folder) / DESIGN_FILE, "design")
    for model in MODELS:
        try:
            design = design_file.structure(table if model == MODELS[0] else {**table, "cost_model": model}, registry)
            found[model] = quantities(design.problem, design.batch)
        except SpecError:  # a model may refuse pieces
            found[model] = {}
    return found


def quantities(problem: Problem, designs: Designs) -> dict[str, float]:
    """Cycles, energy in pJ, also without the outermost level, and bytes through the outermost level; nothing for a design
    that does not fit."""
    result = problem.evaluator.evaluate_designs(designs, detail=True)
    if not result.valid[0]:
        return {}
    detail, energy = cast(Any, result.detail), float(result.energy_pj[0])
    outermost = [cells[0] for cells in detail.cells if cells[0]]
    words = sum(float(cell.read[0] + cell.update[0]) for cell in outermost)
    metadata_bits = sum(float(cell.bits[x][0]) for cell in outermost for x in cell.bits if x in ("read", "update"))
    return {
        "cycles": float(result.cycles[0]),
        "energy": energy,
        "on-chip energy": energy - float(detail.energy_pj[:, 0].sum()),
        "DRAM bytes": (words * problem.levels[0].word_bits + metadata_bits) / 8,
    }


def texts(row: Row) -> dict[str, str]:
    """The cells of a table: published and both models' values, and deviations in per cent."""
    found = {"printed": _number(row["published"]) if row["published"] else "not at hand"}
    for model in MODELS:
        off = row[f"{model} deviation"]
        found |= {f"{model} value": _number(row[model]), f"{model} off": "-" if off is None else f"{100 * off:+.1f} %"}
    return found


def _number(value: float | None) -> str:
    if value is None:
        return "does not fit"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3f}"


def summary(rows: Rows) -> str:
    """Model over published: the geometric mean and the worst ratio of each model."""
    known, parts = [row for row in rows if row["published"]], []
    for model in MODELS:
        if ratios := [row[model] / row["published"] for row in known if row[model]]:
            worst = max(ratios, key=lambda ratio: abs(math.log(ratio)))
            parts.append(f"{model} {geometric_mean(ratios):.3f}x of what is published, worst {worst:.3f}x")
    return "; ".join(parts) or "nothing published is at hand"
