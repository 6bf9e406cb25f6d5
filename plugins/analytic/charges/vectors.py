"""`vectors`: lanes that step together over condensed nonzeros take whole steps, of which the last is only partly filled."""

from __future__ import annotations

import math

import numpy as np

from sparsemap.pieces.contracts.base import PerDesign

from ..nest import Nest
from ..prepared import DesignChoices, ModelTables
from ..removal import Removal
from .imbalance import finest_looks


def whole_steps(known: ModelTables, nest: Nest, choices: DesignChoices, removal: Removal) -> PerDesign | None:
    """(B,) steps of the lanes over those with all lanes full; None: no lanes do so. `removal`: the filters that save
    time.

    The words of an operand that a vector is filled from are those along loops that move no other operand.
    """
    lay, last = known.layout, known.layout.S - 1
    bounds = nest.spatial_bounds(last)
    if bounds is None or not lay.problem.levels[last].memory.vectors:
        return None
    looks, ratio = finest_looks(known, choices, removal), np.ones(nest.batch)
    dealt = [deal.chosen[choices.genes[deal.gene]] for deal in known.places.deals]
    free = ~np.logical_or.reduce(dealt) if dealt else np.ones(nest.batch, dtype=bool)
    for i, t in enumerate(lay.operands):
        own = lay.relevant[t] & ~lay.relevant[[u for u in lay.operands if u != t]].any(axis=0)
        lanes = bounds[own].prod(axis=0)
        rows = np.flatnonzero(free & (lanes > 1.0) & (looks[i] == 1.0))
        if not rows.size:
            continue
        extent = (bounds * nest.bounds[lay.temporal[last]])[:, rows]
        widths = [math.prod((extent[d] for d, _ in rank if own[d]), start=np.ones(len(rows))) for rank in lay.ranks[t]]
        table = known.tables[t]
        filled, _ = table.packed(widths if table.by_shape else [math.prod(widths)], lanes[rows])
        ratio[rows] /= filled
    return ratio
