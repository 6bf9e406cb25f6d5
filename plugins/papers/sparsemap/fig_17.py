"""Fig. 17: EDPs of search methods on the convolutions of a pruned VGG16, and shares of valid designs."""

from __future__ import annotations

from typing import Any

from ..rows import Rows, ratio
from ..runs import Runner, edps_of, effort

LABELS = {
    "sparsemap": "SparseMap (default)", "sparsemap-paper": "SparseMap (paper)", "pso": "PSO", "mcts": "MCTS",
    "tbpsa": "TBPSA", "ppo": "PPO", "dqn": "DQN",
}  # fmt: skip
REFERENCE = "sparsemap-paper"
"""The paper's method; the default search stands beside it."""


def page(runner: Runner, name: str) -> dict[str, Any]:
    runs = runner.run(name)
    edps, columns = edps_of(runs, "workload"), ("workload", "searcher", "seed", "edp", "valid_fraction")
    rows = Rows(run.columns(*columns) | {"seconds": float(run.result["seconds"])} for run in runs)
    cells = []
    for searcher, own in rows.by("searcher").items():
        valid, seconds = own.valid_fraction.mean, own.seconds.mean
        about = {"label": LABELS[searcher], "valid": valid, "percent": 100 * valid, "seconds": seconds}
        for workload, found in edps.items():
            ratios = {
                "ratio": ratio(found[searcher], found[REFERENCE]),
                "over best": found[searcher] / min(found.values()),
            }
            cells.append(about | ratios | {"workload": workload, "edp": found[searcher]})
    fields = {"count": len(edps), "hardware": runs[0].hardware, "effort": effort(runs), "reference": LABELS[REFERENCE]}
    return {"rows": rows, "cells": cells, **fields}
