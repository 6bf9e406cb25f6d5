"""Fig. 3, 5 and 6: the best mapping after numbers of legal ones, by mapper or by GAMMA's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap.csv_files import read_csv
from sparsemap.files import grouped, times

from ..rows import UJ, Rows, arithmetic_mean, geometric_mean, ratio
from ..runs import Runner, StudyRun, by, curve
from . import surrogates

SearchCells = Mapping[tuple[str, str], Mapping[str, Sequence[StudyRun]]]
"""By workload and hardware, and searcher: a search per seed."""
TIMED = "mse-fig-3"
"""The page with seconds and surrogates."""


def claims_of(page: str) -> list[dict[str, str]]:
    """EDP of searcher `one` over that of `two` after a `share` of the mappings, on a hardware if named, and in the paper."""
    rows = read_csv(Path(__file__).with_name("mappers-claims.csv"))
    return grouped(rows, lambda row: row["page"]).get(page, [])


def page(runner: Runner, name: str) -> dict[str, Any]:
    study, timed = runner.study(name), name == TIMED
    more, models = surrogates.cells(runner, name) if timed else ([], [])
    runs = runner.run(name, [*runner.cells(name), *more])
    cells = {place: by(found, "searcher") for place, found in by(runs, "workload", "hardware").items()}
    claims, numbers, curves, late = [], Rows(), Rows(), Rows()
    for claim in claims_of(name):
        one, two, hardware = claim["one"], claim["two"], claim["hardware"]
        at = round(float(claim["share"]) * study.budget)
        theirs = [found for (_, place), found in cells.items() if hardware in ("", place)]
        ratios = [ratio(_edp(found[one], at), _edp(found[two], at)) for found in theirs]
        where = f"{one} over {two}" + (f", {hardware}" if hardware else "")
        shown = {"where": where, "at": at, "paper": claim["paper"], "mean": geometric_mean(ratios)}
        claims += [shown | {"by cell": ", ".join(map(times, ratios))}] if ratios else []
    for place, found in cells.items():
        end = min(float(run.seconds[-1]) for same in found.values() for run in same)
        for searcher, same in found.items():
            edps, seconds = [run.edp for run in same], arithmetic_mean(float(run.seconds[-1]) for run in same)
            each = 1e6 * seconds / arithmetic_mean(run.result["proposed"] for run in same)
            in_time = geometric_mean(_best_in(run, end) for run in same)
            about: dict[str, Any] = {"cell": ", ".join(place), "title": " on ".join(place), "searcher": searcher}
            legal = arithmetic_mean(run.valid_fraction for run in same)
            cost = {"seconds": seconds, "each": each, "in time": in_time, "legal": legal}
            numbers.append(about | cost | {"edp": _edp(same, study.budget), "spread": max(edps) / min(edps)})
            curves += [about | point for point in curve(searcher, same, unit=UJ)]
            history = zip(same[0].seconds, same[0].history["best_score"] / UJ, strict=True)
            late += [about | {"second": second, "edp": edp} for second, edp in history] if timed else []
    for row in numbers:
        there = numbers.where(cell=row["cell"])
        row |= {"over": row["edp"] / there.edp.lowest, "time over": row["in time"] / there["in time"].lowest}
    return {
        "rows": [run.columns("workload", "hardware", "searcher", "seed", "edp", "valid_fraction") for run in runs],
        "study": study, "samples": 2 * study.budget, "layers": surrogates.LAYERS, "claims": claims, "numbers": numbers,
        "ranks": ", ".join(f"{rank:.2f}" for model in models for rank in model.ranks.values()),
        "curves": curves, "late": late,
    }  # fmt: skip


def _edp(runs: Sequence[StudyRun], mappings: int) -> float:
    """The best after a number of legal mappings, geometric mean over seeds."""
    return geometric_mean(float(run.best_at(np.array([mappings]))[0]) for run in runs)


def _best_in(run: StudyRun, seconds: float) -> float:
    """The best score of the batches up to a time, at least of the first batch."""
    at = int(np.searchsorted(run.seconds, seconds, side="right"))
    return float(run.history["best_score"][max(at - 1, 0)])
