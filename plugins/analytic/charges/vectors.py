"""`vectors`: lanes that step together over condensed nonzeros take whole steps, of which the last is only partly filled."""

from __future__ import annotations

import numpy as np

from sparsemap.inner.arrays import dot

from ..occupancy.plain import binomial


def steps_of(positions: float, chance: float, lanes: float) -> float:
    """Steps that lanes need for the positions that hold something, each with this chance, over those with all lanes full."""
    number = binomial(int(positions), chance)
    steps = dot(number, np.ceil(np.arange(len(number)) / lanes))
    return steps * lanes / (positions * chance)
