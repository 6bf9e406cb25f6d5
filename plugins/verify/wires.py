"""Energy beside the accesses: wires and adders, comparisons, leakage (docs/model.md, `network` to `intersection`)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .tally import Tally

if TYPE_CHECKING:
    from .simulate import Simulation


def leakage_pj(sim: Simulation, cycles: float) -> float:
    """All instances that there are; those that hold nothing, less where they are switched off."""
    problem, milliwatt = sim.problem, 0.0
    for level in problem.levels:
        used, off = sim.nest.instances(level.index), level.memory.power_gated
        count = level.instances if off is None else used + (level.instances - used) * off
        milliwatt += count * problem.leakage_mw(level.index)
    return cycles / problem.clock_hz * milliwatt * 1e9


def network_pj(sim: Simulation, tally: Tally) -> float:
    """`tally` with metadata, and without results that leave towards the parent."""
    problem, technology, energy = sim.problem, sim.problem.technology, 0.0
    for t, chain in enumerate(sim.nest.chains):
        for level, child in pairwise(chain):
            spec = problem.levels[level]
            words, bits = tally.moved(level, t, "read", "update")
            bits += words * spec.word_bits
            sums = tally.values.get(("update", level, t), 0.0) if t == sim.nest.output else 0.0
            for block in range(level, child):
                copies = _copies(sim, t, block)
                fanout, side = problem.levels[block].fanout, _side_mm(sim, block)
                energy += bits * technology.wire_pj_per_bit_mm * _tree_mm(copies, fanout, side)
                energy += sums * (copies - 1) * technology.add_pj(spec.word_bits)
                bits, sums = bits * copies, sums * copies
    return energy


def _copies(sim: Simulation, t: int, block: int) -> float:
    """Children of a block that one word goes to or comes from."""
    nest = sim.nest
    places = nest.origins(loop for loop in nest.block(block, block + 1) if loop.spatial)
    return len(places) / len(np.unique(places @ nest.access[t].T, axis=0))


def _side_mm(sim: Simulation, level: int) -> float:
    """Of the square over all children of one instance."""
    problem = sim.problem
    area = problem.technology.mac_area_mm2(problem.hardware.word_bits)
    for inner in reversed(problem.levels[level + 1 :]):
        area = problem.technology.area_mm2(inner) + inner.fanout * area
    return math.sqrt(problem.levels[level].fanout * area)


def _tree_mm(leaves: float, fanout: int, side: float) -> float:
    """Wires of an H-tree over a square from its root to so many of its leaves, which are spread evenly."""
    leaves = min(leaves, fanout)
    spanned = 1.5 * side * (math.sqrt(leaves) - 1.0)
    return spanned + side * (math.sqrt(leaves) - leaves / math.sqrt(fanout))


def compared_pj(sim: Simulation, tally: Tally) -> float:
    """An addition for every metadata access of what leads a skip, and for every compute that a skipping unit sees."""
    problem, values = sim.problem, tally.values
    energy = 0.0
    for t, level in sim.skipped_by:
        width = problem.levels[level].metadata_width
        bits = values.get(("metadata_read", level, t), 0.0)
        energy += bits / width * problem.technology.add_pj(width)
    if sim.products.skips:
        seen = values["compute", None, None] + values["skipped_compute", None, None]
        energy += seen * problem.technology.add_pj(problem.hardware.word_bits)
    return energy
