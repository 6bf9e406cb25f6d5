"""Fig. 3: accuracy over sparsity of CRISP, of block pruning and of N:M pruning, on digits instead of ImageNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemap.files import grouped
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Series, figure

from ..pruned import PrunedPoint, points, spread
from ..report import Report, counted, page
from ..runs import Runner

NETWORK = "conv3-fc2"
POINTS: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {
    "all": {
        ("crisp", "1:4"): (0.8, 0.9, 0.95, 0.97),
        ("crisp", "2:4"): (0.6, 0.8, 0.9, 0.95),
        ("crisp", "3:4"): (0.8, 0.9),
        ("block-only", ""): (0.5, 0.7, 0.8, 0.9, 0.93),
        ("nm-only", "1:4"): (),
    },
    "3,8,9": {
        ("crisp", "1:4"): (0.9, 0.95),
        ("crisp", "2:4"): (0.8, 0.9, 0.95),
        ("block-only", ""): (0.8, 0.9, 0.93),
        ("nm-only", "1:4"): (),
    },
}
"""Sparsities that are asked for, by classes, method and pattern; that of N:M pruning alone is its pattern's."""
CLASSES = {"all": "all 10 classes", "3,8,9": "three classes that look alike (3, 8, 9)"}


def wanted() -> list[dict[str, Any]]:
    """The options of every point."""
    found: list[dict[str, Any]] = []
    for classes, lines in POINTS.items():
        for (method, pattern), sparsities in lines.items():
            base = {"method": method, "classes": classes, **({"pattern": pattern} if pattern else {})}
            found += [{**base, "sparsity": x} for x in sparsities] if sparsities else [base]
    return [{**one, "network": NETWORK} for one in found]


def series(point: PrunedPoint) -> str:
    """The line that a point is on."""
    method = str(point.options["method"])
    return {"block-only": "blocks only", "nm-only": "N:M only"}.get(method, f"CRISP {point.options.get('pattern')}")


LINES = ("CRISP 1:4", "CRISP 2:4", "CRISP 3:4", "blocks only", "N:M only")


def report(runner: Runner, name: str) -> Report:
    found = grouped(points(runner, name, wanted()), lambda point: point.options["classes"])
    text = [page(__file__, name, NETWORK=NETWORK, seeds=counted(len(found["all"][0].rows), "seed"))]
    headline = []
    for classes, some in found.items():
        cells = [["method", "sparsity", "accuracy", "among the classes", "FLOPs", "utilisation", "cut"]]
        for point in some:
            accuracies = [spread(point, column, percents) for column in ("accuracy", "accuracy_among_classes")]
            line = [series(point), percents(point.mean("achieved")), *accuracies]
            line += [f"{percents(point.mean('flops_ratio'))} %", f"{100 * point.mean('utilisation'):.0f} %"]
            cells.append([*line, f"{sum(point.values('cut')):.0f}"])
        all_classes, among = (spread(some[0], f"dense_accuracy{x}", percents) for x in ("", "_among_classes"))
        dense = f"{all_classes}, among the classes {among}"
        text += [f"\n## {CLASSES[classes].capitalize()}\n\nDense: {dense}.\n\n", markdown_table(cells, "<>")]
        headline.append(f"{CLASSES[classes]}: {at_the_end(some)}")
    text += ["\n## What it shows\n\n", _findings(found)]
    rows = [dict(row) for some in found.values() for point in some for row in point.rows]
    return Report(name, "\n".join(headline), "".join(text), rows, lambda: draw(found))


def percents(value: float) -> str:
    return f"{100 * value:.1f}"


def at_the_end(some: Sequence[PrunedPoint]) -> str:
    """CRISP beside block pruning where the latter can prune no more."""
    ends = [x for x in some if series(x) == "blocks only"]
    blocks = max(ends, key=lambda x: (round(x.mean("achieved"), 4), x.mean("accuracy")))
    others = [x for x in some if series(x).startswith("CRISP") and x.mean("achieved") >= blocks.mean("achieved")]
    lines = [f"blocks only {_pair(blocks)}"]
    for line in sorted({series(x) for x in others}):
        nearest = min((x for x in others if series(x) == line), key=lambda x: x.mean("achieved"))
        lines.append(f"{line} {_pair(nearest)}")
    return ", ".join(lines)


def _pair(point: PrunedPoint) -> str:
    return f"{percents(point.mean('accuracy'))} % at a sparsity of {percents(point.mean('achieved'))} %"


def _findings(found: dict[str, list[PrunedPoint]]) -> str:
    cut = sum(sum(point.values("cut")) for some in found.values() for point in some)
    end, end_of_three = (at_the_end(found[classes]) for classes in ("all", "3,8,9"))
    return page(__file__, "crisp-fig-3-findings", end=end, end_of_three=end_of_three, cut=cut)


def draw(found: dict[str, list[PrunedPoint]]) -> Figure:
    panels = []
    for classes, some in found.items():
        lines = []
        for line, its in sorted(grouped(some, series).items(), key=lambda item: LINES.index(item[0])):
            its = sorted(its, key=lambda point: point.mean("achieved"))
            values = np.array([point.values("accuracy") for point in its]) * 100
            x, band = [100 * point.mean("achieved") for point in its], (values.min(axis=1), values.max(axis=1))
            lines.append(Series(line, x, values.mean(axis=1), band=band))
        dense = 100 * some[0].mean("dense_accuracy")
        lines.append(Series("dense", (40, 100), (dense, dense), ":", marked=False))
        limits = {"xlim": (40, 100), "ylim": (50, 101)}
        y = "accuracy on test images (%)"
        panels.append(Panel("achieved sparsity (%)", y, lines, title=CLASSES[classes], limits=limits))
    return figure(panels, (9.6, 4.1), across=6, sharey=True)
