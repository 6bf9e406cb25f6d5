"""Fig. 3: accuracy over sparsity of CRISP, of block pruning and of N:M pruning, on digits instead of ImageNet."""

from __future__ import annotations

from typing import Any

from ..pruned import points, seed_rows
from ..rows import Rows
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


def line_of(options: Any) -> str:
    return {"block-only": "blocks only", "nm-only": "N:M only"}.get(
        options["method"], f"CRISP {options.get('pattern')}"
    )


def page(runner: Runner, name: str) -> dict[str, Any]:
    found, cells = points(runner, name, wanted()), Rows()
    for number, point in enumerate(found):
        line, classes = line_of(point.options), point.options["classes"]
        about = {"point": number, "line": line, "title": CLASSES[classes], "classes": classes}
        cells += point.numbers(**about, head=CLASSES[classes].capitalize())
    ends = {classes: at_the_end(same) for classes, same in cells.by("classes").items()}
    means = {number: same.achieved.mean for number, same in cells.by("point").items()}
    lines = sorted(cells, key=lambda row: (LINES.index(row["line"]), means[row["point"]]))
    percents = ("accuracy", "achieved", "dense_accuracy")
    drawn = [{**row, **{key: 100 * row[key] for key in percents}} for row in lines]
    about = {"NETWORK": NETWORK, "seed": cells.seed.distinct, "cut": cells.cut.total, "end": ends["all"]}
    about |= {"end_of_three": ends["3,8,9"], "edges": [{"edge": 40}, {"edge": 100}]}
    return {"rows": seed_rows(found), "cells": cells, "drawn": drawn, **about}


def at_the_end(cells: Rows) -> str:
    """Block pruning at its largest sparsity, beside CRISP from there on."""
    means = Rows(
        {"line": same[0]["line"], "achieved": same.achieved.mean, "accuracy": same.accuracy.mean}
        for same in cells.by("point").values()
    )
    blocks = max(means.line["blocks only"], key=lambda x: (round(x["achieved"], 4), x["accuracy"]))
    others = [x for x in means if x["line"].startswith("CRISP") and x["achieved"] >= blocks["achieved"]]
    nearest = {x["line"]: x for x in sorted(others, key=lambda x: -x["achieved"])}
    return ", ".join(
        f"{x['line']} {100 * x['accuracy']:.1f} % at a sparsity of {100 * x['achieved']:.1f} %"
        for x in (blocks, *(nearest[line] for line in sorted(nearest)))
    )
