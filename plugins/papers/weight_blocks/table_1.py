"""Table I: accuracy with masks of blocks before and after training, on digits instead of ImageNet."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Series, figure

from ..pruned import PrunedPoint, points, seed_rows
from ..report import Report, counted, page
from ..runs import Runner

NETWORK = "conv3-fc1"
SPARSITIES = (0.25, 0.5, 0.75, 0.9)
SIZES = {"8x8": SPARSITIES, "16x4": (0.5, 0.75), "4x16": (0.5, 0.75), "1x1": SPARSITIES[1:]}
WORDS = "single words"
"""Blocks of a word; `1x1` is a whole kernel."""
CRITERIA = {"l1": (0.75,), "variance": (0.75,), "fisher": (0.75,), "random": SPARSITIES[1:]}
"""Sparsities by criterion beside `l2`, with blocks of 8 x 8."""
SCHEDULES = {"gradual": (0.75,), "trained": (0.5, 0.75)}

Key = tuple[str, str, str, str, float]
"""Method, block, criterion, balance and sparsity."""
DENSE: Key = ("one-shot", "8x8", "l2", "none", 0.0)


def wanted() -> list[Key]:
    keys = [DENSE]
    keys += [("one-shot", size, "l2", "none", x) for size, its in SIZES.items() for x in its]
    keys += [("one-shot", WORDS, "l2", "none", x) for x in SPARSITIES[1:]]
    keys += [("one-shot", "8x8", criterion, "none", x) for criterion, its in CRITERIA.items() for x in its]
    keys.append(("one-shot", "8x8", "l2", "rows", 0.75))
    return keys + [(method, "8x8", "l2", "none", x) for method, its in SCHEDULES.items() for x in its]


def options_of(key: Key) -> dict[str, Any]:
    """The options of the verb `prune`."""
    options = dict(zip(("method", "block", "criterion", "balance", "sparsity"), key, strict=True))
    unit = {"block": "1x1", "unit": "words"} if options["block"] == WORDS else {}
    return {**options, **unit, "network": NETWORK}


def report(runner: Runner, name: str) -> Report:
    found = dict(zip(wanted(), points(runner, name, map(options_of, wanted())), strict=True))
    dense = found[DENSE]
    seeds = len(dense.rows)
    schedules = {("one-shot", "none"): "one-shot", ("one-shot", "rows"): "one-shot, rows balanced"}
    schedules |= {("gradual", "none"): "gradual", ("trained", "none"): "trained masks"}
    text = page(
        __file__, name, NETWORK=NETWORK, seeds=counted(seeds, "seed"), dense=both(dense),
        sizes=_table(found, [("one-shot", size, "l2", "none") for size in (*SIZES, WORDS)], (*SIZES, WORDS)),
        criteria=_table(found, [("one-shot", "8x8", x, "none") for x in ("l2", *CRITERIA)], ["l2", *CRITERIA]),
        schedules=_table(found, [(how, "8x8", "l2", rows) for how, rows in schedules], [*schedules.values()]),
    )  # fmt: skip
    at = {x: found["one-shot", "8x8", "l2", "none", x] for x in SPARSITIES}
    headline = f"dense {both(dense)}\n8x8, L2: " + ", ".join(f"{100 * x:g} % {both(point)}" for x, point in at.items())
    return Report(name, headline, text, seed_rows(found.values()), lambda: draw(found))


def both(point: PrunedPoint) -> str:
    """Accuracy after training, and before training for masks at once: 98.4 ± 0.5 (94.0)."""
    values = [100 * x for x in point.values("accuracy")]
    text = f"{statistics.fmean(values):.1f}"
    if len(values) > 1:
        text += f" ± {statistics.stdev(values):.1f}"
    before = point.mean("accuracy_before")
    text += f" ({100 * before:.1f})" if before == before else ""
    cut = int(sum(point.values("cut")))
    left = [x for x, is_cut in zip(values, point.values("cut"), strict=True) if not is_cut]
    return f"{text}, {cut} cut, without {statistics.fmean(left):.1f}" if cut and left else text


def _table(found: dict[Key, PrunedPoint], lines: Sequence[tuple[str, str, str, str]], names: Sequence[str]) -> str:
    columns = [x for x in SPARSITIES if any((*line, x) in found for line in lines)]
    cells = [["", *(f"{100 * x:g} %" for x in columns)]]
    for line, name in zip(lines, names, strict=True):
        cells.append([name, *(both(found[(*line, x)]) if (*line, x) in found else "" for x in columns)])
    return markdown_table(cells, "<>")


def draw(found: dict[Key, PrunedPoint]) -> Figure:
    panels = []
    for column, title, limits in (
        ("accuracy_before", "before training", (0, 102)),
        ("accuracy", "after training", (85, 100)),
    ):
        lines = []
        named = [*(((size, "l2"), f"{size}, L2") for size in (*SIZES, WORDS)), (("8x8", "random"), "8x8, random")]
        for (size, criterion), label in named:
            keys = [DENSE, *(("one-shot", size, criterion, "none", x) for x in SPARSITIES)]
            its = {100 * key[-1]: [100 * value for value in found[key].values(column)] for key in keys if key in found}
            band = [min(values) for values in its.values()], [max(values) for values in its.values()]
            lines.append(Series(label, list(its), [statistics.median(values) for values in its.values()], band=band))
        y = "accuracy (%), median and range of seeds"
        panels.append(Panel("blocks pruned (%)", y, lines, title=title, limits={"ylim": limits}))
    return figure(panels, (9.0, 3.9), across=6)
