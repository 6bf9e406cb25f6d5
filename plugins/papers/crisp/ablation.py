"""Class awareness: the same pruning for a few classes, by different scores of words."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from sparsemap.study.confidence import quantile

from ..pruned import points, seed_rows
from ..rows import Rows, counted
from ..runs import Runner
from .fig_3 import CLASSES, NETWORK

AWARE = "saliency"
CRITERIA = {
    AWARE: "saliency of the user's classes",
    "saliency-all": "saliency of all classes",
    "l1": "magnitude",
    "random": "chance",
}
USER = "3,8,9"
SEEDS = 10
POINT = {"method": "crisp", "pattern": "1:4", "sparsity": 0.95, "classes": USER, "network": NETWORK, "seeds": SEEDS}


def difference(values: Sequence[float], others: Sequence[float]) -> str:
    """Mean of paired differences in points, with an interval of 95 % (Student's t) for several seeds."""
    apart = [100 * (a - b) for a, b in zip(values, others, strict=True)]
    mean, count = statistics.fmean(apart), len(apart)
    if count < 2:
        return f"{mean:+.1f}"
    wide = quantile(count - 1) * statistics.stdev(apart) / count**0.5
    return f"{mean:+.1f} ({mean - wide:+.1f} to {mean + wide:+.1f})"


def page(runner: Runner, name: str) -> dict[str, Any]:
    found = points(runner, name, [{**POINT, "criterion": one} for one in CRITERIA])
    cells = Rows()
    for (criterion, title), point in zip(CRITERIA.items(), found, strict=True):
        own = point.numbers(criterion=criterion, title=title)
        aware = cells.criterion[AWARE].accuracy or own.accuracy
        pairs = list(zip(own.accuracy, aware, strict=True))
        better = f"{sum(a > b for a, b in pairs)} of {counted(len(pairs), 'seed')}"
        about = {"apart": difference(own.accuracy, aware), "better": better}
        about = dict.fromkeys(about, "") if criterion == AWARE else about
        cells += [{**row, **about, "percent": 100 * row["accuracy"]} for row in own]
    width = max(same.percent.highest - same.percent.lowest for same in cells.by("criterion").values())
    fields = {"classes": CLASSES[USER], "network": NETWORK, "seeds": counted(cells.seed.distinct, "seed")}
    return {"rows": seed_rows(found), "cells": cells, "width": width, **fields}
