"""`vectors`: lanes stepping together over condensed nonzeros take whole steps; the last step is only partly filled."""

from __future__ import annotations

import numpy as np

from sparsemap.inner.arrays import dot

from ..occupancy.plain import binomial


def steps_of(positions: float, chance: float, lanes: float) -> float:
    """Steps of lanes for the non-empty positions, each non-empty with probability `chance`, over the steps with all
    lanes full."""
    number = binomial(int(positions), chance)
    steps = dot(number, np.ceil(np.arange(len(number)) / lanes))
    return steps * lanes / (positions * chance)
