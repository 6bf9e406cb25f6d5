"""The searchers of a study next to each other: EDP per cell, and by how much a reference searcher's is lower.

The ratio of a cell is the EDP that a searcher found divided by the reference's, for the same workload, hardware and
seed: above 1 the reference is better. Cells in which one of the two found no valid design have no ratio.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..errors import SearchError, unknown
from ..files import csv_text, four_digits, markdown_table, times, write_texts
from ..pieces.defaults import SEARCHER
from .cells import COMPARISON_FILES, Outcome

ALL = "all"
"""In place of a hardware: the mean over the cells of all of them."""


@attrs.frozen
class CellRow:
    """What each searcher found for one workload on one hardware with one seed."""

    workload: str
    hardware: str
    seed: int
    edp: Mapping[str, float | None]
    """By searcher; None where no valid design was found, or the cell failed."""


@attrs.frozen
class MeanRow:
    """The mean ratios of one searcher to the reference on one hardware."""

    hardware: str
    searcher: str
    arithmetic: float | None
    geometric: float | None
    cells: int
    """Cells with a ratio."""
    of: int
    better: int
    """Cells in which the reference is better."""
    worse: int


@attrs.frozen
class Comparison:
    """The cells of a study by searcher."""

    reference: str
    searchers: tuple[str, ...]
    """All of them, in the order of the study."""
    cells: tuple[CellRow, ...]

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(searcher for searcher in self.searchers if searcher != self.reference)

    def ratio(self, cell: CellRow, searcher: str) -> float | None:
        edp, reference = cell.edp.get(searcher), cell.edp.get(self.reference)
        return edp / reference if edp is not None and reference else None

    @property
    def means(self) -> tuple[MeanRow, ...]:
        """Per hardware, then over all of them if there are several."""
        hardware = list(dict.fromkeys(cell.hardware for cell in self.cells))
        groups = [*hardware, ALL] if len(hardware) > 1 else hardware
        return tuple(self._mean(group, searcher) for group in groups for searcher in self.others)

    def _mean(self, hardware: str, searcher: str) -> MeanRow:
        cells = [cell for cell in self.cells if hardware in (cell.hardware, ALL)]
        ratios = [ratio for cell in cells if (ratio := self.ratio(cell, searcher)) is not None]
        arithmetic = math.fsum(ratios) / len(ratios) if ratios else None
        geometric = statistics.geometric_mean(ratios) if ratios else None
        better, worse = sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
        return MeanRow(hardware, searcher, arithmetic, geometric, len(ratios), len(cells), better, worse)

    # -- as text

    def cells_csv(self) -> str:
        rows = [
            {"workload": cell.workload, "hardware": cell.hardware, "seed": cell.seed}
            | {f"edp:{name}": cell.edp.get(name) for name in self.searchers}
            | {f"ratio:{name}": self.ratio(cell, name) for name in self.others}
            for cell in self.cells
        ]
        return csv_text(rows)

    def markdown(self) -> str:
        """The means, then the cells."""
        return (
            f"EDP in pJ * cycles. A ratio is the EDP of a searcher divided by that of {self.reference}: "
            f"above 1, {self.reference} is better.\n\n{self.means_markdown()}\n{self.cells_markdown()}"
        )

    def means_markdown(self) -> str:
        head = ["hardware", "searcher", "mean ratio", "geometric mean", "cells", f"{self.reference} better", "worse"]
        rows = []
        for row in self.means:
            counts = f"{row.cells} of {row.of}", str(row.better), str(row.worse)
            rows.append([row.hardware, row.searcher, times(row.arithmetic), times(row.geometric), *counts])
        return markdown_table([head, *rows], "<<>")

    def cells_markdown(self) -> str:
        head = ["workload", "hardware", "seed", *self.searchers, *(f"ratio {name}" for name in self.others)]
        rows = [
            [cell.workload, cell.hardware, str(cell.seed)]
            + [four_digits(cell.edp.get(name)) for name in self.searchers]
            + [times(self.ratio(cell, name)) for name in self.others]
            for cell in self.cells
        ]
        return markdown_table([head, *rows], "<<>")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        cells = [
            {**attrs.asdict(cell), "ratio": {name: self.ratio(cell, name) for name in self.others}}
            for cell in self.cells
        ]
        return {"reference": self.reference, "means": [attrs.asdict(row) for row in self.means], "cells": cells}

    def write(self, folder: Path) -> list[Path]:
        """Writes cells and means as CSV with full precision, and both as markdown; each file whole or not at all."""
        texts = (self.cells_csv(), csv_text([attrs.asdict(row) for row in self.means]), self.markdown())
        return write_texts({folder / name: text for name, text in zip(COMPARISON_FILES, texts, strict=True)})


def compare(outcomes: Iterable[Outcome], reference: str = "") -> Comparison:
    """The comparison of a study's outcomes; the reference is the default searcher unless named, or else the first one."""
    outcomes = list(outcomes)
    searchers = tuple(dict.fromkeys(outcome.cell.searcher for outcome in outcomes))
    reference = checked_reference(searchers, reference)
    found: dict[tuple[str, str, int], dict[str, float | None]] = {}
    for outcome in outcomes:
        cell = outcome.cell
        found.setdefault((cell.workload, cell.hardware, cell.seed), {})[cell.searcher] = outcome.numbers.get("edp")
    return Comparison(reference, searchers, tuple(CellRow(*key, edp) for key, edp in found.items()))


def checked_reference(searchers: Sequence[str], reference: str = "") -> str:
    """The reference among the searchers of a study."""
    if len(searchers) < 2:
        raise SearchError(f"a comparison needs two searchers or more, the study has {len(searchers)}")
    if reference and reference not in searchers:
        raise SearchError(f"--reference: {unknown('searcher', reference, searchers)}")
    return reference or (SEARCHER if SEARCHER in searchers else searchers[0])
