"""Fig. 17: what search methods find on the convolutions of a pruned VGG16, and how many of their designs are valid."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sparsemap.files import percent, times
from sparsemap.plots import COLOURS, MARKERS, Figure, named_ticks, plain_log, subplots

from ..report import Report, effort, number, page
from ..runs import Runner, arithmetic_mean, by, finite, geometric_mean, ratio, typical_edp

LABELS = {
    "sparsemap": "SparseMap (default)",
    "sparsemap-paper": "SparseMap (paper)",
    "pso": "PSO",
    "mcts": "MCTS",
    "tbpsa": "TBPSA",
    "ppo": "PPO",
    "dqn": "DQN",
}
REFERENCE = "sparsemap-paper"
"""The paper's own method; the default search is shown beside it."""


def report(runner: Runner, name: str) -> Report:
    runs = runner.run(name)
    edps = {
        workload: {searcher: typical_edp(mine) for searcher, mine in by(group, lambda run: run.searcher).items()}
        for workload, group in by(runs, lambda run: run.workload).items()
    }
    searchers = by(runs, lambda run: run.searcher)
    seconds = {searcher: arithmetic_mean(run.result["seconds"] for run in mine) for searcher, mine in searchers.items()}
    valid = {searcher: arithmetic_mean(run.valid_fraction for run in mine) for searcher, mine in searchers.items()}
    ratios = {
        searcher: finite(ratio(found[searcher], found[REFERENCE]) for found in edps.values()) for searcher in searchers
    }
    rows = [
        {"workload": run.workload, "searcher": run.searcher, "seed": run.seed, "edp": run.edp}
        | {"valid_fraction": run.valid_fraction, "seconds": float(run.result["seconds"])}
        for run in runs
    ]
    lines = []
    for searcher, found in ratios.items():
        line = [LABELS[searcher], times(geometric_mean(found)), times(max(found, default=math.nan))]
        lines.append([*line, f"{len(found)} of {len(edps)}", percent(valid[searcher], 1), f"{seconds[searcher]:.1f}"])
    head = ["method", "EDP of SparseMap (paper), geometric mean", "largest", "layers solved", "valid", "s per search"]
    headline = "\n".join(f"{line[0]}: EDP {line[1]} of {LABELS[REFERENCE]}'s, {line[4]} valid" for line in lines)
    text = page(
        __file__,
        name,
        count=len(edps),
        runs=runs,
        effort=effort(runs),
        table=[head, *lines],
        layers=[
            ["layer", *(LABELS[searcher] for searcher in searchers)],
            *([workload, *(number(found[one]) for one in searchers)] for workload, found in edps.items()),
        ],
    )
    return Report(name, headline, text, rows, lambda: draw(edps, valid, runs[0].hardware))


def draw(edps: Mapping[str, Mapping[str, float]], valid: Mapping[str, float], hardware: str) -> Figure:
    figure, (left, right) = subplots(1, 2, figsize=(10, 3.8), gridspec_kw={"width_ratios": [3, 1.25]})
    for at, (searcher, colour, marker) in enumerate(zip(valid, COLOURS, MARKERS, strict=False)):
        over = [found[searcher] / min(found.values()) for found in edps.values()]
        shift = 0.125 * (at - (len(valid) - 1) / 2)  # side by side, so that none hides another
        places = [place + shift for place in range(len(edps))]
        shown = [value if math.isfinite(value) else math.nan for value in over]
        left.plot(places, shown, marker, color=colour, label=LABELS[searcher])
    left.set(yscale="log", ylabel="EDP over the best of the layer (x)", title=f"(a) best design found on {hardware}")
    named_ticks(left.xaxis, list(edps), rotation=45, ha="right")
    plain_log(left.yaxis)
    names = [LABELS[searcher] for searcher in valid]
    shares = [100 * share for share in valid.values()]
    bars = right.barh(range(len(names)), shares, color=COLOURS[: len(names)])
    right.bar_label(bars, fmt="%.1f", padding=3, fontsize=8.5)
    named_ticks(right.yaxis, names)
    right.invert_yaxis()
    right.set(xlabel="valid designs (%)", xlim=(0, 115), title="(b) share of valid designs")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=7)
    return figure
