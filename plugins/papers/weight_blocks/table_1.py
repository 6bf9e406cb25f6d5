"""Table I: accuracy with masks of blocks before and after training, on digits instead of ImageNet."""

from __future__ import annotations

import statistics
from typing import Any

from ..pruned import points, seed_rows
from ..rows import Rows
from ..runs import Runner

NETWORK = "conv3-fc1"
SPARSITIES = (0.25, 0.5, 0.75, 0.9)
SIZES = {"8x8": SPARSITIES, "16x4": (0.5, 0.75), "4x16": (0.5, 0.75), "1x1": SPARSITIES[1:]}
WORDS = "single words"
"""Blocks of a word; `1x1` is a whole kernel."""
CRITERIA = {"l1": (0.75,), "variance": (0.75,), "fisher": (0.75,), "random": SPARSITIES[1:]}
"""Sparsities by criterion beside `l2`, with blocks of 8 x 8."""
SCHEDULES = {"gradual": (0.75,), "trained": (0.5, 0.75)}
TITLES = {("one-shot", "none"): "one-shot", ("one-shot", "rows"): "one-shot, rows balanced"}
TITLES |= {("gradual", "none"): "gradual", ("trained", "none"): "trained masks"}
RANDOM = ("one-shot", "8x8", "random", "none")

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


def page(runner: Runner, name: str) -> dict[str, Any]:
    keys = wanted()
    pruned = points(runner, name, map(options_of, keys))
    found = {key: point.numbers() for key, point in zip(keys, pruned, strict=True)}
    sizes = {("one-shot", size, "l2", "none"): size for size in (*SIZES, WORDS)}
    lines = {"sizes": sizes, "criteria": {("one-shot", "8x8", x, "none"): x for x in ("l2", *CRITERIA)}}
    lines["schedules"] = {(how, "8x8", "l2", rows): title for (how, rows), title in TITLES.items()}
    at = {x: found["one-shot", "8x8", "l2", "none", x] for x in SPARSITIES}
    ends = ", ".join(f"{100 * x:g} % {both(runs)}" for x, runs in at.items())
    drawn = [
        {"label": label, "pruned": 100 * x, **{column: 100 * row[column] for column in ("accuracy_before", "accuracy")}}
        for line, label in {**{x: f"{size}, L2" for x, size in sizes.items()}, RANDOM: "8x8, random"}.items()
        for key in (DENSE, *((*line, x) for x in SPARSITIES))
        for x, row in ((key[-1], row) for row in found.get(key, ()))
    ]
    about = {"NETWORK": NETWORK, "seed": len(found[DENSE]), "dense": both(found[DENSE]), "ends": ends, "drawn": drawn}
    return {"rows": seed_rows(pruned), **about, **{name: _table(found, own) for name, own in lines.items()}}


def both(runs: Rows) -> str:
    """Accuracy after training, and before training for masks at once: 98.4 ± 0.5 (94.0)."""
    values = [100 * x for x in runs.accuracy]
    text = f"{statistics.fmean(values):.1f}"
    if len(values) > 1:
        text += f" ± {statistics.stdev(values):.1f}"
    before = runs.accuracy_before.mean
    text += f" ({100 * before:.1f})" if before == before else ""
    cut, left = int(runs.cut.total), [x for x, is_cut in zip(values, runs.cut, strict=True) if not is_cut]
    return f"{text}, {cut} cut, without {statistics.fmean(left):.1f}" if cut and left else text


def _table(found: dict[Key, Rows], lines: dict[Any, str]) -> list[list[str]]:
    columns = [x for x in SPARSITIES if any((*line, x) in found for line in lines)]
    cells = [["", *(f"{100 * x:g} %" for x in columns)]]
    for line, name in lines.items():
        cells.append([name, *(both(found[(*line, x)]) if (*line, x) in found else "" for x in columns)])
    return cells
