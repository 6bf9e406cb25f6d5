"""What class awareness is worth: the same pruning for a few classes, by other scores of words."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import attrs

from sparsemap.markdown import markdown_table
from sparsemap.plots import Panel, Series, figure
from sparsemap.study.confidence import quantile

from ..pruned import points, spread
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


@attrs.frozen
class Difference:
    """Mean of paired differences in points, and its interval of 95 % (Student's t); that of one seed is unknown."""

    mean: float
    wide: float | None

    @classmethod
    def of(cls, values: Sequence[float], others: Sequence[float]) -> Difference:
        points = [100 * (a - b) for a, b in zip(values, others, strict=True)]
        known = len(points) > 1
        wide = quantile(len(points) - 1) * statistics.stdev(points) / len(points) ** 0.5 if known else None
        return cls(statistics.fmean(points), wide)

    @property
    def sign(self) -> int:
        """0: the seeds differ by as much."""
        apart = self.wide is not None and abs(self.mean) > self.wide
        return (1 if self.mean > 0 else -1) if apart else 0

    def __str__(self) -> str:
        ends = "" if self.wide is None else f" ({self.mean - self.wide:+.1f} to {self.mean + self.wide:+.1f})"
        return f"{self.mean:+.1f}{ends}"


def report(runner: Runner, name: str) -> Report:
    found = dict(zip(CRITERIA, points(runner, name, [{**POINT, "criterion": one} for one in CRITERIA]), strict=True))
    values = {one: found[one].values("accuracy") for one in CRITERIA}
    over = {one: Difference.of(own, values[AWARE]) for one, own in values.items() if one != AWARE}
    lines = [["words scored by", "achieved sparsity", "accuracy", "points over the user's classes'", "better"]]
    for one, title in CRITERIA.items():
        better = sum(a > b for a, b in zip(values[one], values[AWARE], strict=True))
        told = ["", ""] if one == AWARE else [str(over[one]), f"{better} of {counted(len(values[one]), 'seed')}"]
        cells = percents(found[one].mean("achieved")), spread(found[one], "accuracy", percents)
        lines.append([title, *cells, *told])
    width = max(100 * (max(own) - min(own)) for own in values.values())
    text = page(
        __file__, name, table=markdown_table(lines, "<>"), classes=CLASSES[USER], network=NETWORK, width=width,
        seeds=counted(len(values[AWARE]), "seed"), scored=scored(values), aware=aware(over),
    )  # fmt: skip
    rows: list[dict[str, Any]] = [dict(row) for point in found.values() for row in point.rows]
    headline = ", ".join(f"{title} {percents(found[one].mean('accuracy'))} %" for one, title in CRITERIA.items())

    def draw() -> Any:
        seeds = range(len(values[AWARE]))
        every = [Series(CRITERIA[one], seeds, [100 * x for x in values[one]], "") for one in CRITERIA]
        limits = {"xticks": list(seeds)}
        return figure([Panel("seed", "accuracy on test images (%)", every, limits=limits)], (5.6, 3.6), across=2)

    return Report(name, headline, text, rows, draw)


def scored(values: dict[str, list[float]]) -> str:
    """Whether scores are better than chance, as far as the seeds tell."""
    chance, others = max(values["random"]), {one: min(own) for one, own in values.items() if one != "random"}
    below = [CRITERIA[one] for one, least in others.items() if least <= chance]
    if not below:
        least = percents(min(others.values()))
        return f"The worst seed of any score has {least} %, the best one of chance {percents(chance)} %: scores matter."
    return f"That words are scored is not shown to matter: seeds of {' and '.join(below)} are no better than chance."


def aware(over: dict[str, Difference]) -> str:
    """Whether the user's classes' saliency is better than other scores, as far as the seeds tell."""
    by_sign: dict[int, list[str]] = {sign: [] for sign in (-1, 0, 1)}
    for one, difference in over.items():
        if one != "random":
            by_sign[difference.sign].append(CRITERIA[one])
    worse, alike, better = (" and ".join(by_sign[sign]) for sign in (-1, 0, 1))
    told = [f"better than {worse}"] * bool(worse) + [f"worse than {better}"] * bool(better)
    told += [f"not told apart from {alike}"] * bool(alike)
    shown = "shown" if worse and not alike and not better else "not shown"
    return f"That the user's classes score the words is {shown} to help: their saliency is {', '.join(told)}."
