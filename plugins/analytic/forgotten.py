"""What Timeloop forgets: computes where operands are filtered, with other than two operands (Q16), and accesses of several
words of short tiles."""

from __future__ import annotations

import math

import numpy as np

from sparsemap.pieces.contracts.base import PerDesign, PerTile

from .actions import NONE
from .computes import ABSENT, NONZERO, ZERO, Meetings
from .layout import Layout
from .nest import DesignChoices, Nest
from .prepared import ModelTables
from .removal import Removal


def timeloop_met(
    layout: Layout, left: PerDesign, states: list[tuple[PerDesign, PerDesign, PerDesign]], removal: Removal,
    met: Meetings,
) -> Meetings:  # fmt: skip
    """Q16: where operands are filtered, Timeloop counts combinations in which one operand is not nonzero, and forgets the
    others: these computes are carried out. `f` is the first filtered operand."""
    absent, zero, idle, vanish = met.absent, met.zero, met.idle, met.vanish
    none = np.zeros(left.shape[0], dtype=bool)
    acts = [none | (removal.kind[t] != NONE).any(axis=0) for t in layout.operands]
    before = none
    all_act = acts[0]
    for i, mine in enumerate(acts):
        is_f, before = mine & ~before, before | mine
        all_act = all_act & mine
        others = [state for j, state in enumerate(states) if j != i]
        there = left * math.prod((state[NONZERO] for state in others), start=1.0)
        gone = left * math.prod((1.0 - state[NONZERO] for state in others), start=1.0)
        own_absent, own_zero = there * states[i][ABSENT], there * states[i][ZERO]
        absent, zero = np.where(is_f, own_absent, absent), np.where(is_f, own_zero, zero)
        idle, vanish = np.where(is_f, own_absent + own_zero, idle), np.where(is_f, gone, vanish)
    nonzero = math.prod((state[NONZERO] for state in states), start=1.0)
    vanish = np.where(all_act, left * (1.0 - nonzero), vanish)
    absent, zero, idle = (np.where(all_act, 0.0, x) for x in (absent, zero, idle))
    return Meetings(absent, zero, idle, vanish)


def short_tiles(known: ModelTables, nest: Nest, choices: DesignChoices) -> PerTile:
    """(T, S, B) accesses of compressed tiles that are read one by one, over those of their words together: E[ceil(k / w)] /
    (E[k] / w); 1 where Timeloop finds it to be below 1.01."""
    lay, found = known.layout, np.ones((known.layout.T, known.layout.S, nest.batch))
    for t, s in np.argwhere(lay.stored & (lay.problem.chip.access_words > 1)).tolist():
        rows, together = np.flatnonzero(choices.packed[t, s]), float(lay.problem.chip.access_words[s])
        table, words = known.tables[t], nest.tile_words[t, s][rows]
        parts = [part[rows] for part in nest.boxes[t][s]] if table.by_shape else [words]
        density = table.tile(parts).density
        _, accesses = table.packed(parts, np.full(len(rows), together))
        few = (1.0 - 1.0 / together) * 50.0 / np.maximum(np.floor(10.0 * density) / 10.0, 0.1)
        short = (density > 0.0) & (density < 1.0) & (np.floor(words / together) < few)
        found[t, s, rows] = np.where(short, accesses * together / np.where(short, density * words, 1.0), 1.0)
    return found
