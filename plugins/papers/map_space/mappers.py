"""Fig. 3, 5 and 6: the best mapping after numbers of legal ones, by mapper or by GAMMA's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sparsemap.csv_files import read_csv
from sparsemap.files import percent, times
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import UJ, Report, by, curve, number, page, series
from ..runs import Runner, StudyRun, arithmetic_mean, geometric_mean, ratio
from . import surrogates

SearchCells = Mapping[tuple[str, str], Mapping[str, Sequence[StudyRun]]]
"""By workload and hardware, and searcher: a search per seed."""
TIMED = "mse-fig-3"
"""The page with seconds and surrogates."""


def claims_of(page: str) -> list[dict[str, str]]:
    """EDP of searcher `one` over that of `two` after a `share` of the mappings, on a hardware if named, and in the paper."""
    return by(read_csv(Path(__file__).with_name("mappers-claims.csv")), "page").get(page, [])


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    more, models = surrogates.cells(runner, name) if name == TIMED else ([], [])
    runs = runner.run(name, [*runner.cells(name), *more])
    cells = {place: by(found, "searcher") for place, found in by(runs, "workload", "hardware").items()}
    claims, rows = [["EDP of", "mappings", "paper", "here, geometric mean", "by cell"]], []
    for claim in claims_of(name):
        one, two, hardware = claim["one"], claim["two"], claim["hardware"]
        at = round(float(claim["share"]) * study.budget)
        theirs = [found for (_, place), found in cells.items() if hardware in ("", place)]
        ratios = [ratio(_edp(found[one], at), _edp(found[two], at)) for found in theirs]
        if ratios:
            where = f"{one} over {two}" + (f", {hardware}" if hardware else "")
            shown = times(geometric_mean(ratios)), ", ".join(map(times, ratios))
            claims.append([where, f"{at:,}", claim["paper"], *shown])
    for place, found in cells.items():
        edps = {searcher: _edp(same, study.budget) for searcher, same in found.items()}
        for searcher, same in found.items():
            legal = arithmetic_mean(run.valid_fraction for run in same)
            spread = max(run.edp for run in same) / min(run.edp for run in same)
            over = times(edps[searcher] / min(edps.values()))
            rows.append([", ".join(place), searcher, number(edps[searcher] / UJ), over, times(spread), percent(legal)])
    text = page(
        __file__, name, study, samples=2 * study.budget, layers=surrogates.LAYERS, times=_times(cells), claims=claims,
        ranks=", ".join(f"{rank:.2f}" for model in models for rank in model.ranks.values()),
        numbers=[["cell", "searcher", "EDP", "over the best", "worst seed over best", "legal proposals"], *rows],
    )  # fmt: skip
    headline = "\n".join(f"{row[0]} after {row[1]} mappings: {row[3]} (paper: {row[2]})" for row in claims[1:])
    table = [run.columns("workload", "hardware", "searcher", "seed", "edp", "valid_fraction") for run in runs]
    return Report(name, headline, text, table, lambda: draw(cells, name == TIMED))


def _edp(runs: Sequence[StudyRun], mappings: int) -> float:
    """The best after a number of legal mappings, geometric mean over seeds."""
    return geometric_mean(float(run.best_at(np.array([mappings]))[0]) for run in runs)


def _times(cells: SearchCells) -> list[list[str]]:
    rows = [["cell", "searcher", "seconds", "ms per 1,000 proposals", "in equal time"]]
    for place, searchers in cells.items():
        end = min(float(run.seconds[-1]) for same in searchers.values() for run in same)
        edps = {searcher: geometric_mean(_best_in(run, end) for run in same) for searcher, same in searchers.items()}
        for searcher, same in searchers.items():
            seconds = arithmetic_mean(float(run.seconds[-1]) for run in same)
            each = 1e6 * seconds / arithmetic_mean(run.result["proposed"] for run in same)
            shown = [f"{seconds:.2f}", f"{each:.0f}", times(edps[searcher] / min(edps.values()))]
            rows.append([", ".join(place), searcher, *shown])
    return rows


def _best_in(run: StudyRun, seconds: float) -> float:
    """The best score of the batches up to a time, at least of the first batch."""
    at = int(np.searchsorted(run.seconds, seconds, side="right"))
    return float(run.history["best_score"][max(at - 1, 0)])


def draw(cells: SearchCells, timed: bool) -> Figure:
    y, steps, designs, late = "best EDP (cycles * uJ)", {"drawstyle": "steps-post"}, [], []
    for place, searchers in cells.items():
        lines = series([curve(searcher, same, unit=UJ) for searcher, same in searchers.items()])
        designs.append(Panel("legal mappings", y, lines, title=" on ".join(place), log="xy"))
        lines = [
            Series(searcher, one.seconds, one.history["best_score"] / UJ, marked=False, how=steps)
            for searcher, (one, *_) in searchers.items()
        ]
        late += [Panel("seconds", y, lines, log="xy", plain={"x": (1, 3)})] if timed else []
    return figure([*designs, *late], (3.2 * len(cells), 3.4 + 2.6 * timed), len(cells))
