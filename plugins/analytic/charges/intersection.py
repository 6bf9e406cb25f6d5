"""`intersection`: a skipping unit compares metadata, and looks at so many positions in a cycle."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Charge

from ..actions import SKIP
from ..costs import total
from ..run import Run


@attrs.frozen(kw_only=True)
class Intersection(Charge):
    """An addition for every metadata access of a leader of a skip; no faster than `lookahead` positions in a cycle."""

    type_name: ClassVar[str] = "intersection"

    def worked(self, run: Run) -> None:
        lay, nest, cycles = run.layout, run.nest, np.asarray(run.compute_cycles)
        for some in run.removal.wanted:
            limit = lay.levels[some.action.place.storage or 0].memory.lookahead
            if some.kind != SKIP or limit is None:
                continue
            t, s, rows = some.action.target, some.level, some.rows
            child = lay.child(t, s)
            positions = nest.steps[-1, rows]
            if child is not None:
                moved = run.traffic.leaving[child] if t == lay.output else run.traffic.fills[t, child]
                positions = moved[rows] / nest.tile_words[t, child, rows]
            left = np.ones(len(rows))
            for outer in range(s):  # of several the innermost counts
                acts = run.removal.kind[t, outer, rows] == SKIP
                left = np.where(acts, 1.0 - run.removal.share[t, outer, rows], left)
            positions = positions * left
            cycles = cycles.copy()
            cycles[rows] = np.maximum(cycles[rows], np.ceil(positions / limit))
        limit, unit = run.problem.hardware.compute.lookahead, run.places.compute
        if unit is not None and limit is not None:
            assert run.time_compute is not None
            looked = run.time_compute.left / nest.instances_used[lay.S]
            skips = unit.kind[run.genes[unit.gene]] == SKIP
            cycles = np.where(skips, np.maximum(cycles, np.ceil(looked / limit)), cycles)
        run.compute_cycles = cycles

    def spent(self, run: Run) -> None:
        lay, technology, costs = run.layout, run.problem.technology, run.costs
        added = np.zeros(run.nest.batch)
        assert costs is not None and run.compute is not None
        looked = np.zeros((lay.T, lay.S, run.nest.batch), dtype=bool)
        for action in run.places.actions:
            if action.place.storage is not None:
                skips = action.kind[run.genes[action.gene]] == SKIP
                for leader in action.leaders:
                    looked[leader, lay.holder(leader, action.place.storage)] |= skips
        if "read" in costs.bits:
            width = np.array([level.metadata_width for level in lay.levels])[:, None]
            price = np.array([technology.add_pj(level.metadata_width) for level in lay.levels])[:, None]
            added = total(np.ceil(costs.bits["read"] / width) * looked * run.active * price)
        unit = run.places.compute
        if unit is not None:
            done = run.compute
            skips = unit.kind[run.genes[unit.gene]] == SKIP
            found = done.actual + done.skipped  # pairs of which at least one operand is there
            added = added + skips * found * technology.add_pj(run.problem.hardware.word_bits)
        run.spend(self, added)
