"""Fig. 17: EDPs of search methods on the convolutions of a pruned VGG16, and shares of valid designs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import numpy as np

from sparsemap.files import percent, times
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, by, edps_of, effort, number, page
from ..runs import Runner, arithmetic_mean, finite, geometric_mean, ratio

LABELS = {
    "sparsemap": "SparseMap (default)", "sparsemap-paper": "SparseMap (paper)", "pso": "PSO", "mcts": "MCTS",
    "tbpsa": "TBPSA", "ppo": "PPO", "dqn": "DQN",
}  # fmt: skip
REFERENCE = "sparsemap-paper"
"""The paper's method; the default search stands beside it."""


def report(runner: Runner, name: str) -> Report:
    runs = runner.run(name)
    edps, searchers = edps_of(runs, "workload"), by(runs, "searcher")
    valid = {searcher: arithmetic_mean(run.valid_fraction for run in mine) for searcher, mine in searchers.items()}
    columns = ("workload", "searcher", "seed", "edp", "valid_fraction")
    rows = [run.columns(*columns) | {"seconds": float(run.result["seconds"])} for run in runs]
    table = []
    for searcher, mine in searchers.items():
        ratios = finite(ratio(found[searcher], found[REFERENCE]) for found in edps.values())
        line = [LABELS[searcher], times(geometric_mean(ratios)), times(max(ratios, default=math.nan))]
        seconds = arithmetic_mean(run.result["seconds"] for run in mine)
        table.append([*line, f"{len(ratios)} of {len(edps)}", percent(valid[searcher], 1), f"{seconds:.1f}"])
    head = ["method", "EDP of SparseMap (paper), geometric mean", "largest", "layers solved", "valid", "s per search"]
    headline = "\n".join(f"{line[0]}: EDP {line[1]} of {LABELS[REFERENCE]}'s, {line[4]} valid" for line in table)
    layers = [["layer", *(LABELS[searcher] for searcher in searchers)]]
    layers += [[workload, *(number(found[one]) for one in searchers)] for workload, found in edps.items()]
    about = {"count": len(edps), "runs": runs, "effort": effort(runs)}
    text = page(__file__, name, table=[head, *table], layers=layers, **about)
    return Report(name, headline, text, rows, lambda: draw(edps, valid, runs[0].hardware))


def draw(edps: Mapping[str, Mapping[str, float]], valid: Mapping[str, float], hardware: str) -> Figure:
    points = []
    for at, searcher in enumerate(valid):
        places = np.arange(len(edps)) + 0.125 * (at - (len(valid) - 1) / 2)  # side by side, so that none hides another
        ratios = [found[searcher] / min(found.values()) for found in edps.values()]
        over = [value if math.isfinite(value) else math.nan for value in ratios]
        points.append(Series(LABELS[searcher], places, over, ""))
    layers = Panel(y="EDP over the best of the layer (x)", series=points, log="y", plain={"y": (1, 2, 5)}, turned=45)
    layers = attrs.evolve(layers, title=f"(a) best design found on {hardware}", names=list(edps))
    bars, names = {"valid": [100 * share for share in valid.values()]}, [LABELS[searcher] for searcher in valid]
    shares = Panel("valid designs (%)", bars=bars, names=names, flat=True, ends="%.1f", limits={"xlim": (0, 115)})
    shares = attrs.evolve(shares, title="(b) share of valid designs")
    return figure([layers, shares], (10, 3.9), across=7, gridspec_kw={"width_ratios": [3, 1.25]})
