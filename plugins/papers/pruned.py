"""Runs `sparsemap extra prune digits` for the points of a page, and reads the results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap import __version__
from sparsemap.cli.output import say
from sparsemap.csv_files import read_csv

from .rows import Rows
from .runs import Runner, said_by

SEEDS = 5
NUMBER = re.compile(r"[-+.\de]*|nan")
Options = Mapping[str, Any]
"""Options of the verb by name, with underscores."""


@attrs.frozen(slots=False)
class PrunedPoint:
    """The runs of a set of options, a seed each."""

    options: Options
    rows: Sequence[Mapping[str, str]]
    """The lines of `runs.csv`."""

    def numbers(self, **about: Any) -> Rows:
        """The lines with numbers in place of texts, NaN for empty cells, and more columns."""
        found = Rows()
        for row in self.rows:
            columns = {key: float(text or "nan") for key, text in row.items() if NUMBER.fullmatch(text)}
            found.append({**row, **columns, **about})
        return found


def points(runner: Runner, page: str, wanted: Iterable[Options]) -> list[PrunedPoint]:
    """Runs missing points, and reads all; a point may have its own number of `seeds`."""
    places: dict[Path, Options] = {}
    for options in wanted:
        words = "-".join(str(value) for key, value in options.items() if key != "network")
        folder = (runner.work or Path("runs/paper")) / page / words.replace(":", "of").replace(",", "-")
        places[folder] = {**options, "seeds": runner.seeds or options.get("seeds", SEEDS)}
    lacking = [(folder, options) for folder, options in places.items() if not _is_of(folder, options)]
    for number, _ in enumerate(runner.each(_run, lacking), 1):
        say(f"{page}: {number} of {len(lacking)} points are there: {lacking[number - 1][0].name}")
    return [PrunedPoint(options, read_csv(folder / "runs.csv")) for folder, options in places.items()]


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


def seed_rows(every: Iterable[PrunedPoint]) -> list[dict[str, Any]]:
    """The CSV of a page: a row per point and seed."""
    return [dict(row) for point in every for row in point.rows]
