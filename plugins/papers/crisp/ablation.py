"""Class awareness: the same pruning for a few classes, by different scores of words."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sparsemap.markdown import markdown_table
from sparsemap.plots import Panel, Series, figure
from sparsemap.study.confidence import quantile

from ..pruned import points, seed_rows, spread
from ..report import Report, counted, page
from ..runs import Runner
from .fig_3 import CLASSES, NETWORK, percents

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


def report(runner: Runner, name: str) -> Report:
    found = dict(zip(CRITERIA, points(runner, name, [{**POINT, "criterion": one} for one in CRITERIA]), strict=True))
    values = {one: found[one].values("accuracy") for one in CRITERIA}
    seeds = counted(len(values[AWARE]), "seed")
    table = [["words scored by", "achieved sparsity", "accuracy", "points over the user's classes'", "better"]]
    for one, title in CRITERIA.items():
        better = sum(a > b for a, b in zip(values[one], values[AWARE], strict=True))
        apart = ["", ""] if one == AWARE else [difference(values[one], values[AWARE]), f"{better} of {seeds}"]
        table.append([title, percents(found[one].mean("achieved")), spread(found[one], "accuracy", percents), *apart])
    width = max(100 * (max(own) - min(own)) for own in values.values())
    about = {"classes": CLASSES[USER], "network": NETWORK, "width": width, "seeds": seeds}
    text = page(__file__, name, table=markdown_table(table, "<>"), **about)
    headline = ", ".join(f"{title} {percents(found[one].mean('accuracy'))} %" for one, title in CRITERIA.items())
    lines = [Series(CRITERIA[x], range(len(own)), [100 * y for y in own], "") for x, own in values.items()]
    panel = Panel("seed", "accuracy on test images (%)", lines, limits={"xticks": list(range(len(values[AWARE])))})
    return Report(name, headline, text, seed_rows(found.values()), lambda: figure([panel], (5.6, 3.6), across=2))
