"""`vectors`: lanes that step together over condensed nonzeros take whole steps, of which the last is only partly filled."""

from __future__ import annotations

import math

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign, Rows

from ..nest import DesignChoices, Nest
from ..occupancy.plain import binomial
from ..prepared import ModelTables
from ..removal import Removal
from .imbalance import finest_looks


def whole_steps(known: ModelTables, nest: Nest, choices: DesignChoices, removal: Removal) -> PerDesign | None:
    """(B,) steps of the lanes over those with all lanes full; None: no lanes do so. `removal`: the filters that save time.

    Lanes along loops that move one operand alone are filled from its words there; those along the others from the positions
    at which every operand has something.
    """
    lay, last = known.layout, known.layout.S - 1
    bounds = nest.spatial_bounds(last)
    if bounds is None:
        return None
    looks, ratio = finest_looks(known, choices, removal), np.ones(nest.batch)
    dealt = [deal.chosen[choices.genes[deal.gene]] for deal in known.places.deals]
    free = ~np.logical_or.reduce(dealt) if dealt else np.ones(nest.batch, dtype=bool)
    inside = bounds * nest.bounds[lay.temporal[last]]
    movers = lay.relevant[list(lay.operands)].sum(axis=0)
    shared, chance, several = bounds[movers > 1].prod(axis=0), np.ones(nest.batch), np.zeros(nest.batch, dtype=bool)
    for i, t in enumerate(lay.operands):
        own = lay.relevant[t] & (movers == 1)
        lanes, thins = bounds[own].prod(axis=0), free & (looks[i] == 1.0)
        rows = np.flatnonzero(thins & (lanes > 1.0))
        if rows.size:
            filled, _ = known.tables[t].packed(_words(known, t, np.where(own[:, None], inside, 1.0), rows), lanes[rows])
            ratio[rows] /= filled
        rows = np.flatnonzero(thins & (shared > 1.0))
        if rows.size:
            chance[rows] *= 1.0 - known.tables[t].empty(_words(known, t, np.where(own[:, None], inside, 1.0), rows))
            several[rows] = True
    positions = inside[movers > 1].prod(axis=0)
    for row in np.flatnonzero(several & (chance > 0.0)):
        number = binomial(int(positions[row]), float(chance[row]))
        steps = float(number @ np.ceil(np.arange(len(number)) / shared[row]))
        ratio[row] *= steps * shared[row] / (positions[row] * chance[row])
    return ratio


def _words(known: ModelTables, t: int, extent: Array, rows: Rows) -> list[Array]:
    """What the tables of a tensor want to know of boxes with these extents (D, B): words, in each rank if shapes matter."""
    ranks = known.layout.ranks[t]
    widths = [math.prod((extent[d, rows] for d, _ in rank), start=np.ones(len(rows))) for rank in ranks]
    return widths if known.tables[t].by_shape else [math.prod(widths, start=np.ones(len(rows)))]
