"""Energy of tensors that are decoded on their way (6.6)."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import PerTile
from sparsemap.pieces.contracts.hardware import RECODE_ACTIONS
from sparsemap.problem.chip import Chip

from .counts import Counts
from .layout import Layout, by_level
from .nest import DesignChoices


def recoding_pj(layout: Layout, quirks: frozenset[str], choices: DesignChoices, chip: Chip, counts: Counts) -> PerTile:
    """(T, S, B) pJ of all instances of levels that decode: words that arrive there, and of an output those that leave, as
    the next outer level counts them (6.6)."""
    found = np.zeros(counts.active.shape)
    decode, encode = (by_level(chip.energy_pj[action]) for action in RECODE_ACTIONS)
    assert choices.decoded is not None
    for t, s in (np.argwhere(layout.stored[:, 1:]) + np.array([0, 1])).tolist():
        here, parent = choices.packed[t, 0] & (choices.decoded[t] == s), layout.parent(t, s)
        spent = counts.fill[t, s] * counts.active[t, s] * decode[s]
        if t == layout.output and parent is not None:
            spent = spent + counts.update[t, parent] * counts.active[t, s if "Q18" in quirks else parent] * encode[s]
        found[t, s] = np.where(here, spent, 0.0)
    return found
