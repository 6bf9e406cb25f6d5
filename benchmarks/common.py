"""Shared by benchmarks: the paper's cells, means, options, and pages of templates."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsemap.csv_files import csv_text
from sparsemap.plots import page
from sparsemap.writing import write_text

WORKLOADS = (*(f"mm{n}" for n in range(1, 16)), *(f"conv{n}" for n in range(1, 14)))
HARDWARE = ("edge", "mobile", "cloud")
"""Of Tables III and II."""


def mean(values: Iterable[float]) -> float:
    """The geometric mean."""
    return statistics.geometric_mean(list(values))


def asked(about: str | None, **options: Any) -> argparse.Namespace:
    """Values of these options: the default of each, or the arguments of `add_argument`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, given in options.items():
        how = given if isinstance(given, dict) else {"default": given, "type": type(given)}
        parser.add_argument(f"--{name.replace('_', '-')}", **how)
    return parser.parse_args()


def say(*words: object) -> None:
    """On the way."""
    print(*words, file=sys.stderr, flush=True)


def publish(name: str, out: Path | None, rows: Sequence[Mapping[str, Any]] = (), **fields: Any) -> None:
    """Prints the page of the template NAME.md; writes page and rows, as CSV, to `out` if given."""
    text = page(__file__, name, **fields)
    print(text)
    if out:
        write_text(out, text)
    if out and rows:
        names = tuple(dict.fromkeys(key for row in rows for key in row))
        write_text(out.with_suffix(".csv"), csv_text([{key: row.get(key, "") for key in names} for row in rows], names))
