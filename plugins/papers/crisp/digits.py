"""Fig. 3 on digits instead of ImageNet: accuracy over sparsity of CRISP, of block pruning and of N:M pruning; and class
awareness: the same pruning for a few classes, by different scores of words."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from sparsemap.study.confidence import quantile

from ..pruned import page
from ..rows import Rows, counted
from ..runs import Runner

AWARE = "saliency of the user's classes"


def fig_3(runner: Runner, name: str) -> dict[str, Any]:
    fields = page(runner, name)
    cells = fields["cells"]
    ends = {title: at_the_end(same) for title, same in cells.by("title").items()}
    means = {number: same.achieved.mean for number, same in cells.by("point").items()}
    lines = list(cells.by("line"))
    drawn = sorted(cells, key=lambda row: (lines.index(row["line"]), means[row["point"]]))
    end, end_of_three = ends.values()
    about = {"cut": cells.cut.total, "end": end, "end_of_three": end_of_three, "edges": [{"edge": 40}, {"edge": 100}]}
    return {**fields, "drawn": drawn, **about}


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


def ablation(runner: Runner, name: str) -> dict[str, Any]:
    fields = page(runner, name)
    titles = fields["cells"].by("title")
    for title, own in titles.items():
        pairs = list(zip(own.accuracy, titles[AWARE].accuracy, strict=True))
        better = f"{sum(a > b for a, b in pairs)} of {counted(len(pairs), 'seed')}"
        for row in own:
            row |= {"apart": "", "better": ""} if title == AWARE else {"apart": difference(pairs), "better": better}
    width = max(same["accuracy %"].highest - same["accuracy %"].lowest for same in titles.values())
    return {**fields, "width": width}


def difference(pairs: Sequence[tuple[float, float]]) -> str:
    """Mean of paired differences in points, with an interval of 95 % (Student's t) for several seeds."""
    apart = [100 * (a - b) for a, b in pairs]
    mean, count = statistics.fmean(apart), len(apart)
    if count < 2:
        return f"{mean:+.1f}"
    wide = quantile(count - 1) * statistics.stdev(apart) / count**0.5
    return f"{mean:+.1f} ({mean - wide:+.1f} to {mean + wide:+.1f})"
