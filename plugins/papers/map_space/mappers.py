"""Fig. 3, 5 and 6: how good the best mapping is after so many legal ones, by mapper or by GAMMA's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparsemap.files import markdown_table, percent, times
from sparsemap.plots import Figure

from ..figure import Panel, Series, figure
from ..report import UJ, Report, counted, number, page
from ..runs import Runner, StudyRun, arithmetic_mean, by, geometric_mean, ratio

SearchCells = Mapping[str, Mapping[str, Sequence[StudyRun]]]
"""By workload and hardware, and searcher: a search per seed."""

TITLES = {
    "mse-fig-3": "Fig. 3: mappers of each family",
    "mse-fig-5": "Fig. 5: which of GAMMA's mutations matters",
    "mse-fig-6": "Fig. 6: GAMMA's operators beside a standard genetic algorithm",
}
CLAIMS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "mse-fig-3": (
        ("random-pruned", "gamma", "above 1x: GAMMA is best at the end, random search slowest"),
        ("gamma", "sparsemap", "not in the paper"),
        ("standard-ga", "gamma", "10x (Fig. 6)"),
    ),
    "mse-fig-5": (
        ("gamma-order", "gamma-tile", "far above 1x: tiles matter most"),
        ("gamma-parallelism", "gamma-tile", "far above 1x: tiles matter most"),
    ),
    "mse-fig-6": (
        ("standard-ga", "gamma", "about 10x"),
        ("gamma-no-crossover", "gamma", "above 1x: both parts are needed"),
        ("gamma-crossover", "gamma", "above 1x: both parts are needed"),
    ),
}
"""EDP of one searcher over that of another, and what the paper says of it."""
COMMENTS = {
    "mse-fig-3": """The surrogate (`mind-mappings`) is left out. All proposals of GAMMA are legal by its own repair; those of
the others are rejected where they are not, at no cost.
""",
    "mse-fig-5": """All three variants start from the same kind of population: half of it random mappings that fit, half one
mapping with all factors outermost.
""",
    "mse-fig-6": """The standard genetic algorithm works on the genes of this project, prime factors and Cantor codes: any of
its designs multiplies up to the sizes, and neighbouring genes are neighbouring mappings. The paper's had no such encoding,
and its factor of 10 cannot be expected here.
""",
}


def report(runner: Runner, name: str) -> Report:
    study, runs = runner.study(name), runner.run(name)
    cells = {
        f"{workload}, {hardware}": by(found, lambda run: run.searcher)
        for (workload, hardware), found in by(runs, lambda run: (run.workload, run.hardware)).items()
    }
    edps = {
        cell: {searcher: geometric_mean(run.edp for run in same) for searcher, same in found.items()}
        for cell, found in cells.items()
    }
    claims = []
    for one, two, paper in CLAIMS[name]:
        ratios = [ratio(found[one], found[two]) for found in edps.values()]
        claims.append([f"{one} over {two}", paper, times(geometric_mean(ratios)), ", ".join(map(times, ratios))])
    rows = []
    for cell, found in cells.items():
        for searcher, same in found.items():
            edp, legal = edps[cell][searcher], arithmetic_mean(run.valid_fraction for run in same)
            rows.append([cell, searcher, number(edp / UJ), times(edp / min(edps[cell].values())), percent(legal)])
    text = [page(
        __file__, name, template="mse-mappers", title=TITLES[name], study=study,
        seeds=counted(len({run.seed for run in runs}), "seed"), comment=COMMENTS[name],
        claims=[["EDP of", "paper", "here, geometric mean", "by cell"], *claims],
        numbers=[["cell", "searcher", "EDP", "over the best", "legal proposals"], *rows],
    )]  # fmt: skip
    if name in TIMED:
        text += [TIMED[name], markdown_table([TIMES, *_times(cells)], "<<>")]
    headline = "\n".join(f"{row[0]}: {row[2]} (paper: {row[1]})" for row in claims)
    table = [
        {"workload": run.workload, "hardware": run.hardware, "searcher": run.searcher, "seed": run.seed}
        | {"edp": run.edp, "valid_fraction": run.valid_fraction}
        for run in runs
    ]
    return Report(name, headline, "".join(text), table, lambda: draw(cells, name in TIMED))


TIMED = {
    "mse-fig-3": """
## By time

The lower row of the figure, and of the paper's: the same searches over their processor time. It depends on the machine,
unlike all else here. *In equal time* is the EDP when the fastest mapper of the cell has spent its mappings, over the best of
the cell; mappers that reject what is not legal pay for it here.

"""
}
"""By figure, if time is a second axis, what is said of it."""
TIMES = ["cell", "searcher", "seconds", "ms per 1,000 proposals", "in equal time"]


def _times(cells: SearchCells) -> list[list[str]]:
    rows = []
    for cell, searchers in cells.items():
        end = min(float(run.seconds[-1]) for same in searchers.values() for run in same)
        edps = {searcher: geometric_mean(_best_in(run, end) for run in same) for searcher, same in searchers.items()}
        for searcher, same in searchers.items():
            seconds = arithmetic_mean(float(run.seconds[-1]) for run in same)
            each = 1e6 * seconds / arithmetic_mean(run.result["proposed"] for run in same)
            shown = [f"{seconds:.2f}", f"{each:.0f}", times(edps[searcher] / min(edps.values()))]
            rows.append([cell, searcher, *shown])
    return rows


def _best_in(run: StudyRun, seconds: float) -> float:
    """The best score of the batches that had ended by then; of the first one, if none had."""
    at = int(np.searchsorted(run.seconds, seconds, side="right"))
    return float(run.history["best_score"][max(at - 1, 0)])


def draw(cells: SearchCells, timed: bool) -> Figure:
    steps, designs, times = {"drawstyle": "steps-post"}, [], []
    for cell, searchers in cells.items():
        lines, late = [], []
        for searcher, same in searchers.items():
            end = max(int(run.history["evaluations"][-1]) for run in same)
            at = np.unique(np.geomspace(1, end, 200).astype(np.int64))
            curves = np.array([run.best_at(at) for run in same]) / UJ
            some = np.isfinite(curves).all(axis=0)
            line = np.exp(np.log(curves[:, some]).mean(axis=0))
            lines.append(Series(searcher, at[some], line, marked=False, how=steps))
            if timed:
                late.append(
                    Series(searcher, same[0].seconds, same[0].history["best_score"] / UJ, marked=False, how=steps)
                )
        y = "best EDP (cycles * uJ)"
        designs.append(Panel("legal mappings", y, lines, title=cell.replace(", ", " on "), log="xy"))
        times += [Panel("seconds", y, late, log="xy", plain={"x": (1, 3)})] if timed else []
    return figure([*designs, *times], (3.2 * len(cells), 3.4 + 2.6 * timed), len(cells))
