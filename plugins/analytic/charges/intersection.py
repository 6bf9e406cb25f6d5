"""`intersection`: a skipping unit compares metadata, and looks at so many positions in a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import PerDesign

from ..actions import SKIP
from ..layout import by_level, limited
from ..nest import Nest
from ..prepared import DesignChoices, ModelTables
from ..removal import Removal
from ..traffic import Traffic

if TYPE_CHECKING:
    from ..counts import Counts


def looking_cycles(
    known: ModelTables, nest: Nest, choices: DesignChoices, traffic: Traffic, removal: Removal, reached: PerDesign
) -> PerDesign | None:
    """(B,) cycles that skipping units need to look at all positions; None: nothing limits them. `removal`: all filters,
    `reached`: (B,) computes that the units look at."""
    lay, limits = known.layout, choices.chip.lookahead
    if not limited(limits):
        return None
    found = np.zeros(nest.batch)
    for some in removal.effects:
        limit = limits[some.action.place.storage or 0]
        if some.kind != SKIP or not limited(limit):
            continue
        t, s, rows = some.action.target, some.level, some.rows
        child = lay.child(t, s)
        positions = nest.steps[-1, rows]
        if child is not None:
            moved = traffic.leaving[child] if t == lay.output else traffic.fills[t, child]
            positions = moved[rows] / nest.tile_words[t, child, rows]
        left = np.ones(len(rows))
        for outer in range(s):  # of several the innermost counts
            acts = removal.kind[t, outer, rows] == SKIP
            left = np.where(acts, 1.0 - removal.share[t, outer, rows], left)
        positions = positions * left
        found[rows] = np.maximum(found[rows], np.ceil(positions / (limit if np.ndim(limit) == 0 else limit[rows])))
    unit, limit = known.places.compute, limits[-1]
    if unit is not None and limited(limit):
        skips = unit.kind[choices.genes[unit.gene]] == SKIP
        looked = np.ceil(reached / nest.instances_used[lay.S] / limit)
        found = np.where(skips, np.maximum(found, looked), found)
    return found


def compared_pj(known: ModelTables, choices: DesignChoices, counts: Counts) -> PerDesign:
    """(B,) an addition for every metadata access of a leader of a skip, and for every compute that a skipping unit sees."""
    from ..cost import total
    from ..counts import led

    chip, own, added = choices.chip, counts.columns.energy, np.zeros(choices.genes.shape[-1])
    if "read" in counts.bits:
        looked = led(known, choices, SKIP)
        accesses = np.ceil(own(counts.bits["read"]) / by_level(chip.metadata_width))
        added = total(accesses * looked * counts.active * by_level(chip.add_pj["metadata"]))
    unit = known.places.compute
    if unit is not None:
        skips = unit.kind[choices.genes[unit.gene]] == SKIP
        seen = own(counts.computes.actual) + own(counts.computes.skipped)  # at least one operand is there
        added = added + skips * seen * chip.add_pj["word"][-1]
    return added
