"""What class awareness is worth: the same pruning for a few classes, by other scores of words."""

from __future__ import annotations

from typing import Any

from sparsemap.files import markdown_table
from sparsemap.plots import Panel, Series, figure

from ..pruned import points, spread
from ..report import Report, counted, page
from ..runs import Runner
from .fig_3 import CLASSES, NETWORK, percents

CRITERIA = {
    "saliency": "saliency of the user's classes",
    "saliency-all": "saliency of all classes",
    "l1": "magnitude",
    "random": "chance",
}
USER = "3,8,9"
POINT = {"method": "crisp", "pattern": "1:4", "sparsity": 0.95, "classes": USER, "network": NETWORK}


def report(runner: Runner, name: str) -> Report:
    found = dict(zip(CRITERIA, points(runner, name, [{**POINT, "criterion": one} for one in CRITERIA]), strict=True))
    aware = found["saliency"].values("accuracy")
    lines = [["words scored by", "achieved sparsity", "accuracy", "better than the user's classes'"]]
    for one, title in CRITERIA.items():
        own = found[one].values("accuracy")
        better = sum(a > b for a, b in zip(own, aware, strict=True))
        told = "" if one == "saliency" else f"{better} of {counted(len(own), 'seed')}"
        lines.append([title, percents(found[one].mean("achieved")), spread(found[one], "accuracy", percents), told])
    means = {one: 100 * found[one].mean("accuracy") for one in CRITERIA}
    behind = [CRITERIA[one] for one in ("saliency-all", "l1") if means[one] >= means["saliency"]]
    width = max(100 * (max(point.values("accuracy")) - min(point.values("accuracy"))) for point in found.values())
    shown = f"{' and '.join(behind)} did no worse on the mean" if behind else "the others did worse on the mean"
    text = page(
        __file__, name, table=markdown_table(lines, "<>"), classes=CLASSES[USER], shown=shown, width=width,
        seeds=counted(len(aware), "seed"), chance=means["random"], best=max(means.values()), network=NETWORK,
    )  # fmt: skip
    rows: list[dict[str, Any]] = [dict(row) for point in found.values() for row in point.rows]
    headline = ", ".join(f"{title} {means[one]:.1f} %" for one, title in CRITERIA.items())

    def draw() -> Any:
        seeds = range(len(aware))
        every = [Series(CRITERIA[one], seeds, [100 * x for x in found[one].values("accuracy")], "") for one in CRITERIA]
        limits = {"xticks": list(seeds)}
        return figure([Panel("seed", "accuracy on test images (%)", every, limits=limits)], (5.6, 3.6), across=2)

    return Report(name, headline, text, rows, draw)
