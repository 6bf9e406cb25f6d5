"""Fig. 3: accuracy over sparsity of CRISP, of block pruning and of N:M pruning, on digits instead of ImageNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemap.files import grouped
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Series, figure

from ..pruned import PrunedPoint, points, seed_rows, spread
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
"""Target sparsities by classes, method and pattern; N:M pruning alone has the sparsity of its pattern."""
CLASSES = {"all": "all 10 classes", "3,8,9": "three classes that look alike (3, 8, 9)"}
LINES = ("CRISP 1:4", "CRISP 2:4", "CRISP 3:4", "blocks only", "N:M only")


def wanted() -> list[dict[str, Any]]:
    """The options of every point."""
    found: list[dict[str, Any]] = []
    for classes, lines in POINTS.items():
        for (method, pattern), sparsities in lines.items():
            base = {"method": method, "classes": classes, **({"pattern": pattern} if pattern else {})}
            found += [{**base, "sparsity": x} for x in sparsities] if sparsities else [base]
    return [{**one, "network": NETWORK} for one in found]


def line_of(point: PrunedPoint) -> str:
    method = str(point.options["method"])
    return {"block-only": "blocks only", "nm-only": "N:M only"}.get(method, f"CRISP {point.options.get('pattern')}")


def report(runner: Runner, name: str) -> Report:
    found = grouped(points(runner, name, wanted()), lambda point: point.options["classes"])
    text = [page(__file__, name, NETWORK=NETWORK, seeds=counted(len(found["all"][0].rows), "seed"))]
    headline, ends = [], {classes: at_the_end(some) for classes, some in found.items()}
    for classes, some in found.items():
        table = [["method", "sparsity", "accuracy", "among the classes", "FLOPs", "utilisation", "cut"]]
        for point in some:
            accuracies = [spread(point, column, percents) for column in ("accuracy", "accuracy_among_classes")]
            line = [line_of(point), percents(point.mean("achieved")), *accuracies]
            line += [f"{percents(point.mean('flops_ratio'))} %", f"{100 * point.mean('utilisation'):.0f} %"]
            table.append([*line, f"{sum(point.values('cut')):.0f}"])
        every, among = (spread(some[0], f"dense_accuracy{x}", percents) for x in ("", "_among_classes"))
        dense = f"Dense: {every}, among the classes {among}."
        text += [f"\n## {CLASSES[classes].capitalize()}\n\n{dense}\n\n", markdown_table(table, "<>")]
        headline.append(f"{CLASSES[classes]}: {ends[classes]}")
    every_point = [point for some in found.values() for point in some]
    cut = sum(sum(point.values("cut")) for point in every_point)
    findings = page(__file__, "crisp-fig-3-findings", end=ends["all"], end_of_three=ends["3,8,9"], cut=cut)
    text += ["\n## What it shows\n\n", findings]
    return Report(name, "\n".join(headline), "".join(text), seed_rows(every_point), lambda: draw(found))


def percents(value: float) -> str:
    return f"{100 * value:.1f}"


def at_the_end(some: Sequence[PrunedPoint]) -> str:
    """Block pruning at its largest sparsity, beside CRISP from there on."""
    ends = [x for x in some if line_of(x) == "blocks only"]
    blocks = max(ends, key=lambda x: (round(x.mean("achieved"), 4), x.mean("accuracy")))
    others = [x for x in some if line_of(x).startswith("CRISP") and x.mean("achieved") >= blocks.mean("achieved")]
    nearest = {line: min(same, key=lambda x: x.mean("achieved")) for line, same in grouped(others, line_of).items()}
    return ", ".join(
        f"{line} {percents(x.mean('accuracy'))} % at a sparsity of {percents(x.mean('achieved'))} %"
        for line, x in {"blocks only": blocks, **dict(sorted(nearest.items()))}.items()
    )


def draw(found: dict[str, list[PrunedPoint]]) -> Figure:
    panels = []
    for classes, some in found.items():
        lines = []
        for line, its in sorted(grouped(some, line_of).items(), key=lambda item: LINES.index(item[0])):
            its = sorted(its, key=lambda point: point.mean("achieved"))
            values = np.array([point.values("accuracy") for point in its]) * 100
            x, band = [100 * point.mean("achieved") for point in its], (values.min(axis=1), values.max(axis=1))
            lines.append(Series(line, x, values.mean(axis=1), band=band))
        dense = 100 * some[0].mean("dense_accuracy")
        lines.append(Series("dense", (40, 100), (dense, dense), ":", marked=False))
        limits, y = {"xlim": (40, 100), "ylim": (50, 101)}, "accuracy on test images (%)"
        panels.append(Panel("achieved sparsity (%)", y, lines, title=CLASSES[classes], limits=limits))
    return figure(panels, (9.6, 4.1), across=6, sharey=True)
