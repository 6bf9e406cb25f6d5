"""Pages on pruning digits: runs of `sparsemap extra prune digits`, by the points in the front matter of a page.

[[points]]     options of the verb; sparsity: a list; labels: more columns of the rows of these points"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sparsemap import __version__
from sparsemap.cli.output import say
from sparsemap.csv_files import read_csv

from .rows import Rows
from .runs import Runner, said_by

SEEDS = 5
NUMBER = re.compile(r"[-+.\de]*|nan")
PERCENTS = ("accuracy", "accuracy_before", "achieved", "dense_accuracy")
"""Shares that pages draw in per cent."""
Options = Mapping[str, Any]
"""Options of the verb by name, with underscores."""


def page(runner: Runner, name: str) -> dict[str, Any]:
    """`cells`: a row per point and seed, with numbers in place of texts (NaN for empty cells), labels, shares in per cent,
    and the outcome of the point as text; and for every label `of LABEL`, the rows with this label."""
    from .pages import template, template_of

    wanted, labels = [], []
    for one in template(template_of(name))[0]["points"]:
        options = {key: value for key, value in one.items() if key != "labels"}
        for sparsity in one.get("sparsity", [None]):
            wanted.append({**options, "sparsity": sparsity} if sparsity is not None else options)
            labels.append(one["labels"])
    found, cells = points(runner, name, wanted), Rows()
    for number, (rows, about) in enumerate(zip(found, labels, strict=True)):
        own = Rows()
        for row in rows:
            numbers = {key: float(text or "nan") for key, text in row.items() if NUMBER.fullmatch(text)}
            percents = {f"{key} %": 100 * numbers[key] for key in PERCENTS if key in numbers}
            own.append({**row, **numbers, **percents, **about, "point": number})
        share = f"{100 * wanted[number].get('sparsity', 0):g} %"
        cells += [{**row, "share": share, "outcome": outcome(own)} for row in own]
    rows = [dict(row) for rows in found for row in rows]
    labelled = {f"of {key}": Rows(row for row in cells if key in row) for about in labels for key in about}
    return {**labelled, "rows": rows, "cells": cells, "seed": cells.seed.distinct}


def outcome(runs: Rows) -> str:
    """Accuracy after training, and before training for masks at once: 98.4 ± 0.5 (94.0)."""
    values = runs["accuracy %"]
    text = f"{values.mean:.1f}" + (f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else "")
    before = runs["accuracy_before %"].finite
    text += f" ({before.mean:.1f})" if before else ""
    cut, left = int(runs.cut.total), [x for x, is_cut in zip(values, runs.cut, strict=True) if not is_cut]
    return f"{text}, {cut} cut, without {statistics.fmean(left):.1f}" if cut and left else text


def points(runner: Runner, page: str, wanted: Iterable[Options]) -> list[list[dict[str, str]]]:
    """Runs missing points, and reads the lines of `runs.csv` of all; a point may have its own number of `seeds`."""
    places: dict[Path, Options] = {}
    for options in wanted:
        words = "-".join(str(value) for key, value in options.items() if key != "network")
        folder = (runner.work or Path("runs/paper")) / page / words.replace(":", "of").replace(",", "-")
        places[folder] = {**options, "seeds": runner.seeds or options.get("seeds", SEEDS)}
    lacking = [(folder, options) for folder, options in places.items() if not _is_of(folder, options)]
    for number, _ in enumerate(runner.each(_run, lacking), 1):
        say(f"{page}: {number} of {len(lacking)} points are there: {lacking[number - 1][0].name}")
    return [read_csv(folder / "runs.csv") for folder in places]


def _run(point: tuple[Path, Options]) -> None:
    folder, options = point
    given = {**options, "out": folder}
    said_by("prune", "digits", *(f"--{key.replace('_', '-')}={value}" for key, value in given.items()))


def _is_of(folder: Path, options: Options) -> bool:
    """Whether a folder holds the results of this version and these options."""
    try:
        table = json.loads((folder / "prune.json").read_text("utf-8"))
        return (folder / "runs.csv").exists() and {**table, **options, "version": __version__} == table
    except (OSError, ValueError):
        return False
