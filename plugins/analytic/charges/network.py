"""`network`: wires of multicast and reduction trees, and the adders in them."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Charge
from sparsemap.pieces.contracts.base import PerDesign
from sparsemap.problem.problem import Problem

from ..run import Run
from ..traffic import distinct_children


@attrs.frozen(kw_only=True)
class Network(Charge):
    """Words cross an H-tree over the square of a level's children; partial sums are added on the way."""

    type_name: ClassVar[str] = "network"

    def spent(self, run: Run) -> None:
        lay, problem = run.layout, run.problem
        sides = problem.remember((Network, "sides"), lambda: tree_sides(problem))
        wire, added = problem.technology.wire_pj_per_bit_mm, np.zeros(run.nest.batch)
        counts, costs = run.counts, run.costs
        assert counts is not None and costs is not None
        for t in range(lay.T):
            for s in range(lay.S):
                if not lay.stored[t, s]:
                    continue
                width = float(lay.levels[s].word_bits)
                down = counts.read[t, s]
                if t == lay.output and run.leaving is not None:
                    down = np.maximum(down - run.leaving[s], 0.0)
                up = counts.update[t, s]
                bits = (down + up) * width
                for action in ("read", "update"):
                    if action in costs.bits:
                        bits = bits + costs.bits[action][t, s]
                spent: PerDesign = np.zeros(run.nest.batch)
                for block in range(s, lay.child(t, s) or lay.S):
                    group = lay.spatial[block]
                    if group is None:
                        continue
                    copies = np.maximum(run.nest.group_products[group] / distinct_children(run.nest, t, block), 1.0)
                    spent = spent + bits * wire * length_mm(copies, lay.levels[block].fanout, sides[block])
                    if t == lay.output:
                        spent = spent + up * (copies - 1.0) * problem.technology.add_pj(int(width))
                    bits, up = bits * copies, up * copies
                added = added + spent * np.asarray(run.active)[t, s]
        run.spend(self, added)


def tree_sides(problem: Problem) -> list[float]:
    """Per level, the side in mm of the square over all children of one instance."""
    below, sides = problem.technology.mac_area_mm2(problem.hardware.word_bits), [0.0] * len(problem.levels)
    for level in reversed(problem.levels):
        sides[level.index] = math.sqrt(level.fanout * below)
        below = problem.technology.area_mm2(level) + level.fanout * below
    return sides


def length_mm(copies: PerDesign, leaves: int, side: float) -> PerDesign:
    """Wires of an H-tree from its root to so many of the leaves, spread evenly."""
    copies = np.minimum(copies, leaves)
    root = np.sqrt(copies)
    return side * (1.5 * (root - 1.0) + root - copies / math.sqrt(leaves))
