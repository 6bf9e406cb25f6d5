"""`gate-time`: what a gate holds back takes its time all the same."""

from __future__ import annotations

from typing import ClassVar

import attrs

from sparsemap import Charge

from ..run import Run


@attrs.frozen(kw_only=True)
class GateTime(Charge):
    """Time is counted as if no filter at storage were there that lets the cycle pass; energy with all filters."""

    type_name: ClassVar[str] = "gate-time"

    def stored(self, run: Run) -> None:
        passes = {id(some): some.action.passes[run.genes[some.action.gene][some.rows]] for some in run.removal.wanted}
        if any(mine.any() for mine in passes.values()):
            run.time_removal = run.removal.where(run.layout, lambda some: ~passes[id(some)])
