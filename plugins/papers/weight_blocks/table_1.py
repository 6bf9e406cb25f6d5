"""Table I: accuracy with masks of blocks before and after training, on digits instead of ImageNet."""

from __future__ import annotations

from typing import Any

from ..pruned import page
from ..rows import Rows
from ..runs import Runner


def table_1(runner: Runner, name: str) -> dict[str, Any]:
    fields = page(runner, name)
    lines = fields["of line"].by("line").items()  # all of them begin with dense weights
    drawn = Rows({**row, "line": line} for line, same in lines for row in (*fields["of dense"], *same))
    for row in drawn:
        row["pruned"] = float(row["share"].removesuffix(" %"))
    return {**fields, "drawn": drawn.only(("line", "pruned", "accuracy_before %", "accuracy %"))}
