"""`leakage` and `gated`: energy of what does nothing."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Charge
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.problem import Problem

from ..actions import GATE
from ..costs import total
from ..run import Run

NS = 1e9


@attrs.frozen(kw_only=True)
class Leakage(Charge):
    """All memories that there are leak for as long as the design runs, used or not."""

    type_name: ClassVar[str] = "leakage"

    def least_pj(self, problem: Problem, cycles: float) -> float:
        return cycles * self._pj_per_cycle(problem)

    def _pj_per_cycle(self, problem: Problem) -> float:
        power_mw = sum(level.instances * problem.leakage_mw(s) for s, level in enumerate(problem.levels))
        return power_mw * NS / problem.clock_hz  # mW * ns = pJ

    def spent(self, run: Run) -> None:
        problem = run.problem
        per_cycle = problem.remember((Leakage, "per-cycle"), lambda: self._pj_per_cycle(problem))
        run.spend(self, per_cycle * np.asarray(run.cycles))


@attrs.frozen(kw_only=True)
class Gated(Charge):
    """A gated access or compute costs a share of a full one."""

    type_name: ClassVar[str] = "gated"

    def spent(self, run: Run) -> None:
        lay, counts, residual = run.layout, run.counts, run.problem.technology.gated_residual
        assert counts is not None and run.compute is not None and run.costs is not None

        def extra(action: str) -> Array:
            """(S, 1) pJ of a gated access above what is charged already."""
            found = [max(0.0, residual * prices[action] - prices[f"gated_{action}"]) for prices in lay.energies]
            return np.array(found)[:, None]

        spent = counts.gone_read * extra("read") + counts.gone_update * extra("update")
        width = np.array([float(level.metadata_width) for level in lay.levels])[:, None]
        for action in ("read", "update"):
            bits = run.costs.bits.get(f"gated_{action}")
            if bits is not None:
                spent = spent + np.ceil(bits / width) * extra(f"metadata_{action}")
        added = total(spent * ((counts.kind == GATE) * run.active))
        actual, stated, _ = lay.mac
        run.spend(self, added + run.compute.gated * max(0.0, residual * actual - stated))
